"""The messages, joining, and the ends of a run. Neither numpy nor torch is needed in the child."""

import json
import os
import socket
import struct
import subprocess
import sys
import unittest

import fluentps as fp
from fluentps import _wire as w
from tests.parent import TESTS, Parent


def child(code, *args):
    return [sys.executable, "-c", code, *args]


def alone(code, **env):
    """Runs code without a parent."""
    full = dict(os.environ, PYTHONPATH=str(TESTS.parent), **env)
    full = {k: v for k, v in full.items() if v is not None}
    return subprocess.run(child(code), env=full, capture_output=True, text=True, timeout=60, check=False)


class Wire(unittest.TestCase):
    def test_bytes_of_messages_are_those_of_the_protocol(self):
        self.assertEqual(w.packet(w.TENSOR, 1, 2, 3, b"x"), bytes([2, 1, 0, 0, 2, 0, 0, 0, 3]) + bytes(7) + b"x")
        head = bytes([11, 1, 0, 0, 5, 0, 0, 0])
        self.assertEqual(w.LOSS.pack(w.FORWARD, 1, 0, 5, 1.5), head + struct.pack("<d", 1.5))
        kinds = ("HELLO TENSOR BOUND MAP UNMAP FILL FILLED PLACE STEP HAVE FORWARD GO READY DONE "
                 "EVAL RESULT STATE FAIL BYE")
        self.assertEqual([getattr(w, k) for k in kinds.split()], list(range(1, 20)))
        self.assertEqual(w.name_of(w.BYE), "BYE")

    def test_numbers_are_those_of_the_page(self):
        page = (TESTS.parent.parent / "PROTOCOL.md").read_text()
        for number, name in enumerate(w.NAMES, 1):
            self.assertIn(f"| {name} | {number} |", page)

    def test_a_reason_is_one_line_of_at_most_500_bytes(self):
        self.assertEqual(w.reason(ValueError("a\n b")), b"ValueError: a b")
        long = w.reason(ValueError("é" * 400))
        self.assertLessEqual(len(long), 500)
        self.assertTrue(long.decode().endswith("é"))

    def test_text_has_a_limit(self):
        with self.assertRaisesRegex(fp.Error, "60001 bytes"):
            w.packet(w.TENSOR, text=b"x" * 60001)

    def link(self):
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(here.close)
        return here, w.SocketLink(there.detach())

    def test_a_closed_connection_is_parent_gone(self):
        here, link = self.link()
        here.close()
        with self.assertRaisesRegex(fp.ParentGone, "gone"):
            link.receive(True)
        here, link = self.link()
        here.close()
        with self.assertRaisesRegex(fp.ParentGone, "gone"):
            link.send(w.packet(w.DONE))
        self.assertTrue(link.closed)

    def test_fail_of_the_parent_ends_with_its_text(self):
        here, link = self.link()
        here.send(w.packet(w.FAIL, text=b"no server"))
        with self.assertRaisesRegex(fp.ParentGone, "no server"):
            link.receive(False)
        link.fail(b"not sent")
        self.assertEqual(here.recv(100), b"")

    def test_broken_messages_are_errors(self):
        here, link = self.link()
        here.send(b"short")
        with self.assertRaisesRegex(fp.Error, "5 bytes"):
            link.receive(False)
        here.send(w.packet(w.MAP, b=4096))
        with self.assertRaisesRegex(fp.Error, "without a descriptor"):
            link.receive(True)
        link.close()


class Join(unittest.TestCase):
    def test_without_a_parent_the_error_says_what_to_do(self):
        r = alone("import fluentps; fluentps.join()", FLUENTPS_CHILD=None)
        self.assertEqual(r.returncode, 1)
        self.assertIn("fluentps.Alone(", r.stderr)

    def test_a_variable_that_is_wrong_is_named(self):
        for text, wanted in (("fd=x version=1", "'fd=x version=1'"), ("fd=3 version=2", "version 2"),
                             ("fd=987 version=1", "descriptor 987")):
            r = alone("import fluentps; fluentps.join()", FLUENTPS_CHILD=text)
            self.assertEqual(r.returncode, 1)
            self.assertIn(wanted, r.stderr)

    def test_import_needs_neither_numpy_nor_torch(self):
        r = alone("import sys, fluentps; sys.exit('numpy' in sys.modules or 'torch' in sys.modules)")
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_what_the_parent_says_is_there_and_the_variable_is_not(self):
        code = ("import fluentps, os, sys; ps = fluentps.join(); "
                "print(ps.worker, ps.workers, ps.rank, ps.rows, ps.test_rows, ps.classes, ps.seed, ps.resumed, "
                "ps.mode, 'FLUENTPS_CHILD' in os.environ); sys.stdout.flush(); fluentps.join()")
        with Parent(child(code)) as p:
            p.expect(w.HELLO)
            said = dict(worker=2, workers=4, rank=7, rows=9, seed=2**63, resumed=True)
            p.send(w.HELLO, a=1, text=json.dumps(said).encode())
            self.assertIn("second time", p.expect(w.FAIL)[4].decode())
            out, _ = p.ended(1)
        self.assertEqual(out.split(), ["2", "4", "7", "9", "0", "0", "9223372036854775808", "True", "train", "False"])

    def test_another_version_of_the_parent_is_refused(self):
        with Parent(child("import fluentps; fluentps.join()")) as p:
            p.expect(w.HELLO)
            p.send(w.HELLO, a=2, text=b"{}")
            _, err = p.ended(1)
        self.assertIn("version 2", err)

    def test_steps_without_a_model_is_an_error_that_the_parent_hears(self):
        with Parent(child("import fluentps; list(fluentps.join().steps())")) as p:
            p.expect(w.HELLO)
            p.send(w.HELLO, a=1, text=b"{}")
            text, err = p.failed()
        self.assertIn("call ps.bind", text)
        self.assertIn("Traceback", err)


if __name__ == "__main__":
    unittest.main()

"""testdata/client.c under the parent of these tests."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

from tests.parent import TESTS, Parent

SOURCE = TESTS.parent.parent / "testdata" / "client.c"


@unittest.skipIf(shutil.which("gcc") is None, "gcc is not installed: client.c is not tested")
class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.program = str(Path(cls.folder.name) / "client")
        flags = "-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2".split()
        subprocess.run(["gcc", *flags, str(SOURCE), "-lm", "-o", cls.program], check=True, timeout=60)

    def test_it_learns(self):
        with Parent([self.program], lr=0.5) as p:
            p.start()
            self.assertEqual(p.layers, ["hidden", "out"])
            self.assertEqual(p.names, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"])
            first = p.evaluate(list(range(200)))
            for i in range(400):
                p.step([(i * 32 + k) % 1000 for k in range(32)], i, slowly=i < 2)
                if i == 100:
                    p.place()
            last = p.evaluate(list(range(200)))
            p.bye()
        self.assertGreater(first[0], 1.2 * 200)
        self.assertLess(last[0], 0.5 * 200)
        self.assertGreater(last[1], 160)

    def test_its_gradients_are_those_of_its_loss(self):
        rows = list(range(40))
        with Parent([self.program], lr=0.0) as p:
            p.start()
            p.values = [v + np.float32(0.1) for v in p.values]
            _, _, gradients = p.step(rows)
            for i in range(4):
                losses = []
                for sign in (1, -1):
                    p.values[i].flat[3] += np.float32(sign * 0.01)
                    losses.append(p.step(rows)[0])
                    p.values[i].flat[3] -= np.float32(sign * 0.01)
                self.assertAlmostEqual((losses[0] - losses[1]) / 0.02, gradients[i].flat[3], delta=0.02)
            p.bye()

    def test_without_a_parent_it_ends(self):
        self.assertEqual(subprocess.run([self.program], env={}, capture_output=True, check=False).returncode, 1)

    def test_its_parent_may_go(self):
        with Parent([self.program]) as p:
            p.start()
            p.step([1, 2])
            p.socket.close()
            p.ended(1)


if __name__ == "__main__":
    unittest.main()

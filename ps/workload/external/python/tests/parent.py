"""A parent in Python for tests. It checks every message, poisons what the child must not read, and does plain SGD."""

import array
import json
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import sys

import numpy as np

from fluentps import _wire as w

TESTS = pathlib.Path(__file__).parent
ROWS_AT = 4096
SENTINEL = np.float32(-12345.0)  # in gradients before GO
PATIENCE = 120.0


class Wrong(AssertionError):
    """The child has broken the protocol."""


class Region:
    """Shared memory that has no name."""

    def __init__(self, number, size):
        self.number = number
        self.size = -(-size // 4096) * 4096
        self.file = os.memfd_create(f"region{number}", os.MFD_CLOEXEC)
        os.ftruncate(self.file, self.size)
        self.memory = mmap.mmap(self.file, self.size)

    def floats(self, byte, n):
        return np.frombuffer(self.memory, np.float32, n, byte)


class Parent:
    """Starts `argv` as a child. Use it in a with statement: it ends the child."""

    def __init__(self, argv, lr=0.1, env=None, **welcome):
        self.lr = lr
        self.said = dict(mode="train", worker=0, workers=1, rank=0, batch_max=256, eval_max=256, rows=100,
                         test_rows=50, classes=10, seed=1, resumed=False)
        self.said.update(welcome)
        self.socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        env = dict(os.environ, OMP_NUM_THREADS="1", **(env or {}))
        env["PYTHONPATH"] = str(TESTS.parent)
        env["FLUENTPS_CHILD"] = f"fd={end.fileno()} version=1"
        self.process = subprocess.Popen(argv, env=env, pass_fds=[end.fileno()], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        end.close()
        self.regions = {}
        self.next_region = 0
        self.order = []  # of READY in the last step

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for f in (self.process.stdout, self.process.stderr):
            f.close()

    def send(self, kind, flags=0, a=0, b=0, text=b"", file=None):
        more = [] if file is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))]
        try:
            self.socket.sendmsg([w.packet(kind, flags, a, b, text)], more)
        except BrokenPipeError:
            pass  # the next receive says why

    def receive(self):
        try:
            data = self.socket.recv(70000)
        except ConnectionResetError:  # the child has ended with messages unread: what it has sent is still there
            data = self.socket.recv(70000)
        if not data:
            raise Wrong("the child has closed the connection")
        kind, flags, zero, a, b = w.HEAD.unpack_from(data)
        if zero != 0 or flags > (2 if kind == w.STATE else 1):
            raise Wrong(f"{w.name_of(kind)} with bytes 2 and 3 {zero}, flags {flags}")
        if len(data) > 16 and kind not in (w.TENSOR, w.FAIL):
            raise Wrong(f"{w.name_of(kind)} with {len(data) - 16} bytes behind it")
        return kind, flags, a, b, data[16:]

    def expect(self, *kinds):
        m = self.receive()
        if m[0] not in kinds:
            raise Wrong(f"{w.name_of(m[0])} {m[1:]} where {[w.name_of(k) for k in kinds]} is expected")
        return m

    def quiet(self):
        """Nothing may have come."""
        self.socket.settimeout(0.05)
        try:
            raise Wrong(f"{self.socket.recv(70000)!r} where nothing may come")
        except socket.timeout:
            pass
        finally:
            self.socket.settimeout(PATIENCE)

    def greet(self):
        _, _, version, process, _ = self.expect(w.HELLO)
        if version != 1 or process != self.process.pid:
            raise Wrong(f"HELLO with version {version}, process {process}")
        self.send(w.HELLO, a=1, text=json.dumps(self.said).encode())
        self.layers, self.names, self.shapes, self.stats, self.layer_of = [], [], [], [], []
        while True:
            kind, flags, a, b, text = self.expect(w.TENSOR, w.BOUND)
            if kind == w.BOUND:
                break
            layer, name, shape = text.decode().split("\n")
            shape = tuple(int(d) for d in shape.split("x"))
            if a != len(self.names) or name in self.names or b != int(np.prod(shape)) or b < 1:
                raise Wrong(f"TENSOR {a} {name} {shape} of {b} elements")
            if not self.layers or self.layers[-1] != layer:
                if layer in self.layers:
                    raise Wrong(f"layer {layer} twice")
                self.layers.append(layer)
            self.names.append(name), self.shapes.append(shape), self.stats.append(bool(flags))
            self.layer_of.append(len(self.layers) - 1)
        if a != len(self.names):
            raise Wrong(f"BOUND {a}, but {len(self.names)} tensors")
        return self

    def map(self, size):
        r = Region(self.next_region, size)
        self.next_region += 1
        self.regions[r.number] = r
        self.send(w.MAP, a=r.number, b=r.size, file=r.file)
        os.close(r.file)
        return r

    def start(self, align=4):
        """All up to the first step. The values are those of the child."""
        self.greet()
        sizes = [int(np.prod(s)) for s in self.shapes]
        rows = max(self.said["batch_max"], self.said["eval_max"])
        self.table = ROWS_AT + -(-4 * rows // 16) * 16
        self.control = self.map(self.table + 64 * len(sizes))
        r = self.map(4 * sum(sizes))
        self.send(w.FILL, a=r.number)
        _, _, a, b, _ = self.expect(w.FILLED)
        if a != r.number or b != 4 * sum(sizes):
            raise Wrong(f"FILLED of region {a}, {b} bytes")
        at = np.cumsum([0] + sizes[:-1]) * 4
        self.values = [r.floats(int(o), n).copy().reshape(s) for o, n, s in zip(at, sizes, self.shapes)]
        self.send(w.UNMAP, a=r.number)
        self.place(align)
        return self

    def place(self, align=4):
        """Maps memory for both slots, and tells the child, which must be between two steps: it reads the tables."""
        self.params, self.grads, self.tests = [], [], []
        sizes = [4 * int(np.prod(s)) for s in self.shapes]
        steps = [-(-(s + 12) // align) * align for s in sizes]
        at = [int(o) for o in np.cumsum([64] + steps[:-1])]
        regions = [self.map(sum(steps) + 64) for _ in range(3)]
        for r, views in zip(regions, (self.params, self.grads, self.tests)):
            views[:] = [r.floats(o, s // 4).reshape(shape) for o, s, shape in zip(at, sizes, self.shapes)]
        n = len(sizes)
        for slot, parts in ((0, regions[:2]), (1, regions[2:])):
            table = self.table + slot * 32 * n
            for part, r in enumerate(parts):
                for i, o in enumerate(at):
                    struct.pack_into("<IIQ", self.control.memory, table + 16 * (part * n + i), r.number, 0, o)
            self.send(w.PLACE, flags=1 - slot, a=slot, b=table)

    def _tensors(self, layer):
        return [i for i, l in enumerate(self.layer_of) if l == layer]

    def _put_rows(self, rows):
        struct.pack_into(f"<{len(rows)}i", self.control.memory, ROWS_AT, *rows)

    def step(self, rows, iteration=0, slowly=False):
        """One step of SGD. Returns the loss, the hits (None: not counted), and the gradients.

        Every second iteration has one HAVE, and GO before FORWARD, unless it goes slowly.
        """
        at_once = iteration % 2 == 1 and not slowly
        for p, g in zip(self.params, self.grads):
            p[...], g[...] = np.nan, SENTINEL
        self._put_rows(rows)
        self.send(w.STEP, a=len(rows), b=iteration)
        for layer in range(len(self.layers)):
            if slowly:
                self.quiet()
            for i in self._tensors(layer):
                self.params[i][...] = self.values[i]
            if not at_once or layer == len(self.layers) - 1:
                self.send(w.HAVE, a=layer + 1)
        if at_once:
            self.send(w.GO)
        _, flags, a, _, _ = m = self.expect(w.FORWARD)
        loss = struct.unpack("<d", struct.pack("<Q", m[3]))[0]
        if slowly:
            self.quiet()
        for g, p, v, name in zip(self.grads, self.params, self.values, self.names):
            if not at_once and not (g == SENTINEL).all():
                raise Wrong(f"gradient of {name} was written before GO")
            if not np.array_equal(p, v, equal_nan=True):
                raise Wrong(f"parameter {name} was changed by the child")
        if not at_once:
            self.send(w.GO)
        gradients = self._ready()
        for v, g, is_stat in zip(self.values, gradients, self.stats):
            if is_stat:
                v[...] = g / np.float32(len(rows))
            else:
                v -= np.float32(self.lr / len(rows)) * g
        return loss, a if flags else None, gradients

    def _ready(self):
        gradients, self.order = [None] * len(self.names), []
        while True:
            kind, flags, layer, _, _ = self.expect(w.READY, w.DONE)
            if kind == w.DONE:
                if flags:  # the rest is READY, last layer first
                    for layer in reversed(range(len(self.layers))):
                        if layer not in self.order:
                            self._is_ready(layer, gradients)
                break
            if layer >= len(self.layers) or layer in self.order:
                raise Wrong(f"READY {layer} a second time, or too large")
            self._is_ready(layer, gradients)
        if len(self.order) != len(self.layers):
            raise Wrong(f"DONE, but only {self.order} were READY")
        for g, name in zip(self.grads, self.names):
            if not (g == SENTINEL).all():
                raise Wrong(f"gradient of {name} was written behind READY")
        return gradients

    def _is_ready(self, layer, gradients):
        self.order.append(layer)
        for i in self._tensors(layer):
            gradients[i] = self.grads[i].copy()
            if (gradients[i] == SENTINEL).any():
                raise Wrong(f"READY {layer}, but {self.names[i]} has no gradient")
            self.params[i][...] = np.nan  # the child reads it no longer
            self.grads[i][...] = SENTINEL

    def evaluate(self, rows):
        """Returns loss and hits (None: not counted) of test rows. Slot 0 is poisoned meanwhile."""
        for p, t, v in zip(self.params, self.tests, self.values):
            p[...], t[...] = np.nan, v
        self._put_rows(rows)
        self.send(w.EVAL, a=len(rows))
        _, flags, a, b, _ = self.expect(w.RESULT)
        return struct.unpack("<d", struct.pack("<Q", b))[0], a if flags else None

    def state(self):
        """The child's state as bytes."""
        self.send(w.STATE)
        _, flags, a, size, _ = self.expect(w.STATE)
        if flags or a or size < 1:
            raise Wrong(f"STATE with flags {flags}, region {a}, {size} bytes")
        r = self.map(size)
        self._answers(1, r.number, size)
        self.send(w.UNMAP, a=r.number)
        return bytes(r.memory[:size])

    def restore(self, data):
        r = self.map(len(data))
        r.memory[: len(data)] = data
        self._answers(2, r.number, len(data))
        self.send(w.UNMAP, a=r.number)

    def _answers(self, what, region, size):
        self.send(w.STATE, what, region, size)
        m = self.expect(w.STATE)[1:4]
        if m != (what, region, size):
            raise Wrong(f"STATE {m} where {(what, region, size)} is expected")

    def bye(self):
        """Ends the child; returns what it has written to stdout."""
        self.send(w.BYE)
        return self.ended(0)[0]

    def ended(self, code):
        out, err = self.process.communicate(timeout=PATIENCE)
        if self.process.returncode != code:
            raise Wrong(f"exit code {self.process.returncode}, want {code}:\n{out}\n{err}")
        return out, err

    def failed(self):
        """Waits for FAIL; returns its text, and stderr of the child, which ends with code 1."""
        text = self.expect(w.FAIL)[4].decode()
        assert 0 < len(text.encode()) <= 500 and "\n" not in text, text
        return text, self.ended(1)[1]


def script(name, *args):
    """The command of a script of this folder."""
    return [sys.executable, str(TESTS / name), *args]

"""Training without a parent. It sends what a parent would: the script takes the same way through this package."""

from __future__ import annotations

import itertools
import json
import mmap
import random
import struct
from collections import deque
from dataclasses import dataclass
from typing import Any, Deque, Iterator, List, Tuple

from . import _wire as w

_ROWS_AT = 4096
EVAL_MAX = 1000

Head = Tuple[int, int, int, int]


@dataclass(frozen=True)
class Alone:
    """How a script trains without a parent: plain gradient descent, p -= lr * (sum of gradients) / rows.

    batch: rows of a step; epochs: passes over the data; lr: the learning rate; seed: of the order of rows.
    """

    batch: int = 32
    epochs: int = 1
    lr: float = 0.1
    seed: int = 1

    def __post_init__(self) -> None:
        for name, value, least in (("batch", self.batch, 1), ("epochs", self.epochs, 0)):
            if value < least:
                raise w.Error(f"fluentps.Alone({name}={value}): need at least {least}")


class AloneLink(w.Link):
    """Plays the parent. Its script runs on where the child waits for a message."""

    def __init__(self, options: Alone) -> None:
        self.options = options
        self.model: Any = None  # set when it is bound
        self.rows = self.test_rows = 0  # set when the loop begins
        self.own_loop = False  # the script picks its samples, and ends the loop
        self._total, self._seen = 0.0, 0  # losses and rows of the present pass of an own loop
        self._sent: Deque[bytes] = deque()
        self._script = self._run()

    def send(self, data: bytes) -> None:
        self._sent.append(data)

    def receive(self, idle: bool) -> Head:
        return next(self._script)

    def _take(self, kind: int) -> bytes:
        data = self._sent.popleft()
        assert data[0] == kind, f"{w.name_of(data[0])} where {w.name_of(kind)} is expected"
        return data

    def _map(self, number: int, size: int) -> Head:
        self.memory = mmap.mmap(-1, size)
        return w.MAP, 0, number, size

    def _run(self) -> Iterator[Head]:
        o = self.options
        self._take(w.HELLO)
        self.text = json.dumps(
            {"mode": "train", "workers": 1, "batch_max": o.batch, "eval_max": EVAL_MAX, "seed": o.seed}
        ).encode()
        yield w.HELLO, 0, w.VERSION, 0
        yield from self._place()
        if self.own_loop:
            yield from self._endless()
        order = random.Random(o.seed)
        iteration = 0
        for epoch in range(o.epochs):
            rows = list(range(self.rows))
            order.shuffle(rows)
            total, hits = 0.0, 0
            for first in range(0, len(rows), o.batch):
                loss, correct = yield from self._step(rows[first : first + o.batch], iteration)
                total, hits, iteration = total + loss, hits + correct, iteration + 1
            said = f"epoch {epoch + 1} of {o.epochs}: loss {total / max(1, len(rows)):.4f}"
            if self.test_rows:
                loss, correct = yield from self._evaluate()
                said += f", of test rows {loss / self.test_rows:.4f}, right {correct} of {self.test_rows}"
            print(said, flush=True)
        yield w.BYE, 0, 0, 0

    def _endless(self) -> Iterator[Head]:
        for iteration in itertools.count():
            loss, _ = yield from self._step([0] * self.options.batch, iteration)
            self._total, self._seen = self._total + loss, self._seen + self.options.batch

    def told(self, n: int) -> str:
        """What is said of pass n of an own loop, which has ended."""
        text = f"epoch {n} of {self.options.epochs}: loss {self._total / max(1, self._seen):.4f}"
        self._total, self._seen = 0.0, 0
        return text

    def _place(self) -> Iterator[Head]:
        tensors = self.model.tensors
        while self._sent:
            self._sent.popleft()  # TENSOR and BOUND
        elements = sum(t.elements for t in tensors)
        longest = max(self.options.batch, EVAL_MAX)
        table = _ROWS_AT + (4 * longest + 15) // 16 * 16
        yield self._map(0, table + 32 * len(tensors))
        assert self.memory is not None
        self._control = self.memory
        for number in (1, 2):
            yield self._map(number, 4 * max(1, elements))
        yield w.FILL, 0, 1, 0
        self._take(w.FILLED)
        at = 0
        for i, t in enumerate(tensors):
            for part in range(2):
                struct.pack_into("<IIQ", self._control, table + 16 * (part * len(tensors) + i), part + 1, 0, at)
            at += 4 * t.elements
        yield w.PLACE, 1, 0, table
        yield w.PLACE, 0, 1, table

    def _put(self, rows: List[int]) -> None:
        struct.pack_into(f"<{len(rows)}i", self._control, _ROWS_AT, *rows)

    def _step(self, rows: List[int], iteration: int) -> Iterator[Any]:
        self._put(rows)
        yield w.STEP, 0, len(rows), iteration
        yield w.HAVE, 0, len(self.model.layers), 0
        _, _, _, correct, loss = w.LOSS.unpack(self._take(w.FORWARD))
        yield w.GO, 0, 0, 0
        while self._sent.popleft()[0] == w.READY:  # the last is DONE
            pass
        self.model.descend(self.options.lr, len(rows))
        return loss, correct

    def _evaluate(self) -> Iterator[Any]:
        total, hits = 0.0, 0
        for first in range(0, self.test_rows, EVAL_MAX):
            rows = list(range(first, min(self.test_rows, first + EVAL_MAX)))
            self._put(rows)
            yield w.EVAL, 0, len(rows), 0
            _, _, _, correct, loss = w.LOSS.unpack(self._take(w.RESULT))
            total, hits = total + loss, hits + correct
        return total, hits

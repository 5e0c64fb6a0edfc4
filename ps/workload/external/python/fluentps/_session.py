"""The run that a script takes part in."""

from __future__ import annotations

import atexit
import json
import mmap
import os
import re
import struct
import sys
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _wire as w
from ._alone import Alone, AloneLink
from ._loop import OwnLoop
from ._model import EVALUATION, TRAINING, Model
from ._state import Registry, give_randoms, randoms
from ._step import Step
from ._wire import Error

ROWS_AT = 4096  # byte of region 0 where row numbers begin
_HOLD = 64 << 10  # bytes of gradients that are worth a message
_ALL_DONE = w.packet(w.DONE, w.ALL_READY)
_PLACE = struct.Struct("<IIQ")
_session: Optional["Session"] = None


def join(alone: Optional[Alone] = None) -> "Session":
    """Joins the run of the parent that has started this process. Call it once, before anything is computed.

    Without a parent the script trains alone, as `alone` says. Raises Error where there is neither.
    """
    global _session
    if _session is not None:
        raise Error("fluentps.join is called a second time in one process: call it once, and pass its result on")
    text = os.environ.pop("FLUENTPS_CHILD", None)  # not for the processes that this one starts
    if text is None:
        if alone is None:
            raise Error(
                "there is no parent: FLUENTPS_CHILD is not set. Start the script with fluentps (model.command), or "
                "say fluentps.join(alone=fluentps.Alone(batch=32, epochs=1, lr=0.1))"
            )
        _session = Session(AloneLink(alone))
        return _session
    m = re.fullmatch(r"fd=(\d+) version=(\d+)", text.strip())
    if m is None:
        raise Error(f"FLUENTPS_CHILD is {text!r}, need such as 'fd=3 version=1'")
    if int(m[2]) != w.VERSION:
        raise Error(
            f"the parent speaks version {m[2]} of the protocol, this package version {w.VERSION}: "
            "install the package that comes with the parent"
        )
    _session = Session(w.SocketLink(int(m[1])))
    _session.watch()
    return _session


class Session:
    """A run. What the parent says of it: `worker` of `workers` (ranks that compute), `rank`, `batch_max` and
    `eval_max` (rows of a step), `rows` and `test_rows` (of the data sets), `classes` (0: hits are not counted),
    `seed`, `resumed` (the run goes on from a checkpoint), `sampler` (run or script: who picks the rows), and `mode`
    (train, or probe: no step comes)."""

    own: Optional[OwnLoop] = None  # of fluentps.Optimizer

    def __init__(self, link: w.Link) -> None:
        self.link = link
        self.model: Any = None
        self.step: Optional[Step] = None
        self._kept = Registry()
        self._state = b""  # as the parent has asked for its size
        self._begun = False  # ps.steps has begun
        self.have = 0  # layers that may be read
        self.unready = 0  # layers of this step that are not READY
        self._is_ready: List[bool] = []
        self._ready_packets: List[bytes] = []
        self._layer_bytes: List[int] = []
        self._held: List[bytes] = []  # READY of small layers
        self._held_bytes = 0  # of their gradients
        self._regions: Dict[int, mmap.mmap] = {}
        self._numbers: Optional[memoryview] = None  # row numbers
        self._placed: Dict[int, bool] = {}  # by slot; True: with gradients
        link.send(w.packet(w.HELLO, a=w.VERSION, b=os.getpid()))
        kind, _, version, _ = link.receive(True)
        if kind != w.HELLO:
            raise self._unexpected(kind, "HELLO")
        if version != w.VERSION:
            raise Error(f"the parent speaks version {version} of the protocol, this package version {w.VERSION}")
        said = json.loads(link.text)
        self.mode: str = said.get("mode", "train")
        self.worker, self.workers, self.rank = (int(said.get(k, 0)) for k in ("worker", "workers", "rank"))
        self.batch_max, self.eval_max = int(said.get("batch_max", 0)), int(said.get("eval_max", 0))
        self.rows, self.test_rows = int(said.get("rows", 0)), int(said.get("test_rows", 0))
        self.classes, self.seed = int(said.get("classes", 0)), int(said.get("seed", 0))
        self.resumed = bool(said.get("resumed", False))
        self.sampler: str = said.get("sampler", "run")

    def watch(self) -> None:
        """Tells the parent why this process ends, if it does so too early."""
        link, before = self.link, sys.excepthook

        def hook(kind: Any, error: Any, trace: Any) -> None:
            link.fail(w.reason(error))
            before(kind, error, trace)

        sys.excepthook = hook
        early = b"the program has ended before the run: does it leave the loop over ps.steps early?"
        atexit.register(link.fail, early)
        # Workers of a DataLoader inherit the descriptor, and would keep the connection open when this process ends.
        of = weakref.ref(link)

        def forked() -> None:
            inherited = of()
            if inherited is not None:
                inherited.close()

        os.register_at_fork(after_in_child=forked)

    def bind(self, module: Any) -> None:
        """Binds a torch.nn.Module: the servers train its parameters. Call it once, after the module has its place.

        A layer is a module that owns parameters or float buffers. Parameters without requires_grad, integer buffers
        and buffers that are not persistent stay the script's. Values of parameters lie in shared memory from the first
        step on, as float32; parameters of 16 bits or on a GPU are copied. Raises Error for what cannot be trained.
        """
        from ._torch import TorchModel

        self._bind(TorchModel(self, module))

    def arrays(self, arrays: Dict[str, Any]) -> Dict[str, Any]:
        """Binds arrays of numpy, float32: {"hidden.weight": w0}, or {"w": ("hidden", w0)} to name the layer.

        Without a name, the layer is what stands before the last dot, or "net". Returns a dict that has the parameters
        of the present step or evaluation by name. Look them up in each step: they may move.
        """
        from ._numpy import ArrayModel

        self._bind(ArrayModel(arrays))
        return self.arrays_of("params")

    def _bind(self, model: Model) -> None:
        if self.model is not None:
            raise Error("a model is bound already: bind one, once")
        model.index()
        if not model.tensors:
            raise Error("the model has no parameter that is trained: at least one must have requires_grad")
        for i, t in enumerate(model.tensors):
            self.link.send(w.packet(w.TENSOR, int(t.statistic), i, t.elements, t.text()))
        self.model = model
        self._layer_bytes = [0] * len(model.layers)
        for t, layer in zip(model.tensors, model.layer_of):
            self._layer_bytes[layer] += 4 * t.elements
        self._ready_packets = [w.packet(w.READY, a=layer) for layer in range(len(model.layers))]
        if isinstance(self.link, AloneLink):
            self.link.model = model
        self.link.send(w.packet(w.BOUND, w.KEEPS_STATE, len(model.tensors)))

    def state(self, obj: Any, name: Optional[str] = None) -> None:
        """Has checkpoints hold the state of an object, and gives it back when the run resumes. Call it before ps.steps.

        obj: has state_dict and load_state_dict (an optimizer, a scheduler), get_state and set_state (a generator of torch),
        or is a generator of NumPy or Python, or a pair of functions (get, set). Its state is made of numbers, texts, bytes,
        lists, tuples, sets, dicts, arrays and tensors. name: of the state in checkpoints; else that of the type. The
        random numbers of Python, NumPy and torch are in checkpoints anyway.
        """
        if self._begun:
            raise Error("ps.state behind the begin of ps.steps: call it before, because a run gives states back at its begin")
        self._kept.add(obj, name)

    def steps(
        self,
        rows: Optional[int] = None,
        test_rows: Optional[int] = None,
        evaluate: Optional[Callable[[List[int]], Any]] = None,
    ) -> Iterator[Step]:
        """Yields a Step for each batch, until the run ends.

        rows, test_rows: the lengths of the script's data sets; an Error says so if the parent's are others. evaluate:
        gets a list of test row numbers, returns the sum of the losses, or that and the number of samples that the
        model had right. Without it, steps with `evaluate` True are yielded, which want s.report.
        """
        if self.model is None:
            raise Error("ps.steps before a model is bound: call ps.bind(net) or ps.arrays(...) first")
        if self.link.closed:
            raise Error("ps.steps after the end of the run: a script has one loop over ps.steps")
        self._lengths(rows, test_rows)
        self._begun = True
        while True:
            kind, flags, a, b = self.link.receive(True)
            if kind == w.STEP:
                yield from self._train(a, b)
            elif kind == w.EVAL:
                yield from self._evaluate(a, evaluate)
            elif kind == w.BYE:
                break
            else:
                self._other(kind, flags, a, b)
        self.model.release()
        self.link.close()

    @property
    def running(self) -> bool:
        """Whether the run wants more steps. A script with a loop of its own may ask it before each."""
        if self.own is not None:
            self.own.begin()
        return not self.link.closed

    def loop(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Yields the batches of a loader, pass by pass, until the run ends: for scripts with fluentps.Optimizer."""
        if self.own is None:
            raise Error("ps.loop before fluentps.Optimizer(ps, net): make the optimizer first")
        return self.own.loop(loader)

    def _lengths(self, rows: Optional[int], test_rows: Optional[int]) -> None:
        if self.own is None and self.sampler == "script":
            raise Error(
                "data.sampler is script, but ps.steps gives rows that the run picks: train with fluentps.Optimizer, or "
                "set data: {sampler: run} in the YAML"
            )
        if isinstance(self.link, AloneLink):
            if self.own is not None:
                return
            if rows is None:
                raise Error("without a parent ps.steps needs rows: say ps.steps(rows=len(train), test_rows=len(test))")
            self.link.rows, self.link.test_rows = rows, test_rows or 0
            self.rows, self.test_rows = rows, test_rows or 0
            return
        for name, mine, theirs in (("rows", rows, self.rows), ("test_rows", test_rows, self.test_rows)):
            if mine is not None and mine != theirs:
                raise Error(
                    f"ps.steps({name}={mine}), but the run has {name} {theirs}: row numbers would mean other samples; "
                    f"load the same data, or set data: {{{name}: {mine}}} in the YAML"
                )

    def _train(self, rows: int, iteration: int) -> Iterator[Step]:
        if not self._placed.get(TRAINING):
            raise Error("the parent has sent STEP before a PLACE with gradients")
        self.have = 0
        step = self.step = Step(self, self._row_numbers(rows), iteration)
        self.model.begin()
        yield step
        step._finish()
        self.step = None
        self._kept.try_once()

    def _evaluate(self, rows: int, evaluate: Optional[Callable[[List[int]], Any]]) -> Iterator[Step]:
        if EVALUATION not in self._placed:
            raise Error("the parent has sent EVAL before PLACE of slot 1")
        step = Step(self, self._row_numbers(rows), 0, True)
        # Whether an evaluation comes between two steps may depend on time: the steps draw the same random numbers anyway.
        drawn = {name: k.get() for name, k in randoms().items()}
        self.model.enter()
        try:
            if evaluate is None:
                self.step = step
                yield step
                step._finish()
                return
            answer = self.model.call(evaluate, step.rows)
            loss, correct = answer if isinstance(answer, (tuple, list)) else (answer, None)
        finally:
            self.model.leave()
            self.step = None
            give_randoms(drawn)
        self.result(loss, correct)

    def _row_numbers(self, n: int) -> List[int]:
        numbers = self._numbers
        if numbers is None or ROWS_AT // 4 + n > len(numbers):
            raise Error(f"the parent has sent {n} rows, which do not fit into region 0")
        return numbers[ROWS_AT // 4 : ROWS_AT // 4 + n].tolist()

    def _other(self, kind: int, flags: int, a: int, b: int) -> None:
        """Messages that come between steps."""
        if kind == w.MAP:
            region = self.link.memory
            assert region is not None
            self._regions[a] = region
            if a == 0:
                self._numbers = memoryview(region)[: b // 4 * 4].cast("i")
        elif kind == w.UNMAP:
            # Views of it may still be held by the script: its memory goes with the last of them.
            self._regions.pop(a, None)
        elif kind == w.FILL:
            self.link.send(w.packet(w.FILLED, a=a, b=self.model.fill(self._region(a))))
        elif kind == w.PLACE:
            self._place(a, bool(flags & 1), b)
        elif kind == w.STATE:
            self._answer_state(flags, a, b)
        else:
            raise self._unexpected(kind, "STEP, EVAL or BYE")

    def _answer_state(self, what: int, region: int, size: int) -> None:
        if what == w.SIZES_STATE:
            self._state = self._kept.save()
            size = len(self._state)
        elif what == w.SAVES_STATE:
            self._region(region)[:size] = self._state[:size]
            self._state = b""
        else:
            self._kept.restore(self._region(region)[:size])
        self.link.send(w.packet(w.STATE, what, region, size))

    def _region(self, number: int) -> mmap.mmap:
        if number not in self._regions:
            raise Error(f"the parent names region {number}, which is not mapped")
        return self._regions[number]

    def _place(self, slot: int, with_grads: bool, at: int) -> None:
        n, control = len(self.model.tensors), self._region(0)
        parts: List[List[Tuple[mmap.mmap, int]]] = []
        for part in range(2 if with_grads else 1):
            places = []
            for i, t in enumerate(self.model.tensors):
                number, _, byte = _PLACE.unpack_from(control, at + _PLACE.size * (part * n + i))
                region = self._region(number)
                if byte % 4 or byte + 4 * t.elements > len(region):
                    raise Error(
                        f"the parent places tensor {t.name} at byte {byte} of region {number} of {len(region)} bytes"
                    )
                places.append((region, byte))
            parts.append(places)
        self.model.place(slot, parts[0], parts[1] if with_grads else None)
        self._placed[slot] = with_grads

    def _unexpected(self, kind: int, wanted: str) -> Error:
        return Error(f"the parent has sent {w.name_of(kind)} where {wanted} may come: is it of another version?")

    def number(self, layer: Union[None, int, str]) -> int:
        """The number of a layer by name or number; None: of the last."""
        layers = self.model.layers
        if layer is None:
            return len(layers) - 1
        if isinstance(layer, str):
            if layer not in layers:
                raise Error(f"there is no layer {layer!r}: the layers are {', '.join(layers[:20])}")
            return int(layers.index(layer))
        if not 0 <= layer < len(layers):
            raise Error(f"there is no layer {layer}: the model has {len(layers)}")
        return layer

    def wait(self, layer: int) -> None:
        """Waits until layer may be read."""
        while self.have <= layer:
            kind, _, have, _ = self.link.receive(False)
            if kind != w.HAVE:
                raise self._unexpected(kind, "HAVE")
            self.have = have

    def forward(self, loss: float, correct: Optional[int], rows: int) -> None:
        """Sends FORWARD. Then waits for all layers, and for GO."""
        layers = len(self._ready_packets)
        if correct is not None and not 0 <= correct <= rows:
            raise Error(f"correct={correct} of {rows} rows: it is the number of samples that the model had right")
        self.wait(layers - 1)
        self.link.send(w.LOSS.pack(w.FORWARD, correct is not None, 0, int(correct or 0), loss))
        kind = self.link.receive(False)[0]
        while kind == w.HAVE:
            kind = self.link.receive(False)[0]
        if kind != w.GO:
            raise self._unexpected(kind, "GO")
        self.unready = layers
        self._is_ready = [False] * layers

    def ready(self, layer: int) -> None:
        """Sends READY of a layer, or holds it until the next large one: each wakes the parent, at up to 50 us.

        Where the model says so, all that is held leaves with the last layer as one DONE.
        """
        if self._is_ready[layer]:
            raise Error(f"layer {self.model.layers[layer]} is ready a second time in one step")
        self._is_ready[layer] = True
        self.unready -= 1
        if self.unready == 0 and self.model.last_is_done:
            self._held.clear()
            self._held.append(_ALL_DONE)
        else:
            self._held.append(self._ready_packets[layer])
        self._held_bytes += self._layer_bytes[layer]
        if self._held_bytes >= _HOLD or self.unready == 0:
            for data in self._held:
                self.link.send(data)
            self._held.clear()
            self._held_bytes = 0

    def ready_rest(self) -> None:
        """Sends READY of all layers that are not ready, last layer first."""
        for layer in range(len(self._is_ready) - 1, -1, -1):
            if not self._is_ready[layer]:
                self.ready(layer)

    def result(self, loss: Any, correct: Optional[int]) -> None:
        """Sends RESULT."""
        correct = None if correct is None else int(correct)
        self.link.send(w.LOSS.pack(w.RESULT, correct is not None, 0, correct or 0, float(loss)))

    def arrays_of(self, which: str) -> Dict[str, Any]:
        """The dict of params or grads of ps.arrays."""
        found = getattr(self.model, which, None)
        if not isinstance(found, dict):
            raise Error(f"s.{which} is for ps.arrays: a module of torch has its parameters itself")
        return found

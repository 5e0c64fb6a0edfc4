"""A module of torch as a model.

Parameters are views of the shared memory. Gradients are torch's own: autograd makes a new tensor in each step, and a
hook copies it to the shared memory. That costs one copy, but no zeroing and no adding, and what a script does to
p.grad between two steps, such as zero_grad, cannot touch memory that the parent still reads.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch

from ._collect import Bound, collect
from ._model import EVALUATION, TRAINING, Model, Place, Tensor
from ._wire import Error

if TYPE_CHECKING:
    from ._session import Session
    from ._step import Step


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt


def _view(t: Tensor, place: Place) -> torch.Tensor:
    region, byte = place
    return torch.frombuffer(region, dtype=torch.float32, count=t.elements, offset=byte).view(t.shape)


class _Pinner:
    """Pins regions, so that a GPU copies to and from them directly. Untested: no GPU was at hand."""

    def __init__(self) -> None:
        self._pinned: Set[int] = set()

    def pin(self, region: mmap.mmap) -> None:
        """Pins a region once. Copies work without it, too, so a refusal is no error."""
        t = torch.frombuffer(region, dtype=torch.uint8)
        if t.data_ptr() not in self._pinned:
            self._pinned.add(t.data_ptr())
            torch.cuda.cudart().cudaHostRegister(t.data_ptr(), t.numel(), 0)


def keep_freed_memory() -> None:
    """Has malloc keep what is freed.

    The gradients of a step are freed at its end. malloc would give large ones back to the system, and each step would
    pay their page faults again: those make a step of a small network half as fast. Variables of the environment that
    say how malloc works stay in force.
    """
    if any(k.startswith("MALLOC_") or k == "GLIBC_TUNABLES" for k in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # it is there in glibc
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the largest that it takes
        mallopt(_M_TRIM_THRESHOLD, 256 << 20)


class TorchModel(Model):
    """The tensors of a module, its hooks, and its views of shared memory."""

    last_is_done = True

    def __init__(self, ps: "Session", net: Any) -> None:
        self._ps = ps
        self._net = net
        keep_freed_memory()
        self._bound, reads = collect(net)
        self.tensors = [b.tensor for b in self._bound]
        self.index()
        layers = len(self.layers)
        self._views: List[List[torch.Tensor]] = [[], []]  # by slot
        self._grads: List[torch.Tensor] = []
        self._checks: List[Tuple[torch.Tensor, int, int]] = []
        self._saved: List[Tuple[Bound, torch.Tensor]] = []
        self._kinds = [(b.value().dtype, b.value().device) for b in self._bound]  # as they were bound
        self._statistics = [i for i, t in enumerate(self.tensors) if t.statistic]
        self._params = [i for i, t in enumerate(self.tensors) if not t.statistic]
        self._copied: List[List[int]] = [[] for _ in range(layers)]  # tensors that are copied at forward, by layer
        self._counts = [0] * layers  # parameters by layer
        for i, b in enumerate(self._bound):
            if b.is_copied():
                self._copied[self.layer_of[i]].append(i)
            if not b.tensor.statistic:
                self._counts[self.layer_of[i]] += 1
        self._left = [0] * layers  # parameters without a gradient in this step, by layer
        self._todo = [False] * layers  # layers that forward has not reached in this step
        # Layers whose module no forward has called: its parent may read them directly. They are waited for when a
        # step begins. In the first step that is all of them.
        self._unseen = set(range(layers))
        self._sending = False  # gradients go to shared memory
        self._nodes: List[Any] = []  # AccumulateGrad: a node lives as long as somebody holds it
        self._pinner = _Pinner()
        for i in self._params:
            self._hook_gradient(i)
        for module, names in reads.items():
            self._hook_forward(module, [self.layers.index(name) for name in names])

    def _hook_gradient(self, i: int) -> None:
        p, layer = self._bound[i].value(), self.layer_of[i]
        left, grads, ready = self._left, self._grads, self._ps.ready

        def hook(*_: Any) -> None:
            if self._sending:
                grads[i].copy_(p.grad)  # type: ignore[arg-type]
                left[layer] -= 1
                if left[layer] == 0:
                    ready(layer)

        if hasattr(p, "register_post_accumulate_grad_hook"):
            p.register_post_accumulate_grad_hook(hook)
            return
        with torch.enable_grad():
            node = p.view_as(p).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
        node.register_hook(hook)
        self._nodes.append(node)

    def _hook_forward(self, module: torch.nn.Module, layers: List[int]) -> None:
        todo, reach, first = self._todo, self._reach, layers[0]

        def hook_one(_: Any, __: Any) -> None:
            if todo[first]:
                reach(first)

        def hook_all(_: Any, __: Any) -> None:
            for layer in layers:
                if todo[layer]:
                    reach(layer)

        handle = module.register_forward_pre_hook(hook_one if len(layers) == 1 else hook_all)
        # Hooks that the script has registered, such as those of weight_norm, read parameters: ours comes first.
        hooks: Any = module._forward_pre_hooks  # an OrderedDict
        hooks.move_to_end(handle.id, last=False)

    def _reach(self, layer: int) -> None:
        """Forward needs a layer for the first time in this step."""
        self._todo[layer] = False
        if layer in self._unseen:
            self._unseen.remove(layer)  # begin has loaded it
        else:
            self._load(layer)

    def reach_all(self) -> None:
        """Waits for all layers."""
        for layer, is_todo in enumerate(self._todo):
            if is_todo:
                self._reach(layer)

    def _load(self, layer: int) -> None:
        self._ps.wait(layer)
        for i in self._copied[layer]:
            self._bound[i].value().data.copy_(self._views[TRAINING][i])

    def fill(self, region: mmap.mmap) -> int:
        at = 0
        for b in self._bound:
            _view(b.tensor, (region, at)).copy_(b.value().detach())
            at += 4 * b.tensor.elements
        return at

    def place(self, slot: int, params: Sequence[Place], grads: Optional[Sequence[Place]]) -> None:
        if slot not in (TRAINING, EVALUATION):
            raise Error(f"the parent places slot {slot}, which is not known")
        self._check_kinds()
        if any(b.value().is_cuda for b in self._bound):
            for region, _ in (*params, *(grads or ())):
                self._pinner.pin(region)
        self._views[slot][:] = [_view(t, p) for t, p in zip(self.tensors, params)]
        if slot == EVALUATION:
            return
        if grads is not None:
            self._grads[:] = [_view(t, p) for t, p in zip(self.tensors, grads)]
        self._show(TRAINING)
        self._checks = []
        for i in self._params:
            p = self._bound[i].value()
            p.grad = None
            self._checks.append((p, p.data_ptr(), p._version))

    def _check_kinds(self) -> None:
        """A module that was cast or moved between ps.bind and its first step would train on values of its own."""
        for b, (dtype, device) in zip(self._bound, self._kinds):
            now = b.value()
            if (now.dtype, now.device) != (dtype, device):
                raise Error(
                    f"{b.tensor.name} is of {now.dtype} on {now.device} now, and was of {dtype} on {device} when it was "
                    "bound: cast or move the network before ps.bind or fluentps.Optimizer"
                )

    def _show(self, slot: int) -> None:
        """Makes parameters that are not copied views of a slot."""
        views = self._views[slot]
        for i in self._params:
            b = self._bound[i]
            if not b.is_copied():
                b.value().data = views[i]

    def begin(self) -> None:
        for layer in sorted(self._unseen):
            self._load(layer)
        self._todo[:] = [True] * len(self.layers)

    def backward(self, step: "Step", loss: Any, correct: Optional[int], mean: bool) -> None:
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise Error(f"s.backward got {self._what(loss)}, need a tensor of one element: the sum of losses")
        rows, last = step._add(loss.item(), correct, mean)
        if last:
            step._tell(step._loss, step._correct)
            self._left[:] = self._counts
            if self._statistics:
                self._write_statistics(len(step.rows))
            self._sending = True
        try:
            if mean:
                loss.backward(loss.new_full(loss.shape, rows))
            else:
                loss.backward()
        finally:
            self._sending = False
        if last and self._ps.unready:
            self._rest()

    def _rest(self) -> None:
        """Gradients that this backward has not brought: they are 0, or those of former parts of an accumulation."""
        for i in self._params:
            if self._left[self.layer_of[i]] > 0:
                self._copy_gradient(i)
        self._ps.ready_rest()

    def _copy_gradient(self, i: int) -> None:
        gradient = self._bound[i].value().grad
        if gradient is None:
            self._grads[i].zero_()
        else:
            self._grads[i].copy_(gradient)

    def collect(self, step: "Step", loss: Any, correct: Optional[int], mean: bool) -> None:
        n = len(step.rows)
        value = float(loss)
        if step._parts > 1:
            raise Error("s.done(loss) after s.accumulate: call s.backward for each part")
        step._tell(value * n if mean else value, correct)
        for i in self._params:
            self._copy_gradient(i)
            if mean:
                self._grads[i].mul_(n)
        self._write_statistics(n)
        self._ps.ready_rest()

    def _write_statistics(self, rows: int) -> None:
        """The parent averages gradients over rows: rows times the value of a statistic makes its average."""
        for i in self._statistics:
            layer = self.layer_of[i]
            if self._todo[layer]:
                self._reach(layer)
            self._grads[i].copy_(self._bound[i].value()).mul_(rows)

    def end(self) -> None:
        for p, place, version in self._checks:
            if p.data_ptr() != place or p._version != version:
                self._misused(p, place)
            p.grad = None
        self._todo[:] = [False] * len(self.layers)

    def _misused(self, p: torch.Tensor, place: int) -> None:
        name = next(b.tensor.name for b in self._bound if b.parameter is p)
        if p.data_ptr() != place:
            raise Error(
                f"parameter {name} has left the memory that ps.bind gave it: call net.to(), net.half() and the like "
                "before ps.bind, and do not set p.data"
            )
        raise Error(
            f"parameter {name} was changed by the script: the servers change parameters; take out optimizer.step() "
            "and whatever else writes to it"
        )

    def enter(self) -> None:
        self._saved = []
        views = self._views[EVALUATION]
        for i, b in enumerate(self._bound):
            if b.tensor.statistic:
                self._saved.append((b, b.value().clone()))
            if b.is_copied():
                b.value().data.copy_(views[i])
        self._show(EVALUATION)

    def leave(self) -> None:
        self._show(TRAINING)  # copies come back with the next step
        for b, value in self._saved:
            b.value().data.copy_(value)

    def call(self, evaluate: Callable[[List[int]], Any], rows: List[int]) -> Any:
        training: Dict[torch.nn.Module, bool] = {m: m.training for m in self._net.modules()}
        self._net.eval()
        try:
            with torch.no_grad():
                return evaluate(rows)
        finally:
            for module, flag in training.items():
                module.training = flag

    def descend(self, rate: float, rows: int) -> None:
        views = self._views[TRAINING]
        with torch.no_grad():
            for i, t in enumerate(self.tensors):
                if t.statistic:
                    torch.div(self._grads[i], rows, out=views[i])
                else:
                    views[i].add_(self._grads[i], alpha=-rate / rows)

    def release(self) -> None:
        for i in self._params:
            b = self._bound[i]
            if not b.is_copied() and self._views[TRAINING]:
                b.value().data = self._views[TRAINING][i].clone()

    @staticmethod
    def _what(loss: Any) -> str:
        if isinstance(loss, torch.Tensor):
            return f"a tensor of the shape {tuple(loss.shape)}"
        return f"a {type(loss).__name__}"

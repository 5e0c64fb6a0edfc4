"""Arrays of numpy as a model."""

from __future__ import annotations

import mmap
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ._model import EVALUATION, TRAINING, Model, Place, Tensor
from ._wire import Error


class ArrayModel(Model):
    """Arrays by name. `params` has those of the present slot; it stays the same dict."""

    def __init__(self, arrays: Dict[str, Any]) -> None:
        self.tensors = []
        self.params: Dict[str, Any] = {}
        self.grads: Dict[str, Any] = {}
        self._slots: List[Dict[str, Any]] = [{}, {}]
        for name, value in arrays.items():
            layer = name.rpartition(".")[0] or "net"
            if isinstance(value, tuple):
                layer, value = value
            if not isinstance(value, np.ndarray) or value.dtype != np.float32:
                is_of = f"of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
                raise Error(f"{name} is {is_of}, need an array of float32: say numpy.asarray({name}, numpy.float32)")
            if value.size == 0:
                raise Error(f"{name} has the shape {value.shape}, which has no elements: leave it out")
            self.tensors.append(Tensor(layer, name, value.shape))
            self.params[name] = value

    def fill(self, region: mmap.mmap) -> int:
        at = 0
        for t in self.tensors:
            self._view(t, (region, at))[...] = self.params[t.name]
            at += 4 * t.elements
        return at

    def place(self, slot: int, params: Sequence[Place], grads: Optional[Sequence[Place]]) -> None:
        if slot not in (TRAINING, EVALUATION):
            raise Error(f"the parent places slot {slot}, which is not known")
        self._slots[slot] = {t.name: self._view(t, p) for t, p in zip(self.tensors, params)}
        if slot == TRAINING:
            self.params.update(self._slots[slot])
            if grads is not None:
                self.grads.update({t.name: self._view(t, p) for t, p in zip(self.tensors, grads)})

    def clear(self) -> None:
        for g in self.grads.values():
            g.fill(0)

    def enter(self) -> None:
        self.params.update(self._slots[EVALUATION])

    def leave(self) -> None:
        self.params.update(self._slots[TRAINING])

    def descend(self, rate: float, rows: int) -> None:
        for t in self.tensors:
            self.params[t.name] -= np.float32(rate / rows) * self.grads[t.name]

    def release(self) -> None:
        self.params.update({name: p.copy() for name, p in self.params.items()})

    @staticmethod
    def _view(t: Tensor, place: Place) -> Any:
        region, byte = place
        return np.frombuffer(region, np.float32, t.elements, byte).reshape(t.shape)

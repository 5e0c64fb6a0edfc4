"""Which tensors of a torch module are bound, and which are refused."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch

from ._model import Tensor
from ._wire import Error

_WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "DataParallel")
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class Bound(NamedTuple):
    """A tensor of a module. A statistic is looked up in its module each time: forward may put another one there."""

    tensor: Tensor
    parameter: Optional[torch.nn.Parameter]
    module: torch.nn.Module
    key: str

    def value(self) -> torch.Tensor:
        """The parameter or statistic as it is now."""
        found = self.parameter if self.parameter is not None else self.module._buffers[self.key]
        assert found is not None
        return found

    def is_copied(self) -> bool:
        """Whether it has memory of its own, because the shared memory holds float32 of the CPU only."""
        p = self.value()
        return self.tensor.statistic or p.dtype != torch.float32 or p.device.type != "cpu"


def collect(net: Any) -> Tuple[List[Bound], Dict[torch.nn.Module, List[str]]]:
    """All tensors of a module in the order of registration, and the layers that each module reads."""
    if not isinstance(net, torch.nn.Module):
        raise Error(f"ps.bind got a {type(net).__name__}, need a torch.nn.Module")
    bound: List[Bound] = []
    reads: Dict[torch.nn.Module, List[str]] = {}
    owner: Dict[int, str] = {}  # layer by id of the tensor: a tied tensor belongs to its first module
    for path, module in net.named_modules():
        _refuse(path, module)
        layer = path or "net"
        for key, p in module._parameters.items():
            if p is None or not p.requires_grad:
                continue
            name = f"{path}.{key}" if path else key
            _check(name, p, "parameter")
            if id(p) not in owner:
                owner[id(p)] = layer
                bound.append(Bound(Tensor(layer, name, tuple(p.shape)), p, module, key))
            _note(reads, module, owner[id(p)])
        for key, b in module._buffers.items():
            if b is None or key in module._non_persistent_buffers_set or not b.is_floating_point() or b.numel() == 0:
                continue
            name = f"{path}.{key}" if path else key
            if id(b) not in owner:
                owner[id(b)] = layer
                bound.append(Bound(Tensor(layer, name, tuple(b.shape), True), None, module, key))
            _note(reads, module, owner[id(b)])
    return bound, reads


def _note(reads: Dict[torch.nn.Module, List[str]], module: torch.nn.Module, layer: str) -> None:
    layers = reads.setdefault(module, [])
    if layer not in layers:
        layers.append(layer)


def _refuse(path: str, module: torch.nn.Module) -> None:
    kind = type(module)
    if kind.__name__ in _WRAPPERS and kind.__module__.startswith("torch."):
        raise Error(
            f"module {path or 'net'} is a {kind.__name__}, which averages gradients itself: "
            "bind the module that it wraps"
        )
    if getattr(module, "sparse", False) is True:
        raise Error(f"module {path or 'net'} makes sparse gradients, the servers need dense ones: say sparse=False")


def _check(name: str, p: torch.Tensor, what: str) -> None:
    if torch.nn.parameter.is_lazy(p):
        raise Error(f"{what} {name} has no shape yet: run one batch through the module before ps.bind")
    if p.layout != torch.strided:
        raise Error(f"{what} {name} has the layout {p.layout}, need a dense tensor: say {name}.to_dense()")
    if p.dtype == torch.float64:
        raise Error(f"{what} {name} is of float64, the servers hold float32: say net.float() before ps.bind")
    if p.dtype not in _DTYPES:
        raise Error(f"{what} {name} is of {p.dtype}, need float32, bfloat16 or float16: split a complex one in two")
    if p.numel() == 0:
        raise Error(f"{what} {name} has the shape {tuple(p.shape)}, without elements: set its requires_grad to False")

"""What a checkpoint holds of a script beside parameters."""

from __future__ import annotations

import json
import random
import struct
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ._wire import Error

# A state is the length of a JSON text (8 bytes, little endian), the text, and the bytes that it names. Nothing in it is code: whoever can
# write a checkpoint cannot have a script that resumes from it do anything.
_LENGTH = struct.Struct("<Q")
_TAG = "$"  # of a JSON object that stands for another type


class Kept(NamedTuple):
    """How a state is read and given back."""

    get: Callable[[], Any]
    set: Callable[[Any], Any]


def accessors(obj: Any) -> Kept:
    """The two functions of an object that has a state."""
    if isinstance(obj, tuple) and len(obj) == 2 and callable(obj[0]) and callable(obj[1]):
        return Kept(obj[0], obj[1])
    for get, set_ in (("state_dict", "load_state_dict"), ("get_state", "set_state"), ("getstate", "setstate")):
        if callable(getattr(obj, get, None)) and callable(getattr(obj, set_, None)):
            return Kept(getattr(obj, get), getattr(obj, set_))
    bits: Any = getattr(obj, "bit_generator", None)  # a numpy.random.Generator
    if isinstance(getattr(bits, "state", None), dict):
        return Kept(lambda: bits.state, lambda state: setattr(bits, "state", state))
    raise Error(
        f"ps.state got a {type(obj).__name__}, which has no state_dict and load_state_dict, get_state and set_state: "
        "give a pair of functions, (get, set)"
    )


class Registry:
    """The states that checkpoints hold, by name."""

    def __init__(self) -> None:
        self._kept: Dict[str, Kept] = {}
        self._tried = False

    def add(self, obj: Any, name: Optional[str]) -> None:
        kept = accessors(obj)
        if name is None:
            name = kind = "state" if isinstance(obj, tuple) else type(obj).__name__
            number = 1
            while name in self._kept:
                number += 1
                name = f"{kind}{number}"
        if name in self._kept:
            raise Error(f"ps.state({name!r}) is called a second time: give each state a name of its own")
        self._kept[name] = kept

    def save(self) -> bytes:
        """All states, and those of random numbers, as bytes."""
        states = {name: kept.get() for name, kept in self._kept.items()}
        return encode({"states": states, "random": {name: kept.get() for name, kept in randoms().items()}})

    def try_once(self) -> None:
        """Raises Error for what a checkpoint cannot hold, behind the first step: not when hours of training are to be saved."""
        if self._kept and not self._tried:
            self._tried = True
            self.save()

    def restore(self, data: bytes) -> None:
        """Gives states back. They must be those that are registered."""
        all_ = decode(data)
        states, known = all_["states"], self._kept
        for name in states:
            if name not in known:
                raise Error(f"the checkpoint has the state {name!r}, which is not registered: call ps.state before ps.steps")
        for name in known:
            if name not in states:
                raise Error(f"state {name!r} is registered, but the checkpoint has none: resume with the script of the checkpoint")
        for name, kept in known.items():
            kept.set(states[name])
        give_randoms(all_["random"])


def randoms() -> Dict[str, Kept]:
    """The generators that a script draws from unless it has its own: of Python, and of NumPy and torch if it uses them."""
    found = {"python": Kept(random.getstate, random.setstate)}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and hasattr(numpy, "random"):
        found["numpy"] = Kept(numpy.random.get_state, numpy.random.set_state)
    if torch is not None and hasattr(torch, "get_rng_state"):
        found["torch"] = Kept(torch.get_rng_state, torch.set_rng_state)
        if torch.cuda.is_available() and torch.cuda.is_initialized():  # untested: no GPU was at hand
            found["torch.cuda"] = Kept(torch.cuda.get_rng_state, torch.cuda.set_rng_state)
    return found


def give_randoms(states: Dict[str, Any]) -> None:
    """Sets the generators that are there."""
    for name, kept in randoms().items():
        if name in states:
            kept.set(states[name])


def encode(value: Any) -> bytes:
    """A value as bytes: None, numbers, texts, bytes, lists, tuples, sets, dicts, arrays of NumPy and tensors of torch."""
    blobs: List[bytes] = []
    text = json.dumps(_plain(value, "state", blobs), separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *blobs])


def decode(data: bytes) -> Any:
    """The reverse of encode. Raises Error for bytes that are something else."""
    try:
        (length,) = _LENGTH.unpack_from(data)
        at = _LENGTH.size + length
        if at > len(data):
            raise ValueError(f"{length} bytes of text in {len(data)}")
        return _Reader(data, at).value(json.loads(data[_LENGTH.size : at]))
    except Exception as e:  # NumPy and torch raise what they like
        raise Error(f"the state of the checkpoint cannot be read: {type(e).__name__}: {e}") from None


def _blob(data: bytes, blobs: List[bytes]) -> int:
    blobs.append(data)
    return len(data)


def _plain(value: Any, where: str, blobs: List[bytes]) -> Any:
    """A value as JSON. where names it in errors."""
    if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
        return value
    if isinstance(value, dict):
        if all(isinstance(k, str) for k in value) and _TAG not in value:
            return {k: _plain(v, f"{where}[{k!r}]", blobs) for k, v in value.items()}
        pairs = [[_plain(k, where, blobs), _plain(v, f"{where}[{k!r}]", blobs)] for k, v in value.items()]
        return {_TAG: "dict", "pairs": pairs}
    if isinstance(value, list):
        return [_plain(v, f"{where}[{i}]", blobs) for i, v in enumerate(value)]
    if isinstance(value, (tuple, set, frozenset)):
        kind = "tuple" if isinstance(value, tuple) else "set"
        return {_TAG: kind, "items": [_plain(v, f"{where}[{i}]", blobs) for i, v in enumerate(value)]}
    if isinstance(value, (bytes, bytearray)):
        return {_TAG: "bytes", "bytes": _blob(bytes(value), blobs)}
    return _array(value, where, blobs)


def _array(value: Any, where: str, blobs: List[bytes]) -> Any:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        t = value.detach().cpu().contiguous()
        data = t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
        said = {"dtype": str(t.dtype)[len("torch.") :], "shape": list(t.shape), "bytes": _blob(data, blobs)}
        return {_TAG: "tensor", **said}
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biufc":
        a = numpy.ascontiguousarray(value)
        said = {"dtype": a.dtype.str, "shape": list(numpy.shape(value)), "bytes": _blob(a.tobytes(), blobs)}
        return {_TAG: "array", **said}
    raise Error(
        f"{where} is a {type(value).__name__}, which a checkpoint cannot hold: need numbers, texts, bytes, lists, "
        "tuples, sets, dicts, arrays or tensors"
    )


class _Reader:
    """Reads a JSON value, and the bytes that it names, one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def _take(self, n: int) -> bytes:
        if n < 0 or self._at + n > len(self._data):
            raise ValueError(f"{n} bytes at {self._at} of {len(self._data)}")
        self._at += n
        return self._data[self._at - n : self._at]

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(v) for v in plain]
        if not isinstance(plain, dict):
            return plain
        kind = plain.get(_TAG)
        if kind is None:
            return {k: self.value(v) for k, v in plain.items()}
        if kind == "dict":
            return {self.value(k): self.value(v) for k, v in plain["pairs"]}
        if kind in ("tuple", "set"):
            return {"tuple": tuple, "set": set}[kind](self.value(v) for v in plain["items"])
        data = self._take(int(plain["bytes"]))
        if kind == "bytes":
            return data
        if kind == "array":
            import numpy

            return numpy.frombuffer(data, numpy.dtype(plain["dtype"])).reshape(plain["shape"]).copy()
        if kind == "tensor":
            import torch

            dtype = getattr(torch, plain["dtype"])
            if not isinstance(dtype, torch.dtype):
                raise ValueError(f"the dtype {plain['dtype']!r}")
            if not data:
                return torch.empty(plain["shape"], dtype=dtype)
            return torch.frombuffer(bytearray(data), dtype=dtype).reshape(plain["shape"])
        raise ValueError(f"the kind {kind!r}")

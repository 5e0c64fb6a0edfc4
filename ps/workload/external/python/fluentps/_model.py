"""What a session needs of a model, and how its tensors are described."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from ._wire import Error

if TYPE_CHECKING:
    from ._step import Step

Place = Tuple[mmap.mmap, int]  # a region, and the byte where a tensor begins
TRAINING, EVALUATION = 0, 1  # slots


@dataclass(frozen=True)
class Tensor:
    """A parameter or a running statistic."""

    layer: str
    name: str
    shape: Tuple[int, ...]
    statistic: bool = False

    @property
    def elements(self) -> int:
        """The product of the shape; 1 for a scalar."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    def text(self) -> bytes:
        """What stands behind TENSOR. A scalar has the shape 1: the protocol knows no shape without a number."""
        for what, word in (("layer", self.layer), ("tensor", self.name)):
            if not word or "\n" in word:
                raise Error(f"the name of {what} {word!r} is empty or has a line break: rename it")
        return "\n".join((self.layer, self.name, "x".join(map(str, self.shape or (1,))))).encode()


class Model:
    """The tensors of a script. Layers are numbered in the order of `tensors`."""

    tensors: List[Tensor]
    last_is_done = False  # DONE leaves with the last layer that is READY: nobody writes a gradient behind that

    def index(self) -> None:
        """Numbers the layers."""
        self.layers: List[str] = []
        self.layer_of: List[int] = []  # by tensor
        for t in self.tensors:
            if not self.layers or self.layers[-1] != t.layer:
                if t.layer in self.layers:
                    raise Error(
                        f"tensor {t.name} of layer {t.layer} is apart from the others of that layer: "
                        "put them side by side"
                    )
                self.layers.append(t.layer)
            self.layer_of.append(len(self.layers) - 1)

    def fill(self, region: mmap.mmap) -> int:
        """Writes the present values to a region, one tensor behind the other, as float32. Returns the bytes."""
        raise NotImplementedError

    def place(self, slot: int, params: Sequence[Place], grads: Optional[Sequence[Place]]) -> None:
        """Moves parameters and gradients to other memory."""
        raise NotImplementedError

    def begin(self) -> None:
        """A step begins."""

    def end(self) -> None:
        """A step ends."""

    def backward(self, step: "Step", loss: Any, correct: Optional[int], mean: bool) -> None:
        """Step.backward."""
        raise Error("s.backward is for models that ps.bind has: with ps.arrays, call s.forward and s.ready")

    def collect(self, step: "Step", loss: Any, correct: Optional[int], mean: bool) -> None:
        """Step.done, where the script has computed gradients by itself."""
        raise Error("s.done(loss) is for models that ps.bind has: with ps.arrays, call s.forward(loss)")

    def clear(self) -> None:
        """Sets all gradients in shared memory to 0."""

    def enter(self) -> None:
        """An evaluation begins: the parameters are those of slot 1."""

    def leave(self) -> None:
        """An evaluation has ended: the parameters are those of slot 0."""

    def call(self, evaluate: Any, rows: List[int]) -> Any:
        """Calls the script's evaluate."""
        return evaluate(rows)

    def descend(self, rate: float, rows: int) -> None:
        """One step of gradient descent without a parent: p -= rate * g / rows; a statistic becomes g / rows."""
        raise NotImplementedError

    def release(self) -> None:
        """Takes the parameters out of shared memory: the run has ended."""

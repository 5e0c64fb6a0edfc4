"""One step of training or evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple, Union

from ._wire import DONE, Error, packet

if TYPE_CHECKING:
    from ._session import Session

_DONE = packet(DONE)


class Step:
    """A batch of rows: `rows` are their numbers, `iteration` that of the step, `evaluate` is True for test rows."""

    __slots__ = ("rows", "iteration", "evaluate", "_ps", "_told", "_over", "_parts", "_part", "_loss", "_correct")

    def __init__(self, ps: "Session", rows: List[int], iteration: int, evaluate: bool = False) -> None:
        self.rows = rows
        self.iteration = iteration
        self.evaluate = evaluate
        self._ps = ps
        self._told = False  # the loss was sent
        self._over = False  # DONE or RESULT was sent
        self._parts = 1
        self._part = 0  # calls of backward so far
        self._loss = 0.0
        self._correct: Optional[int] = 0

    def __len__(self) -> int:
        return len(self.rows)

    def backward(self, loss: Any, correct: Optional[int] = None, mean: bool = False) -> None:
        """Sends the loss, and computes the gradients. A layer is on its way as soon as its gradients are complete.

        loss: a scalar tensor, the sum over the rows; with mean=True, their mean. correct: how many samples the model
        had right. A step has one call, or as many as accumulate(k) says. Parameters must not be used afterwards in
        this step: servers may change them.
        """
        self._check("s.backward", training=True)
        self._ps.model.backward(self, loss, correct, mean)

    def done(self, loss: Any = None, correct: Optional[int] = None, mean: bool = False) -> None:
        """Ends the step; the generator does so too.

        After a plain loss.backward(), without s.backward, the loss must be given: a number or a scalar tensor.
        Gradients are in torch's own memory then, because the protocol wants the loss before the first gradient:
        this call sends the loss, and copies all gradients once. Servers get nothing while backward still runs: with
        s.backward they do. With mean=True, loss and gradients are means over the rows.
        """
        if self._over and loss is None:
            return
        self._check("s.done", training=True)
        if loss is not None:
            if self._told or self._part:
                raise Error("s.done(loss) after s.backward or s.forward in one step: the loss is known, call s.done()")
            self._ps.model.collect(self, loss, correct, mean)
        self._finish()

    def accumulate(self, k: int) -> None:
        """The gradient of this step is the sum of k calls of s.backward, each for the rows of one of s.parts(k).

        The loss is sent when the last call begins.
        """
        self._check("s.accumulate", training=True)
        if self._told or self._part:
            raise Error("s.accumulate after s.backward: call it before the first")
        if not 1 <= k <= len(self.rows):
            raise Error(f"s.accumulate({k}): need 1 to {len(self.rows)}, the rows of this step")
        self._parts = k

    def parts(self, k: int) -> Iterator[List[int]]:
        """The rows in k parts that differ by at most one row in length. It calls accumulate(k)."""
        self.accumulate(k)
        for i in range(k):
            first, end = self._bounds(i)
            yield self.rows[first:end]

    def report(self, loss_sum: Any, correct: Optional[int] = None) -> None:
        """Ends a step with `evaluate` True: the sum of the losses, and the samples that the model had right."""
        self._check("s.report", training=False)
        self._ps.result(loss_sum, correct)
        self._over = True

    @property
    def params(self) -> Dict[str, Any]:
        """With ps.arrays: the parameters by name, float32. Those of layer l may be read after s.wait(l)."""
        return self._ps.arrays_of("params")

    @property
    def grads(self) -> Dict[str, Any]:
        """With ps.arrays: gradients by name, float32. They may be written after s.forward: it sets them to 0."""
        return self._ps.arrays_of("grads")

    def wait(self, layer: Union[None, int, str] = None) -> None:
        """Waits until the parameters of a layer, by name or number, may be read; without a layer, those of all."""
        if not self.evaluate:
            self._ps.wait(self._ps.number(layer))

    def forward(self, loss: float, correct: Optional[int] = None) -> None:
        """With ps.arrays: sends the sum of the losses, waits until gradients may be written, and sets them to 0."""
        self._check("s.forward", training=True)
        if self._told:
            raise Error("s.forward a second time in one step: call it once, with the sum of all losses")
        self._tell(float(loss), correct)
        self._ps.model.clear()

    def ready(self, layer: Union[int, str]) -> None:
        """With ps.arrays: the gradients of a layer, by name or number, are complete, its parameters no longer read.

        The generator does the rest of the layers.
        """
        self._check("s.ready", training=True)
        if not self._told:
            raise Error("s.ready before s.forward: gradients may be written only after s.forward")
        self._ps.ready(self._ps.number(layer))

    def _bounds(self, part: int) -> Tuple[int, int]:
        n = len(self.rows)
        return n * part // self._parts, n * (part + 1) // self._parts

    def _add(self, loss: float, correct: Optional[int], mean: bool) -> Tuple[int, bool]:
        """Counts one call of backward. Returns its rows, and whether it is the last."""
        if self._part == self._parts:
            raise Error(
                f"s.backward is called more than {self._parts} times in one step: call s.accumulate(k) before it"
            )
        first, end = self._bounds(self._part)
        self._part += 1
        self._loss += loss * (end - first) if mean else loss
        self._correct = None if correct is None or self._correct is None else self._correct + int(correct)
        return end - first, self._part == self._parts

    def _tell(self, loss: float, correct: Optional[int]) -> None:
        """Sends FORWARD, and waits for GO."""
        self._told = True
        self._ps.forward(loss, correct, len(self.rows))

    def _check(self, call: str, training: bool) -> None:
        if self._over or self._ps.step is not self:
            raise Error(f"{call} on a step that has ended: use the step that the generator has yielded last")
        if self.evaluate == training:
            raise Error(
                f"{call} on a step with evaluate {self.evaluate}: "
                + ("call s.report(loss_sum)" if self.evaluate else "call s.backward(loss)")
            )

    def _finish(self) -> None:
        if self._over:
            return
        if self.evaluate:
            raise Error("an evaluation step has ended without a result: call s.report(loss_sum, correct)")
        if not self._told:
            had = f"{self._part} of {self._parts} calls of s.backward" if self._part else "no loss"
            raise Error(
                f"step {self.iteration} has ended with {had}: call s.backward(loss), or "
                "loss.backward() and s.done(loss)"
            )
        ps = self._ps
        if ps.unready:
            ps.ready_rest()
        ps.model.end()
        self._over = True
        if not ps.model.last_is_done:
            ps.link.send(_DONE)

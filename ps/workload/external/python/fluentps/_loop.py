"""The steps of a script that has a loop of its own, and picks its samples itself."""

from __future__ import annotations

import atexit
import itertools
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, List, Optional

from ._alone import EVAL_MAX, AloneLink
from ._wire import Error

if TYPE_CHECKING:
    from ._session import Session

RUN, SCRIPT = "run", "script"  # data.sampler

_EARLY = (
    b"the script has ended before the run: train.stop of the run is beyond the script's own loop. "
    b"Say for batch in ps.loop(loader), which repeats the loader until the run ends, or lower train.stop"
)


class RunEnded(SystemExit):
    """The run has ended, and the script goes on. Unless it is caught, the process ends with code 0."""

    def __init__(self) -> None:
        super().__init__(0)

    def __str__(self) -> str:
        return "the run has ended: ps.running is False, and ps.loop(loader) ends by itself"


class Loop:
    """What the script calls in its loop."""

    begun = False

    @property
    def closed(self) -> bool:
        """Whether the run has ended."""
        raise NotImplementedError

    def begin(self) -> None:
        """Waits for the first step, once."""
        raise NotImplementedError

    def step(self, loss: Any, correct: Optional[int], mean: bool) -> None:
        """Ends the present step, and waits until the next may begin, or until the run has ended."""
        raise NotImplementedError

    def passed(self, n: int) -> bool:
        """Pass n over the loader has ended. Says whether it was the last."""
        return False

    def loop(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Session.loop."""
        self.begin()
        sampler: Any = getattr(loader, "sampler", None)
        for n in itertools.count():
            if hasattr(sampler, "set_epoch"):  # else a DistributedSampler has the same order in each pass
                sampler.set_epoch(n)
            empty = True
            for batch in loader:
                empty = False
                if not self.closed:
                    yield batch
                if self.closed:
                    return
            if empty:
                raise Error(
                    f"ps.loop got no batch in pass {n + 1} over {type(loader).__name__}: give it what can be iterated "
                    "again and has batches, such as a DataLoader"
                )
            if self.passed(n + 1):
                return


class OwnLoop(Loop):
    """Takes the steps of a run one by one. The script calls it, where ps.steps would call the script."""

    def __init__(
        self,
        ps: "Session",
        evaluate: Optional[Callable[[List[int]], Any]],
        rows: Optional[int],
        test_rows: Optional[int],
    ) -> None:
        self._ps = ps
        self._evaluate = evaluate
        if isinstance(ps.link, AloneLink):
            ps.link.own_loop = True
            ps.test_rows = test_rows or 0
        else:
            self._check()
            atexit.register(ps.link.fail, _EARLY)  # it comes before that of ps.watch, which speaks of ps.steps
        ps.own = self
        self._steps = ps.steps(rows, test_rows, evaluate)

    def _check(self) -> None:
        ps = self._ps
        if ps.sampler != SCRIPT:
            raise Error(
                f"data.sampler is {ps.sampler}: the run picks the rows, which a script with fluentps.Optimizer never "
                "asks for. Set data: {sampler: script} in the YAML, or train with ps.steps"
            )
        if self._evaluate is None and ps.test_rows > 0:
            raise Error(
                f"fluentps.Optimizer has no evaluate, but the run evaluates {ps.test_rows} test rows: say "
                "fluentps.Optimizer(ps, net, evaluate=evaluate), or set data.test_rows: 0 in the YAML"
            )

    @property
    def closed(self) -> bool:
        return self._ps.link.closed

    def begin(self) -> None:
        if not self.begun:
            self.begun = True
            next(self._steps, None)

    def step(self, loss: Any, correct: Optional[int], mean: bool) -> None:
        ps = self._ps
        if ps.step is None:
            raise Error("opt.step after an error in the step before: let that error end the script")
        ps.step.done(loss, correct, mean)
        next(self._steps, None)

    def passed(self, n: int) -> bool:
        """Without a parent, it tells of the pass. Alone says how many there are."""
        ps = self._ps
        if not isinstance(ps.link, AloneLink):
            return False
        said = ps.link.told(n)
        if ps.test_rows and self._evaluate is not None:
            total, hits = 0.0, 0
            for first in range(0, ps.test_rows, EVAL_MAX):
                rows = list(range(first, min(ps.test_rows, first + EVAL_MAX)))
                answer = ps.model.call(self._evaluate, rows)
                loss, correct = answer if isinstance(answer, (tuple, list)) else (answer, 0)
                total, hits = total + float(loss), hits + int(correct)
            said += f", of test rows {total / ps.test_rows:.4f}, right {hits} of {ps.test_rows}"
        print(said, flush=True)
        if n < ps.link.options.epochs:
            return False
        ps.model.release()
        ps.link.close()
        return True

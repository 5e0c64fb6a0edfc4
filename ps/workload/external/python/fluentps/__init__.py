"""A script in Python that trains under the servers of fluentps.

    import fluentps as fp, torch.nn.functional as F

    ps = fp.join()
    net = Net()
    ps.bind(net)
    for s in ps.steps(evaluate=evaluate):
        x, y = X[s.rows], Y[s.rows]
        s.backward(F.cross_entropy(net(x), y, reduction="sum"))

The servers choose the rows, and change the parameters. The script computes losses and gradients. It has no optimizer.
With `data.sampler: script` it keeps its own loop and DataLoader, and `fp.Optimizer(ps, net)` stands for its optimizer.
Without a parent, `fp.join(alone=fp.Alone(...))` trains the same script in one process.
"""

from typing import TYPE_CHECKING, Any

from ._alone import Alone
from ._loop import RunEnded
from ._session import Session, join
from ._step import Step
from ._wire import Error, ParentGone

if TYPE_CHECKING:
    from ._ddp import ddp_hook as ddp_hook
    from ._evaluator import evaluator as evaluator
    from ._optimizer import Optimizer as Optimizer

__all__ = ["Alone", "Error", "ParentGone", "RunEnded", "Session", "Step", "join"]


def __getattr__(name: str) -> Any:
    if name == "Optimizer":  # these need torch, and scripts with ps.arrays do without
        from ._optimizer import Optimizer

        return Optimizer
    if name == "ddp_hook":
        from ._ddp import ddp_hook

        return ddp_hook
    if name == "evaluator":
        from ._evaluator import evaluator

        return evaluator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

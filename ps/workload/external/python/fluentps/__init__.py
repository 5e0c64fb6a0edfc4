"""A script in Python that trains under the servers of fluentps.

    import fluentps as fp, torch.nn.functional as F

    ps = fp.join()
    net = Net()
    ps.bind(net)
    for s in ps.steps(evaluate=evaluate):
        x, y = X[s.rows], Y[s.rows]
        s.backward(F.cross_entropy(net(x), y, reduction="sum"))

The servers choose the rows, and change the parameters. The script computes losses and gradients. It has no optimizer.
Without a parent, `fp.join(alone=fp.Alone(...))` trains the same script in one process.
"""

from ._alone import Alone
from ._session import Session, join
from ._step import Step
from ._wire import Error, ParentGone

__all__ = ["Alone", "Error", "ParentGone", "Session", "Step", "join"]

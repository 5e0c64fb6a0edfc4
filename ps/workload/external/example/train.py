"""A small network on a spiral, which trains under the servers of fluentps; or alone, if it is started by hand."""

import math

import fluentps as fp
import torch
import torch.nn.functional as F

torch.manual_seed(1)


def spiral(rows, seed):
    """Points of three arms, with their arm: (rows x 2 float32, rows int64)."""
    g = torch.Generator().manual_seed(seed)
    arm = torch.randint(3, (rows,), generator=g)
    radius = torch.rand(rows, generator=g)
    angle = 4 * radius + arm * 2 * math.pi / 3 + 0.15 * torch.randn(rows, generator=g)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), arm


X, Y = spiral(6000, 1)
X_test, Y_test = spiral(1000, 2)
net = torch.nn.Sequential(
    torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)
)

ps = fp.join()
ps.bind(net)


def evaluate(rows):
    out = net(X_test[rows])
    return F.cross_entropy(out, Y_test[rows], reduction="sum").item(), int((out.argmax(1) == Y_test[rows]).sum())


for s in ps.steps(rows=len(X), test_rows=len(X_test), evaluate=evaluate):
    loss = F.cross_entropy(net(X[s.rows]), Y[s.rows], reduction="sum")
    s.backward(loss)

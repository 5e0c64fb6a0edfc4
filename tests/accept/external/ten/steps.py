"""A network on a spiral, as people write it in torch."""

import math

import fluentps as fp
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import TensorDataset, default_collate


def spiral(rows, seed):
    """Points of three arms, with their arm."""
    g = torch.Generator().manual_seed(seed)
    arm, radius = torch.randint(3, (rows,), generator=g), torch.rand(rows, generator=g)
    angle = 4 * radius + arm * 2 * math.pi / 3 + 0.15 * torch.randn(rows, generator=g)
    return TensorDataset(torch.stack([radius * angle.cos(), radius * angle.sin()], 1), arm)


torch.manual_seed(1)
train, test = spiral(6000, 1), spiral(1000, 2)
net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
ps = fp.join()
ps.bind(net)

for s in ps.steps(rows=len(train), test_rows=len(test), evaluate=fp.evaluator(net, test)):
    x, y = default_collate([train[i] for i in s.rows])
    s.backward(F.cross_entropy(net(x), y, reduction="sum"))

net.eval()
x, y = test.tensors
print(f"accuracy {(net(x).argmax(1) == y).float().mean().item():.4f}")

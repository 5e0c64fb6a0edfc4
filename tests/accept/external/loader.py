"""A program whose batches come from a DataLoader with four forked workers, which run until it ends."""

import itertools

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import fluentps as fp
import nets

torch.set_num_threads(1)
ps = fp.join()
train, _ = nets.generated((32,), rows=512, test_rows=64)
net = nets.net("mlp-32-16-10")
ps.bind(net)
batches = None
for s in ps.steps(rows=len(train), evaluate=lambda rows: (0.0, 0)):
    if batches is None:
        loader = DataLoader(TensorDataset(train.x, train.y), batch_size=8, num_workers=4, persistent_workers=True)
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
    x, y = next(batches)
    s.backward(F.cross_entropy(net(x), y, reduction="sum"), correct=0)

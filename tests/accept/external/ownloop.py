"""A program with an MLP on generated rows, for the script beside it.

    ownloop.py steps FOLDER    trains by ps.steps, and writes the rows of each step to FOLDER
    ownloop.py again FOLDER    has a loop of its own, over the rows that are in FOLDER
    ownloop.py loader          has a loop of its own, over a DataLoader, as a script in torch has it
"""

import json
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import fluentps as fp
import nets

torch.set_num_threads(1)
mode, folder = sys.argv[1], sys.argv[-1]
ps = fp.join()
train, test = nets.generated((32,))
net = nets.net("mlp-32-64-10")


def evaluate(rows):
    x, y = test.take(rows)
    out = net(x)
    return F.cross_entropy(out, y, reduction="sum"), int((out.argmax(1) == y).sum())


def steps():
    ps.bind(net)
    with open(f"{folder}/rows.{ps.worker}", "w") as file:
        for s in ps.steps(rows=len(train), test_rows=len(test), evaluate=evaluate):
            x, y = train.take(s.rows)
            s.backward(F.cross_entropy(net(x), y, reduction="sum"))
            print(json.dumps(s.rows), file=file)


def batches():
    """The samples of this worker, pass by pass."""
    if mode == "again":
        with open(f"{folder}/rows.{ps.worker}") as file:
            yield from (train.take(json.loads(line)) for line in file)
        return
    sampler = DistributedSampler(train, num_replicas=ps.workers, rank=ps.worker)
    loader = DataLoader(TensorDataset(train.x, train.y), batch_size=ps.batch_max, sampler=sampler)
    for epoch in range(1000):
        sampler.set_epoch(epoch)
        yield from loader


def own_loop():
    opt = fp.Optimizer(ps, net, evaluate=evaluate)
    for x, y in batches():
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step(loss)


if mode == "steps":
    steps()
else:
    own_loop()

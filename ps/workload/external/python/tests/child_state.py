"""A network whose training draws from every generator. The first argument names the case."""

import random
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import fluentps as fp

CASE = sys.argv[1] if len(sys.argv) > 1 else ""


class Counter:
    def __init__(self):
        self.steps, self.best = 0, float("nan")

    def state_dict(self):
        return {"steps": self.steps, "best": self.best, "lengths": (1, 2)}

    def load_state_dict(self, state):
        assert state["lengths"] == (1, 2) and state["best"] != state["best"], state
        self.steps = state["steps"]


def main():
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 4))
    x = torch.randn(100, 6, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long()
    mine, theirs, counter = torch.Generator().manual_seed(3), np.random.default_rng(4), Counter()
    ps = fp.join()
    ps.bind(net)
    if CASE != "forgets":
        ps.state(mine)
        ps.state(theirs, "theirs")
    if CASE != "lacks":
        ps.state(counter)
    if CASE == "strange":
        ps.state((lambda: {"net": [net]}, print))

    def evaluate(rows):
        torch.rand(3), np.random.rand(2), random.random()  # training must not notice
        return F.cross_entropy(net(x[rows]), y[rows], reduction="sum").item(), 0

    for s in ps.steps(evaluate=evaluate):
        noise = torch.randn(len(s), 6, generator=mine) * float(theirs.random()) + float(np.random.rand()) * random.random()
        counter.steps += 1
        s.backward(F.cross_entropy(net(x[s.rows] + 0.1 * noise) * (1 + counter.steps / 8), y[s.rows], reduction="sum"))
        print("step", counter.steps, flush=True)


main()

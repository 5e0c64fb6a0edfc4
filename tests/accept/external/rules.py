"""Least squares, by a rule of torch.optim, or muon by its definition, or by that of fluentps' servers.

    rules.py DIR                      trains under fluentps; the rows of each step go to DIR/rows.WORKER
    rules.py DIR --rule NAME ...      alone: torch's rule in float64, from the same parameters, on the rows of all workers together; how far
                                      the parameters in DIR/model.npz are from its own: the largest |a-b| / (1+|b|). With --clip the gradient of each worker is clipped
                                      before their mean is taken; the number of those clipped is told last
"""

import argparse
import os

import torch

ROWS, INPUTS, OUTPUTS = 512, 24, 16


def problem(dtype):
    g = torch.Generator().manual_seed(5)
    x = torch.randn(ROWS, INPUTS, generator=g)
    y = torch.randn(ROWS, OUTPUTS, generator=g) + 3
    net = torch.nn.Sequential()
    net.add_module("fc", torch.nn.Linear(INPUTS, OUTPUTS))
    with torch.no_grad():
        net.fc.weight.copy_(torch.randn(OUTPUTS, INPUTS, generator=g))
        net.fc.bias.zero_()
    return net.to(dtype), x.to(dtype), y.to(dtype)


def loss_of(net, x, y, rows):
    rows = torch.as_tensor(rows)
    return 0.5 * ((net(x[rows]) - y[rows]) ** 2).sum()


def under_fluentps(folder):
    import fluentps as fp

    ps = fp.join()
    net, x, y = problem(torch.float32)
    ps.bind(net)
    with open(f"{folder}/rows.{ps.worker}", "w") as log:
        for s in ps.steps(rows=ROWS):
            rows = [int(r) for r in s.rows]
            print(*rows, file=log, flush=True)
            s.backward(loss_of(net, x, y, rows))


class Muon(torch.optim.Optimizer):
    """Muon of matrices (Jordan et al. 2024), in the precision of the parameters: not every torch has it, and none computes it so."""

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for w in group["params"]:
                    mean = self.state[w].setdefault("mean", torch.zeros_like(w))
                    mean += 0.05 * (w.grad - mean)
                    along = self.orthogonal(0.05 * w.grad + 0.95 * mean)
                    rows, columns = w.shape
                    w *= 1 - group["lr"] * group["weight_decay"]
                    w -= group["lr"] * max(1, rows / columns) ** 0.5 * along

    @staticmethod
    def orthogonal(x):
        x = x / (torch.linalg.norm(x) + 1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        return x


class Several:
    def __init__(self, *rules):
        self.rules = rules

    def zero_grad(self):
        for r in self.rules:
            r.zero_grad()

    def step(self):
        for r in self.rules:
            r.step()


def rule_of(o, net):
    if o.rule == "muon":
        others = torch.optim.AdamW([net.fc.bias], lr=0.01, weight_decay=0.0)
        return Several(Muon([net.fc.weight], {"lr": o.lr, "weight_decay": o.decay}), others)
    decayed = [{"params": [net.fc.weight], "weight_decay": o.decay}, {"params": [net.fc.bias], "weight_decay": 0.0}]
    if o.rule in ("adam", "adamw"):
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[o.rule]
        return kind(decayed, lr=o.lr)
    momentum = {"sgd": 0.0, "momentum": 0.9, "nesterov": 0.9}[o.rule]
    return torch.optim.SGD(decayed, lr=o.lr, momentum=momentum, nesterov=o.rule == "nesterov")


def clipped_mean(o, net, x, y, lists):
    """Makes the gradients the mean of those of all workers, each clipped alone. Returns how many were too long."""
    too_long = 0
    parameters = list(net.parameters())
    mean = [torch.zeros_like(p) for p in parameters]
    for rows in lists:
        net.zero_grad()
        (loss_of(net, x, y, rows) / len(rows)).backward()
        too_long += int(torch.nn.utils.clip_grad_norm_(parameters, o.clip) > o.clip)
        for m, p in zip(mean, parameters):
            m += p.grad / len(lists)
    for m, p in zip(mean, parameters):
        p.grad = m
    return too_long


def alone(o):
    import numpy

    net, x, y = problem(torch.float64)
    begun = {name: p.detach().clone() for name, p in net.named_parameters()}
    steps, clipped = [], 0
    for w in range(o.workers):
        with open(f"{o.folder}/rows.{w}") as log:
            steps.append([[int(r) for r in line.split()] for line in log])
    rule = rule_of(o, net)
    for lists in list(zip(*steps))[: o.steps]:
        rows = [r for rows in lists for r in rows]
        rule.zero_grad()
        if o.clip:
            clipped += clipped_mean(o, net, x, y, lists)
        else:
            (loss_of(net, x, y, rows) / len(rows)).backward()
        rule.step()
    held = numpy.load(f"{o.folder}/model.npz")
    apart = moved = 0.0
    for name, p in net.named_parameters():
        want, got = p.detach(), torch.from_numpy(held[name]).double()
        apart = max(apart, ((got - want).abs() / (1 + want.abs())).max().item())
        moved = max(moved, (want - begun[name]).abs().max().item())
    print(f"{min(map(len, steps))} {apart:.3g} {moved:.3g} {clipped}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rule")
    parser.add_argument("--lr", type=float)
    parser.add_argument("--decay", type=float)
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--steps", type=int)
    o = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    alone(o) if o.rule else under_fluentps(o.folder)


if __name__ == "__main__":
    main()

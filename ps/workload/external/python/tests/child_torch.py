"""Small models of torch. The first argument names the case."""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import fluentps as fp

CASE = sys.argv[1] if len(sys.argv) > 1 else ""


def data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return x, (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()


class Tied(nn.Module):
    """The second and the last layer have one weight; a third is frozen, a fourth is not used."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 8)
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.unused = nn.Linear(3, 2)
        self.last = nn.Linear(8, 8, bias=False)
        self.last.weight = self.second.weight
        self.out = nn.Linear(8, 4)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        x = torch.tanh(self.first(x))
        return self.out(self.last(torch.tanh(self.frozen(self.second(x))))) * self.scale


class Attention(nn.Module):
    """MultiheadAttention reads the weight of out_proj without calling that module."""

    def __init__(self):
        super().__init__()
        self.inside = nn.Linear(6, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        x = self.inside(x).unsqueeze(1)
        return self.out(self.attention(x, x, x, need_weights=False)[0].squeeze(1))


class Low(nn.Module):
    """A layer in bfloat16 between two in float32."""

    def __init__(self):
        super().__init__()
        self.first, self.low, self.out = nn.Linear(6, 8), nn.Linear(8, 8).to(torch.bfloat16), nn.Linear(8, 4)

    def forward(self, x):
        return self.out(self.low(torch.tanh(self.first(x)).to(torch.bfloat16)).float())


def build(case):
    torch.manual_seed(7)
    if case in ("tied", "tied plain", "tied parts"):
        return Tied()
    if case == "attention":
        return Attention()
    if case == "low":
        return Low()
    if case.startswith("norm"):
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.BatchNorm1d(8, affine=False),
                             nn.Linear(8, 4))
    if case == "weightnorm":
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(6, 8)), nn.Tanh(), nn.Linear(8, 4))
    if case == "conv":
        return nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4))
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))


def broken(case):
    """Modules that are refused."""
    if case == "float64":
        return build("").double()
    if case == "complex":
        return nn.Linear(2, 2).to(torch.complex64)
    if case == "sparse":
        return nn.Embedding(5, 2, sparse=True)
    if case == "lazy":
        return nn.LazyLinear(3)
    if case == "frozen":
        return build("").requires_grad_(False)
    if case == "wrapped":
        return nn.DataParallel(build(""))
    return None


def step(s, net, optimizer, X, Y, k):
    x, y = X[s.rows], Y[s.rows]
    mean = CASE == "mean" or CASE == "plain mean"
    if CASE.endswith("parts"):
        for rows in s.parts(3) if len(s.rows) >= 3 else [s.rows]:
            out = net(X[rows])
            s.backward(F.cross_entropy(out, Y[rows]), int((out.argmax(1) == Y[rows]).sum()), mean=True)
        return
    if CASE == "habits":
        optimizer.zero_grad()
        net.zero_grad(set_to_none=k % 2 == 0)
    if CASE == "skips" and k == 1:
        return
    out = net(x)
    loss = F.cross_entropy(out, y, reduction="mean" if mean else "sum")
    hits = int((out.argmax(1) == y).sum())
    if "plain" in CASE:
        loss.backward()
        s.done(loss, hits, mean=mean)
        s.done()
        return
    s.backward(loss, hits, mean=mean)
    if CASE == "habits":
        assert all(p.grad is not None for p in net.parameters())
        optimizer.zero_grad(set_to_none=True)
    if CASE == "optimizer":
        optimizer.step()
    if CASE == "moves":
        net[0].weight.data = net[0].weight.data.clone()
    if CASE == "two backward":
        s.backward(loss)


def main():
    torch.set_num_threads(1)
    X, Y = data(100, 1)
    XT, YT = data(50, 2)
    ps = fp.join(alone=fp.Alone(batch=20, epochs=2, lr=0.5, seed=4))
    net = broken(CASE) or build(CASE)
    ps.bind(net)
    if CASE == "cast":
        net.double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    if CASE == "norm frozen":
        net[1].eval()

    def evaluate(rows):
        assert not net.training and not torch.is_grad_enabled()
        out = net(XT[rows])
        return F.cross_entropy(out, YT[rows], reduction="sum").item(), int((out.argmax(1) == YT[rows]).sum())

    k, mean = 0, None  # mean: of batches, as the last step has left it; an evaluation does not change it
    for s in ps.steps(rows=100, test_rows=50, evaluate=evaluate):
        assert net.training and torch.is_grad_enabled()
        if CASE == "norm frozen":
            assert not net[1].training
        if mean is not None:
            assert torch.equal(net[1].running_mean, mean)
        step(s, net, optimizer, X, Y, k)
        if CASE.startswith("norm"):
            mean = net[1].running_mean.clone()
        k += 1
    print(" ".join(f"{v:.9e}" for v in next(iter(net.parameters())).flatten().tolist()))


if __name__ == "__main__":
    main()

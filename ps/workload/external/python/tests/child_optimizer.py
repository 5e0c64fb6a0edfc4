"""Scripts with a loop of their own. The first argument names the case; the networks are those of child_torch."""

import sys

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import fluentps as fp
from tests.child_torch import build, data
from tests.rows import BATCHES

CASE = sys.argv[1] if len(sys.argv) > 1 else ""


def step(opt, net, x, y):
    """One step as a script in torch has it."""
    if CASE != "never zero":
        opt.zero_grad(**({"set_to_none": False} if CASE == "zeros" else {}))
    if CASE == "closure":

        def closure():
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            return loss

        assert opt.step(closure).item() > 0
        return
    if CASE == "accumulates":
        total = 0.0
        for i in range(0, len(x), 2):
            loss = F.cross_entropy(net(x[i : i + 2]), y[i : i + 2], reduction="sum") / len(x)
            loss.backward()
            total += loss.item()
        opt.step(total)
        return
    out = net(x)
    loss = F.cross_entropy(out, y, reduction="sum" if CASE == "sums" else "mean")
    loss.backward()
    if CASE == "clips":
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    before = [None if p.grad is None else p.grad.clone() for p in net.parameters()]
    if CASE == "sums":
        opt.step(loss, mean=False)
    else:
        opt.step(loss, correct=int((out.argmax(1) == y).sum()))
    for p, g in zip(net.parameters(), before):
        assert (p.grad is None) == (g is None) and (g is None or torch.equal(p.grad, g))


def told(name, call, *args, **kw):
    """Prints what is said of a call that is refused."""
    try:
        call(*args, **kw)
    except fp.Error as e:
        print(f"{name}: {e}")
    else:
        print(f"{name}: was not refused")


def refused(ps, opt, net, x, y):
    """Calls that are refused. None of them does harm to the step that follows."""
    told("first", opt.step, torch.tensor(1.0))
    told("parameters", fp.Optimizer, ps, net.parameters())
    told("no run", fp.Optimizer, None, net)
    told("twice", fp.Optimizer, ps, net)
    told("empty", lambda: list(ps.loop([])))
    loss = F.cross_entropy(net(x), y)
    told("no gradient", opt.step, loss)
    told("closure", opt.step, lambda: None)
    loss.backward()
    told("no loss", opt.step)
    told("shape", opt.step, F.cross_entropy(net(x), y, reduction="none"))
    told("text", opt.step, "loss")
    told("horovod", fp.Optimizer, ps, net, lr=0.1)
    told("wraps", fp.Optimizer, torch.optim.SGD(net.parameters(), lr=0.1), net)
    told("scheduler", torch.optim.lr_scheduler.CosineAnnealingLR, opt, 10)
    told("plateau", torch.optim.lr_scheduler.ReduceLROnPlateau, opt, "min")
    told("group", opt.add_param_group, {"params": []})
    torch.cuda.amp.grad_scaler.amp_definitely_not_available = lambda: False
    scaler = torch.cuda.amp.GradScaler()
    scaler._lazy_init_scale_growth_tracker(torch.device("cpu"))
    told("scaler", scaler.step, opt)
    opt.load_state_dict(opt.state_dict())
    told("state", opt.load_state_dict, torch.optim.SGD(net.parameters(), lr=0.1).state_dict())
    net.zero_grad()


def main():
    torch.set_num_threads(1)
    X, Y = data(100, 1)
    XT, YT = data(50, 2)
    ps = fp.join(alone=fp.Alone(batch=20, epochs=2, lr=0.5))
    net = build(CASE)

    def evaluate(rows):
        assert not net.training and not torch.is_grad_enabled()
        out = net(XT[rows])
        return F.cross_entropy(out, YT[rows], reduction="sum"), int((out.argmax(1) == YT[rows]).sum())

    if CASE == "refused":
        told("no optimizer", ps.loop, [1])
    opt = fp.Optimizer(ps, net, evaluate=None if CASE == "no evaluate" else evaluate, test_rows=50)
    if CASE == "loads":
        net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})
    assert "servers" in repr(opt)
    if CASE == "refused":
        refused(ps, opt, net, X[BATCHES[0]], Y[BATCHES[0]])
    if CASE == "generator":
        for rows in ps.loop(rows for rows in BATCHES):
            step(opt, net, X[rows], Y[rows])
    if CASE.startswith("loop"):
        loops(ps, opt, net, X, Y)
        return
    if CASE == "asks":
        while ps.running:
            step(opt, net, X[BATCHES[0]], Y[BATCHES[0]])
        print("asked")
        return
    for epoch in range(1 if CASE == "short" else 100):
        for rows in BATCHES:
            if CASE == "raises":
                raise ValueError("the sample is too odd")
            step(opt, net, X[rows], Y[rows])
            if CASE == "validates":
                net.eval()
                with torch.no_grad():
                    net(XT)
                net.train()
            if CASE == "alone ends":
                print(" ".join(f"{v:.9e}" for v in next(net.parameters()).flatten().tolist()))
                return
    print("behind the loop")


def loops(ps, opt, net, X, Y):
    """ps.loop over a DataLoader with workers and a sampler by ps.worker."""
    set_ = TensorDataset(X, Y, torch.arange(len(X)))
    sampler = DistributedSampler(set_, num_replicas=ps.workers, rank=ps.worker, seed=3)
    seen = []
    for x, y, rows in ps.loop(DataLoader(set_, batch_size=20, sampler=sampler, num_workers=CASE.count("workers"))):
        step(opt, net, x, y)
        seen += rows.tolist()
    print("seen", *seen)
    print(" ".join(f"{v:.9e}" for v in next(net.parameters()).flatten().tolist()))
    assert not ps.running


if __name__ == "__main__":
    main()

"""A user's program for the scripts beside it.

    train.py MODEL DATA                         trains under fluentps
    train.py MODEL DATA --plain BATCH --steps N alone: torch and its SGD, the same batches; with --ddp 2 in two processes, or, with
                                                --rank R and --store tcp://HOST:PORT, as one of two
"""

import argparse
import os
import socket
import time

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed
import torch.multiprocessing
import torch.nn.functional as F

import nets

FIRST = 50  # steps before those that are timed


class Clock:
    """Microseconds of a step behind the first ones: on average, of this process's processor, and the median."""

    def __init__(self):
        self.times, self.cpu = [], []

    def step(self):
        self.times.append(time.perf_counter())
        self.cpu.append(time.process_time())

    def say(self, who):
        first = min(FIRST, len(self.times) // 5)
        t, cpu = self.times[first:], self.cpu[first:]
        if len(t) > 1:
            each = sorted(b - a for a, b in zip(t, t[1:]))
            each_us, cpu_us = ((u[-1] - u[0]) / (len(t) - 1) * 1e6 for u in (t, cpu))
            print(f"{who}: us_per_step {each_us:.1f} cpu {cpu_us:.1f} median {each[len(each) // 2] * 1e6:.1f}", flush=True)


def under_fluentps(o):
    import fluentps as fp

    ps = fp.join()
    net, (train, test) = nets.net(o.model), nets.data(o.data, o.model)
    if o.load:
        nets.load(net, o.load)
    ps.bind(net)

    def evaluate(rows):
        x, y = test.take(rows)
        out = net(x)
        return F.cross_entropy(out, y, reduction="sum"), int((out.argmax(1) == y).sum())

    clock = Clock()
    for s in ps.steps(rows=len(train), evaluate=evaluate):
        clock.step()
        x, y = train.take(s.rows)
        if o.dropout:
            x = F.dropout(x, o.dropout)
        s.backward(F.cross_entropy(net(x), y, reduction="sum"))
    clock.say(f"worker {ps.worker}")


def plain(rank, o):
    if o.ddp > 1:
        torch.distributed.init_process_group("gloo", init_method=o.store, rank=rank, world_size=o.ddp)
    net, (train, _) = nets.net(o.model), nets.data(o.data, o.model)
    if o.ddp > 1:
        net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=o.lr)
    order = torch.Generator().manual_seed(rank)
    clock, rows = Clock(), []
    for _ in range(o.steps):
        clock.step()
        if len(rows) < o.plain:
            rows = torch.randperm(len(train), generator=order).tolist()
        x, y = train.take(rows[:o.plain])
        rows = rows[o.plain:]
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.item()
        loss.backward()
        optimizer.step()
    if rank == 0:
        clock.say("plain")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--load", metavar="FILE.npz", help="values that the model begins with")
    parser.add_argument("--dropout", type=float, default=0, help="share of the inputs that each step draws at random and leaves out")
    parser.add_argument("--plain", type=int, metavar="BATCH")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--ddp", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--store")
    o = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if not o.plain:
        under_fluentps(o)
    elif o.ddp == 1 or o.store:
        plain(o.rank, o)
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            o.store = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        torch.multiprocessing.spawn(plain, (o,), nprocs=o.ddp)


if __name__ == "__main__":
    main()

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

class Clock:
    """Times a program's steps, in bursts that it takes in turn with the program beside it: the speed of a machine that others use
    changes within seconds. Each burst's time is written to a file, microseconds per step by the clock and of this process's processor."""

    FIRST = 2  # bursts that are not written

    def __init__(self, o, who, rank):
        self.size, self.count, self.first, self.mark = o.burst, 0, who == "plain", (0, 0)
        self.file = open(f"{o.turns}/{who}.{rank}", "w")
        mine, other = (who, "ours" if who == "plain" else "plain")
        self.mine, self.other = (os.open(f"{o.turns}/turn.{w}.{rank}", os.O_RDWR) for w in (mine, other))

    def step(self):
        """A step begins. Before a burst it waits for the turn. The first step of a burst is not timed: the caches have the other's data."""
        now, place = (time.perf_counter(), time.process_time()), self.count % self.size
        if place == 0:
            if self.count > self.size * self.FIRST:
                wall, cpu = ((b - a) / (self.size - 1) * 1e6 for a, b in zip(self.mark, now))
                print(f"{wall:.1f} {cpu:.1f}", file=self.file, flush=True)
            if self.count > 0:
                os.write(self.other, b"x")
            if self.count > 0 or not self.first:
                os.read(self.mine, 1)
        elif place == 1:
            self.mark = now
        self.count += 1

    def end(self):
        """The other program need not wait any more."""
        os.write(self.other, b"x" * 4096)


class NoClock:
    def step(self):
        pass

    end = step


def clock_of(o, who, rank):
    return Clock(o, who, rank) if o.turns else NoClock()


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

    clock = clock_of(o, "ours", ps.worker)
    for s in ps.steps(rows=len(train), evaluate=evaluate):
        clock.step()
        x, y = train.take(s.rows)
        if o.dropout:
            x = F.dropout(x, o.dropout)
        s.backward(F.cross_entropy(net(x), y, reduction="sum"))
    clock.end()


def plain(rank, o, together=None):
    if o.ddp > 1 and not together:
        torch.distributed.init_process_group("gloo", init_method=o.store, rank=rank, world_size=o.ddp)
    net, (train, _) = nets.net(o.model), nets.data(o.data, o.model)
    if o.ddp > 1 and not together:
        net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=o.lr)
    order = torch.Generator().manual_seed(rank)
    clock, rows = clock_of(o, "plain", rank), []
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
        if together:
            together.wait()
    clock.end()


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
    parser.add_argument("--together", action="store_true", help="with --ddp: the processes exchange nothing, and wait for each other in each step")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--store")
    parser.add_argument("--turns", metavar="FOLDER", help="of pipes and times, see Clock")
    parser.add_argument("--burst", type=int, help="steps in a row, at least 2")
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
        together = torch.multiprocessing.get_context("spawn").Barrier(o.ddp) if o.together else None
        torch.multiprocessing.spawn(plain, (o, together), nprocs=o.ddp)


if __name__ == "__main__":
    main()

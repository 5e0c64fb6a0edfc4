"""A step of an MLP 784-256-128-10 at batch 128, in plain torch with SGD and under a parent that answers at once.

    /usr/bin/python3 -m tests.bench_step

The parent does no SGD: the difference is what the child's side costs, less torch's own optimizer.
"""

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"  # torch.set_num_threads leaves OpenBLAS its threads

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import fluentps as fp
from fluentps import _wire as w
from tests.parent import Parent

ROUNDS, STEPS = 5, 300


def setup():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    return (nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)),
            torch.randn(4096, 784), torch.randint(0, 10, (4096,)))


def plain():
    """Seconds of each step."""
    net, X, Y = setup()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    times = []
    for k in range(STEPS):
        begin = time.perf_counter()
        rows = list(range(k % 32 * 128, k % 32 * 128 + 128))
        x, y = X[rows], Y[rows]
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.item()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    return times


def child(how):
    net, X, Y = setup()
    ps = fp.join()
    ps.bind(net)
    for s in ps.steps():
        x, y = X[s.rows], Y[s.rows]
        loss = F.cross_entropy(net(x), y, reduction="sum")
        if how == "plain":
            loss.backward()
            s.done(loss)
        else:
            s.backward(loss)


def under_a_parent(how):
    times = []
    with Parent([sys.executable, "-m", "tests.bench_step", how]) as p:
        p.start(align=64)
        for v, to in zip(p.values, p.params):
            to[...] = v
        socket, have, go = p.socket, w.packet(w.HAVE, a=3), w.packet(w.GO)
        socket.setblocking(True)
        buffer = bytearray(100)
        for k in range(STEPS):
            begin = time.perf_counter()
            p._put_rows(range(k % 32 * 128, k % 32 * 128 + 128))
            socket.send(w.packet(w.STEP, a=128, b=k))
            socket.send(have)
            socket.recv_into(buffer)
            socket.send(go)
            while socket.recv_into(buffer) and buffer[0] == w.READY:
                pass
            assert buffer[0] == w.DONE, buffer
            times.append(time.perf_counter() - begin)
        p.bye()
    return times


def main():
    ways = {
        "plain torch": plain,
        "child, s.backward": lambda: under_a_parent("hooks"),
        "child, s.done": lambda: under_a_parent("plain"),
    }
    medians = {name: [] for name in ways}
    for _ in range(ROUNDS):  # in turn: the machine changes with time
        for name, f in ways.items():
            medians[name].append(float(np.median(f()[20:])) * 1e6)
    base = np.median(medians["plain torch"])
    for name, m in medians.items():
        middle = np.median(m)
        print(f"{name:20} median {middle:7.0f} us  ({min(m):.0f} to {max(m):.0f}), speed {base / middle:.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1])
    else:
        main()

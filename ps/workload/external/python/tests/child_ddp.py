"""A network that two processes train together by DistributedDataParallel, as one worker. The first argument names the case."""

import os
import socket
import sys

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import fluentps as fp
from tests.child_torch import build, data
from tests.rows import BATCHES

CASE = sys.argv[1] if len(sys.argv) > 1 else ""
PROCESSES = 2


def work(rank, port, ps=None):
    torch.set_num_threads(1)
    if CASE == "swapped":
        rank = PROCESSES - 1 - rank
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=PROCESSES)
    X, Y = data(100, 1)
    XT, YT = data(50, 2)
    torch.manual_seed(rank)
    net = build("")
    ddp = DistributedDataParallel(net)
    if CASE != "plain":
        ddp.register_comm_hook(None, fp.ddp_hook)

    def evaluate(rows):
        out = (ddp if CASE == "evaluates" else net)(XT[rows])
        return F.cross_entropy(out, YT[rows], reduction="sum"), int((out.argmax(1) == YT[rows]).sum())

    opt = fp.Optimizer(ps, ddp, evaluate=evaluate, test_rows=50)
    if CASE == "sums":
        loss = F.cross_entropy(ddp(X), Y)
        loss.backward()
        opt.step(loss, mean=False)

    def step(rows):
        mine = rows[rank::PROCESSES]
        opt.zero_grad()
        if CASE == "accumulates":
            with ddp.no_sync():
                (F.cross_entropy(ddp(X[mine[0::2]]), Y[mine[0::2]]) / 2).backward()
            (F.cross_entropy(ddp(X[mine[1::2]]), Y[mine[1::2]]) / 2).backward()
            with torch.no_grad():
                out = net(X[mine])
                loss = F.cross_entropy(out, Y[mine])
        else:
            out = ddp(X[mine])
            loss = F.cross_entropy(out, Y[mine])
            loss.backward()
        if CASE == "clips":
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        if CASE == "raises" and rank == 1:
            raise ValueError("the sample is too odd")
        opt.step(loss, correct=int((out.argmax(1) == Y[mine]).sum()))

    if CASE in ("loop", "plain"):
        n = 0
        for rows in opt.loop(BATCHES):
            step(rows)
            n += 1
        print(f"rank {rank}: {n} steps, running {opt.running}", flush=True)
        return
    while CASE != "asks" or opt.running:
        for rows in BATCHES:
            step(rows)


if __name__ == "__main__":
    ps = fp.join(alone=fp.Alone(batch=20, epochs=2, lr=0.5))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for rank in range(1, PROCESSES):
        torch.multiprocessing.get_context("spawn").Process(target=work, args=(rank, port)).start()
    work(0, port, ps)

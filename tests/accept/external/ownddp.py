"""A program whose processes train one MLP by DistributedDataParallel, as one worker.

    ownddp.py PROCESSES [hook]   the samples of a step are the same for any number of processes; hook: fp.ddp_hook
"""

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
import nets

PROCESSES, HOOK = int(sys.argv[1]), "hook" in sys.argv


def train(local, port, worker, batch, ps=None):
    torch.set_num_threads(1)
    data, test = nets.generated((32,))
    net = nets.net("mlp-32-64-10")
    wrapped = net
    if PROCESSES > 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=local, world_size=PROCESSES)
        wrapped = DistributedDataParallel(net)
        if HOOK:
            wrapped.register_comm_hook(None, fp.ddp_hook)

    def evaluate(rows):
        x, y = test.take(rows)
        out = net(x)
        return F.cross_entropy(out, y, reduction="sum"), int((out.argmax(1) == y).sum())

    opt = fp.Optimizer(ps, wrapped, evaluate=evaluate)
    order = torch.Generator().manual_seed(worker)
    while opt.running:
        rows = torch.randint(len(data), (batch,), generator=order)[local::PROCESSES]
        x, y = data.take(rows)
        opt.zero_grad()
        loss = F.cross_entropy(wrapped(x), y)
        loss.backward()
        opt.step(loss)


if __name__ == "__main__":
    ps = fp.join()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for local in range(1, PROCESSES):
        process = torch.multiprocessing.get_context("spawn").Process(target=train, args=(local, port, ps.worker, ps.batch_max))
        process.start()
    train(0, port, ps.worker, ps.batch_max, ps)

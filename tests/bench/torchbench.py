"""Training throughput of PyTorch on the CPU, one thread a process, for tests/accept/speed/kernels-against-pytorch.sh. torchpeer.py, which is for
GPUs, takes the models from here.

A step is zero_grad, forward, cross-entropy, backward and SGD with momentum 0.9, on float32 data that are in memory.
Each line of output is: model, batch, samples per second.

  torchbench.py MODEL,BATCH...                one process; several cases, one line each; samples per CPU second
  torchbench.py --ddp 2 MODEL,BATCH...        as many processes, DistributedDataParallel over gloo; BATCH of one process,
                                              samples per second of all
"""

import argparse
import os
import socket
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # gloo looks the host's name up otherwise, which may lead nowhere

import torch
import torch.distributed
import torch.multiprocessing
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two 3x3 convolutions with a shortcut of option A: every second position, new channels zero (He et al. 2015)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.more = stride, outputs - inputs

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.stride > 1:
            x = functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
        return functional.relu(y + x)


def resnet(depth):
    """The ResNet of 6n+2 layers for 3x32x32 images (He et al. 2015, section 4.2)."""
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inputs = 16
    for outputs in (16, 32, 64):
        for _ in range((depth - 2) // 6):
            layers.append(Block(inputs, outputs, 2 if outputs > inputs else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )


# name: how to make it, and the shape of a sample
MODELS = {
    "softmax": (lambda: nn.Linear(784, 10), (784,)),
    "mlp": (mlp, (784,)),
    "lenet": (lenet, (1, 28, 28)),
    "resnet20": (lambda: resnet(20), (3, 32, 32)),
    "resnet56": (lambda: resnet(56), (3, 32, 32)),
}


class Training:
    def __init__(self, name, batch, world):
        make, shape = MODELS[name]
        torch.manual_seed(7)
        self.model = make()
        if world > 1:
            self.model = nn.parallel.DistributedDataParallel(self.model)
        self.batch, self.world = batch, world
        self.x = torch.randn(batch, *shape)
        self.y = torch.randint(0, 10, (batch,))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def steps(self, count):
        """Runs so many steps and returns the seconds that they took: of the slowest process; of one alone its
        own CPU seconds, in which no other program has the core."""
        clock = time.process_time if self.world == 1 else time.perf_counter
        if self.world > 1:
            torch.distributed.barrier()
        start = clock()
        for _ in range(count):
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.model(self.x), self.y)
            loss.backward()
            self.optimizer.step()
        took = torch.tensor(clock() - start)
        if self.world > 1:
            torch.distributed.all_reduce(took, torch.distributed.ReduceOp.MAX)
        return took.item()

    def samples_per_s(self, seconds, repetitions):
        """The median over repetitions of at least so many seconds each."""
        self.steps(3)
        count = 1
        while (took := self.steps(count)) < seconds / 4:
            count *= 2
        count = max(1, round(count * seconds / took))
        return statistics.median(self.batch * self.world * count / self.steps(count) for _ in range(repetitions))


def run(rank, options):
    torch.set_num_threads(1)
    if options.ddp > 1:
        store = f"tcp://127.0.0.1:{options.port}"
        torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=options.ddp)
    for case in options.cases:
        name, batch = case.split(",")
        rate = Training(name, int(batch), options.ddp).samples_per_s(options.seconds, options.repetitions)
        if rank == 0:
            print(name, batch, f"{rate:.1f}", flush=True)
    if options.ddp > 1:
        torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description="Training throughput of PyTorch")
    parser.add_argument("cases", nargs="+", metavar="MODEL,BATCH", help="models: " + " ".join(MODELS))
    parser.add_argument("--ddp", type=int, default=1, help="processes (1)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a repetition, at least about (0.5)")
    parser.add_argument("--repetitions", type=int, default=5, help="whose median counts (5)")
    options = parser.parse_args()
    if options.ddp > 1:
        with socket.socket() as free:  # a port where the processes can meet
            free.bind(("127.0.0.1", 0))
            options.port = free.getsockname()[1]
        torch.multiprocessing.spawn(run, (options,), nprocs=options.ddp)
    else:
        run(0, options)


if __name__ == "__main__":
    main()

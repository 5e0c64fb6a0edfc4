"""Models and data of the scripts beside it, as a user's own torch program has them."""

import collections
import csv
import gzip
import os
import sys

import numpy as np
import torch
from torch import nn

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import torchbench  # lenet, and the blocks of resnet, of the comparisons of kernels


def mlp(*widths):
    """Layers fc1, fc2, ..., the names that the program's own model mlp has."""
    layers = collections.OrderedDict()
    for i in range(1, len(widths)):
        layers[f"fc{i}"] = nn.Linear(widths[i - 1], widths[i])
        if i + 1 < len(widths):
            layers[f"relu{i}"] = nn.ReLU()
    return nn.Sequential(layers)


class Block(torchbench.Block):
    """As the program's own model has it: all new channels of a shortcut lie behind the old ones."""

    def forward(self, x):
        y = nn.functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.stride > 1:
            x = nn.functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.more))
        return nn.functional.relu(y + x)


def resnet20():
    layers, inputs = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for outputs in (16, 32, 64):
        for _ in range(3):
            layers.append(Block(inputs, outputs, 2 if outputs > inputs else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def net(name):
    """A model by name, with the values of seed 7: mlp-64-32-10, lenet, resnet20."""
    torch.manual_seed(7)
    if name.startswith("mlp-"):
        return mlp(*map(int, name[4:].split("-")))
    return {"lenet": torchbench.lenet, "resnet20": resnet20}[name]()


def load(model, path):
    """Gives a model the values of FILE.npz that `fluentps export` wrote, in order: names differ."""
    file = np.load(path)
    mine = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    assert len(mine) == len(file.files), (len(mine), len(file.files))
    for (name, tensor), theirs in zip(mine.items(), file.files):
        assert tensor.shape == file[theirs].shape, (name, theirs)
        tensor.copy_(torch.from_numpy(file[theirs]))


class Rows:
    """Training or test rows. `take` gathers some."""

    def __init__(self, x, y, finish=lambda x: x):
        self.x, self.y, self.finish = x, y, finish

    def __len__(self):
        return len(self.y)

    def take(self, rows):
        return self.finish(self.x[rows]), self.y[rows]


def read(path):
    """A file, which may be packed."""
    if not os.path.exists(path):
        return gzip.open(path + ".gz").read()
    with open(path, "rb") as f:
        return f.read()


def optdigits(folder):
    """The digits of UCI: pixels are 0 to 16."""
    sets = []
    for name in ("tra", "tes"):
        with gzip.open(f"{folder}/optdigits.{name}.gz", "rt") as f:
            all_ = np.array(list(csv.reader(f)), dtype=np.int64)
        sets.append(Rows(torch.from_numpy(all_[:, :-1]).float() / 16, torch.from_numpy(all_[:, -1])))
    return sets


def cifar10(folder):
    """CIFAR-10's binary version, normalised as the program's reader does it."""
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
    std = torch.tensor([0.2470, 0.2435, 0.2616]).view(3, 1, 1)
    sets = []
    for names in ([f"data_batch_{i}" for i in range(1, 6)], ["test_batch"]):
        records = np.concatenate([np.frombuffer(read(f"{folder}/{n}.bin"), np.uint8).reshape(-1, 3073) for n in names])
        sets.append(Rows(torch.from_numpy(records[:, 1:]).reshape(-1, 3, 32, 32), torch.from_numpy(records[:, 0]).long(),
                         lambda x: (x.float() / 255 - mean) / std))
    return sets


def generated(shape, rows=4096, test_rows=1024, classes=10):
    """Normal values, and the classes that a linear map gives them: a model can learn them."""
    g = torch.Generator().manual_seed(3)
    x = torch.randn(rows + test_rows, *shape, generator=g)
    y = (x.flatten(1) @ torch.randn(x[0].numel(), classes, generator=g)).argmax(1)
    return Rows(x[:rows], y[:rows]), Rows(x[rows:], y[rows:])


def data(name, model):
    """Training and test rows by name: optdigits:FOLDER, cifar10:FOLDER, generated."""
    kind, _, folder = name.partition(":")
    if kind == "generated":
        shape = {"lenet": (1, 28, 28), "resnet20": (3, 32, 32)}
        return generated(shape[model] if model in shape else (int(model.split("-")[1]),))
    return {"optdigits": optdigits, "cifar10": cifar10}[kind](folder)

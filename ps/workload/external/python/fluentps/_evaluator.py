"""What most scripts in torch would write as their evaluate."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple, Union

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, default_collate

from ._wire import Error


def _option(loss: Any, name: str, default: Any) -> Any:
    """What a module or a functools.partial of a function of torch has been given."""
    return getattr(loss, "keywords", {}).get(name, getattr(loss, name, default))


def _shown(value: Any) -> str:
    return f"has the shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"is a {type(value).__name__}"


def evaluator(
    net: torch.nn.Module, data: Any, loss: Callable[[Any, Any], torch.Tensor] = F.cross_entropy
) -> Callable[[List[int]], Union[float, Tuple[float, int]]]:
    """An evaluate for ps.steps and fluentps.Optimizer, for test rows that are a data set of torch.

    data: data[i] is test row i, a pair (x, y); a TensorDataset of two tensors is one. loss: of net(x) and y, a scalar: the
    mean over the rows, or their sum if it says reduction="sum" itself, as modules of torch do. Where y are classes, and
    net(x) has a number for each, it counts the rows whose largest number is that of their class.
    """
    if isinstance(data, DataLoader):
        raise Error("fluentps.evaluator got a DataLoader, but the run picks test rows: give its data set, loader.dataset")

    summed = _option(loss, "reduction", "mean") == "sum"
    if not summed and (_option(loss, "weight", None) is not None or _option(loss, "ignore_index", -100) >= 0):
        raise Error(
            "fluentps.evaluator: the mean of a loss with weight or ignore_index is not that over the rows: give it "
            "reduction='sum'"
        )

    def evaluate(rows: List[int]) -> Union[float, Tuple[float, int]]:
        batch = default_collate([data[i] for i in rows])
        if not isinstance(batch, (list, tuple)) or len(batch) != 2:
            raise Error(
                f"fluentps.evaluator: a row of {type(data).__name__} is not a pair (x, y): write an evaluate of your own, "
                "which gets row numbers, and returns the sum of their losses and how many the network has right"
            )
        if not all(isinstance(t, torch.Tensor) for t in batch):
            raise Error(
                "fluentps.evaluator: x and y of a row are tensors, arrays or numbers, and here "
                f"{' and '.join(type(t).__name__ for t in batch)} came of them: write an evaluate of your own"
            )
        device = next((p.device for p in net.parameters()), torch.device("cpu"))
        x, y = (t.to(device) for t in batch)
        out = net(x)
        value = loss(out, y)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise Error(
                f"fluentps.evaluator: the loss {_shown(value)}, need a tensor of one number: the mean over the rows, or "
                "their sum with reduction='sum'"
            )
        total = value.item() * (1 if summed else len(rows))
        if out.dim() != 2 or out.shape[1] < 2 or y.dim() != 1 or y.is_floating_point():
            return total
        return total, int((out.argmax(1) == y).sum())

    return evaluate

"""Several processes that train one network by torch's DistributedDataParallel, as one worker of a run.

One of them, the leader, has joined the run. Gradients are averaged among the processes, by torch. The leader hands
them to the servers, and gives the others the parameters that come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from ._alone import AloneLink
from ._loop import Loop, OwnLoop
from ._wire import Error

if TYPE_CHECKING:
    from ._session import Session


def ddp_hook(state, bucket):  # type: ignore[no-untyped-def] # torch reads annotations, and takes no text for a type
    """Averages gradients for the leader alone, where DistributedDataParallel would for all processes.

    ddp.register_comm_hook(None, fluentps.ddp_hook). In place of None, the process group of the network, if it is not
    the default one. The gradients of the other processes are of no use then.
    """
    group = state if state is not None else dist.group.WORLD
    buffer = bucket.buffer().div_(dist.get_world_size(group))
    work = dist.reduce(buffer, _leader_of(group), group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def _leader_of(group: Any) -> int:
    """The rank, among all processes, of rank 0 of a group."""
    return 0 if group is dist.group.WORLD else dist.get_global_rank(group, 0)


class Node:
    """The processes of a network. All of them make the same calls, in the same order."""

    def __init__(self, ddp: Any, joined: bool) -> None:
        self._group = ddp.process_group
        self.size = dist.get_world_size(self._group)
        rank = dist.get_rank(self._group)
        if joined != (rank == 0):
            raise Error(
                f"rank {rank} of the process group has {'' if joined else 'not '}joined the run: rank 0 calls "
                "fluentps.join(), and fluentps.Optimizer(ps, ddp); the other ranks fluentps.Optimizer(None, ddp)"
            )
        self._leads = joined
        self._leader = _leader_of(self._group)
        self._params: List[torch.Tensor] = [p for p in ddp.module.parameters() if p.requires_grad]

    def _numbers(self, *values: float) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self._params[0].device)

    def tell(self, *values: int) -> List[int]:
        """Gives all processes what the leader has."""
        told = self._numbers(*values)
        dist.broadcast(told, self._leader, group=self._group)
        return [int(v) for v in told.tolist()]

    def add(self, loss: Any, correct: Optional[int]) -> Tuple[float, Optional[int]]:
        """Gives the leader the mean of the losses, and the sum of correct, if all have one."""
        added = self._numbers(float(loss), correct or 0, correct is not None)
        dist.reduce(added, self._leader, group=self._group)
        total, hits, count = added.tolist()
        return total / self.size, int(hits) if count == self.size else None

    def share(self) -> None:
        """Gives all processes the leader's parameters."""
        kinds: Dict[Any, List[torch.Tensor]] = {}
        for p in self._params:
            kinds.setdefault((p.dtype, p.device), []).append(p.data)
        for tensors in kinds.values():
            flat = torch.cat([t.reshape(-1) for t in tensors])
            dist.broadcast(flat, self._leader, group=self._group)
            if not self._leads:
                for t, values in zip(tensors, flat.split([t.numel() for t in tensors])):
                    t.copy_(values.view_as(t))


def _check_mean(mean: bool) -> None:
    if not mean:
        raise Error(
            "opt.step(loss, mean=False), but DistributedDataParallel averages gradients: let the loss of each process "
            "be the mean over its samples"
        )


class Leader(OwnLoop):
    """The loop of the process that has joined the run."""

    def __init__(
        self,
        ps: "Session",
        ddp: Any,
        evaluate: Optional[Callable[[List[int]], Any]],
        rows: Optional[int],
        test_rows: Optional[int],
    ) -> None:
        self._node = Node(ddp, True)
        self._evaluating = False
        ddp.register_forward_pre_hook(self._refuse)
        super().__init__(ps, None if evaluate is None else self._alone_in(evaluate), rows, test_rows)
        epochs = ps.link.options.epochs if isinstance(ps.link, AloneLink) else 0
        self._node.tell(ps.mode == "probe", epochs)

    def _alone_in(self, evaluate: Callable[[List[int]], Any]) -> Callable[[List[int]], Any]:
        def call(rows: List[int]) -> Any:
            self._evaluating = True
            try:
                return evaluate(rows)
            finally:
                self._evaluating = False

        return call

    def _refuse(self, *_: Any) -> None:
        if self._evaluating:
            raise Error(
                "evaluate calls the DistributedDataParallel module, whose other processes do not evaluate: call the "
                "network that it wraps"
            )

    def begin(self) -> None:
        if not self.begun:
            super().begin()
            self._give()

    def step(self, loss: Any, correct: Optional[int], mean: bool) -> None:
        _check_mean(mean)
        loss, correct = self._node.add(loss, correct)
        super().step(loss, correct, True)
        self._give()

    def _give(self) -> None:
        self._node.tell(not self.closed)
        if not self.closed:
            self._ps.model.reach_all()
            self._node.share()


class Follower(Loop):
    """The loop of another process of the network."""

    def __init__(self, ddp: Any) -> None:
        self._node = Node(ddp, False)
        self._ended = False
        probe, self._epochs = self._node.tell(0, 0)
        self.probes = bool(probe)

    @property
    def closed(self) -> bool:
        return self._ended

    def begin(self) -> None:
        if not self.begun:
            self.begun = True
            self._take()

    def step(self, loss: Any, correct: Optional[int], mean: bool) -> None:
        _check_mean(mean)
        self._node.add(loss, correct)
        self._take()

    def passed(self, n: int) -> bool:
        self._ended = self._ended or n == self._epochs
        return self._ended

    def _take(self) -> None:
        self._ended = not self._node.tell(0)[0]
        if not self._ended:
            self._node.share()

"""An optimizer, as scripts in torch know it. The servers have the parameters, and this side hands them gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, NoReturn, Optional

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

from ._ddp import Follower, Leader
from ._loop import Loop, OwnLoop, RunEnded
from ._wire import Error

if TYPE_CHECKING:
    from ._session import Session

_OWNED = (
    "the servers own the optimizer, with its learning rate and its state: set train.optimizer and train.schedule in "
    "the YAML, in place of param_groups and torch.optim.lr_scheduler"
)
_SCALER = (
    "GradScaler scales losses for float16, and its factor would reach the servers: compute in bfloat16, as in "
    "torch.autocast('cuda', dtype=torch.bfloat16), which needs no scaler"
)


class Optimizer(torch.optim.Optimizer):
    """Stands where a script has its optimizer. The script keeps its loop and its samples: data.sampler is script.

    ps: what fluentps.join returns. net: a module, which is bound as by ps.bind. evaluate, rows, test_rows: as for
    ps.steps; evaluate is called within step. Each step counts as the rows of a batch of the run. net may be a
    DistributedDataParallel: rank 0 of its group has joined the run, and ps is None in the others.
    """

    # super().__init__ is not called: it would make param_groups, which nothing here obeys. Being an optimizer of torch
    # makes schedulers ask for param_groups, and so say what to do instead.
    def __init__(
        self,
        ps: Optional["Session"],
        net: torch.nn.Module,
        evaluate: Optional[Callable[[List[int]], Any]] = None,
        rows: Optional[int] = None,
        test_rows: Optional[int] = None,
        **others: Any,
    ) -> None:
        if others:
            raise Error(f"fluentps.Optimizer(ps, net) got {', '.join(sorted(others))}: {_OWNED}")
        if ps is not None and not hasattr(ps, "own"):
            raise Error(
                f"fluentps.Optimizer got a {type(ps).__name__} first, need what fluentps.join() returns, and then the "
                "module: fluentps.Optimizer(ps, net). It wraps no optimizer of torch"
            )
        wrapper = net if isinstance(net, DDP) else None
        net = net if wrapper is None else wrapper.module
        if not isinstance(net, torch.nn.Module):
            raise Error(
                f"fluentps.Optimizer got a {type(net).__name__}, need the module itself: fluentps.Optimizer(ps, net)"
            )
        if ps is not None and ps.own is not None:
            raise Error("fluentps.Optimizer is made a second time: make one, for a module that has all parameters")
        self._loop: Loop
        if ps is None:
            self._follow(wrapper)
        else:
            self._join(ps, net, wrapper, evaluate, rows, test_rows)
        self._params = [p for p in net.parameters() if p.requires_grad]
        self._starters: List[Any] = []
        for module in net.modules():
            handle = module.register_forward_pre_hook(self._start)
            hooks: Any = module._forward_pre_hooks  # an OrderedDict
            hooks.move_to_end(handle.id, last=False)  # before those that wait for a layer
            self._starters.append(handle)

    def _follow(self, wrapper: Optional[DDP]) -> None:
        if wrapper is None:
            raise Error(
                "fluentps.Optimizer got no run: ps may be None only in the other processes of a network that "
                "DistributedDataParallel wraps. Pass what fluentps.join() returns"
            )
        follower = Follower(wrapper)
        if follower.probes:
            raise RunEnded
        self._loop = follower

    def _join(
        self, ps: "Session", net: torch.nn.Module, wrapper: Optional[DDP], evaluate: Any, rows: Any, test_rows: Any
    ) -> None:
        if wrapper is None:
            self._loop = OwnLoop(ps, evaluate, rows, test_rows)
        else:
            self._loop = Leader(ps, wrapper, evaluate, rows, test_rows)
        if ps.model is None:
            ps.bind(net)
        if ps.mode == "probe":
            assert ps.own is not None
            OwnLoop.begin(ps.own)  # BYE follows
            raise RunEnded

    @property
    def running(self) -> bool:
        """As ps.running, also in processes that have no ps."""
        self._loop.begin()
        return not self._loop.closed

    def loop(self, loader: Iterable[Any]) -> Iterator[Any]:
        """As ps.loop, also in processes that have no ps."""
        return self._loop.loop(loader)

    def _start(self, *_: Any) -> None:
        """Forward needs the parameters for the first time. Until then the script may still load values of its own."""
        for handle in self._starters:
            handle.remove()
        self._starters.clear()
        self._loop.begin()

    def step(self, loss: Any = None, correct: Optional[int] = None, mean: bool = True) -> Any:  # type: ignore[override]
        """Hands the gradients to the servers, and waits until the next step may begin. In between it evaluates.

        loss: a scalar, the mean over the samples of this step; with mean=False, their sum, and gradients are sums, too.
        Or a function that computes loss and gradients, and returns the loss; step returns it as well. correct: how
        many samples the network had right. Raises RunEnded behind the end of the run.
        """
        closure, result = loss, None
        if callable(closure) and not isinstance(closure, torch.Tensor):
            with torch.enable_grad():
                loss = result = closure()
        if self._loop.closed:
            raise RunEnded
        self._check(loss)
        if not self._loop.begun:
            raise Error(
                "opt.step before the network was called: its parameters come when net(x) is called first. Compute the "
                "loss by net(x), or loop by ps.loop(loader)"
            )
        gradients = [p.grad for p in self._params]
        if all(g is None for g in gradients):
            raise Error("opt.step(loss) without a gradient: call loss.backward() before it")
        self._loop.step(loss, correct, mean)
        for p, g in zip(self._params, gradients):
            p.grad = g  # what has been sent stays the script's, until it calls zero_grad
        return result

    @staticmethod
    def _check(loss: Any) -> None:
        if loss is None:
            raise Error(
                "opt.step() without a loss: say opt.step(loss), because the run reports the loss of each step; and leave "
                "a GradScaler out, whose step calls it so"
            )
        if isinstance(loss, torch.Tensor):
            if loss.numel() == 1:
                return
            what = f"a tensor of the shape {tuple(loss.shape)}"
        elif isinstance(loss, (int, float)) and not isinstance(loss, bool):
            return
        else:
            what = f"a {type(loss).__name__}"
        raise Error(f"opt.step got {what} as the loss, need a number or a tensor of one element, such as the mean")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients: torch's own method, for the parameters of the network."""
        for p in self._params:
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    p.grad = p.grad.detach().zero_()

    def state_dict(self) -> Dict[str, Any]:
        """An empty state: the servers have it, and write it to checkpoints of the run."""
        return {"state": {}, "param_groups": []}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes what state_dict returns. The state of another optimizer is an error."""
        if state_dict.get("state") or state_dict.get("param_groups"):
            raise Error(
                "opt.load_state_dict got the state of another optimizer, but the servers own it: resume a run with "
                "fluentps run --resume, which restores theirs"
            )

    @property
    def param_groups(self) -> NoReturn:  # type: ignore[override]
        """Is refused: schedulers change the learning rate there."""
        raise Error(_OWNED)

    @property
    def _step_supports_amp_scaling(self) -> NoReturn:
        # GradScaler.step asks for it first.
        raise Error(_SCALER)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Is refused."""
        raise Error(_OWNED)

    def __repr__(self) -> str:
        return f"fluentps.Optimizer of {len(self._params)} parameters, which the servers update"

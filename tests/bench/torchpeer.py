"""Training steps of PyTorch on a GPU, as fast as it can take them, for kernels/gpu-check. torchbench.py has the models.

A case is WAY,CLASS,MODEL,BATCH: how steps are launched (eager; graph: a CUDA graph of the whole step; compiled: torch.compile in the
mode max-autotune), the class of precision (float32, TF32; bf16: autocast, with images in the order channels-last), the model and the
batch. A step is forward, cross-entropy and backward of a batch that stays on the GPU. It is timed with SGD with momentum 0.9, and without
an optimizer. Events of CUDA time many steps; the first steps, with all that is compiled, searched or captured, count apart.

  torchpeer.py [--trace MODEL] CASE...      with --trace, PyTorch's profiler lists the kernels of that model's steps

Each line of output is a JSON object with the case and its state: begun; then ok, skipped or failed; behind ok of a traced model also trace
or untraced. A case that failed ends the process, because a GPU that failed once may fail in every later call. The exit codes
are 4 then, and 3 if PyTorch sees no GPU. It runs with PyTorch 1.13 and newer.
"""

import argparse
import functools
import importlib.util
import inspect
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
import traceback

from torchbench import MODELS  # first: it sets the environment of torch

import torch
from torch import nn
from torch.nn import functional

BLIND, BROKEN = 3, 4  # exit codes, which gpu-check knows
WARM = 5  # steps before the timed ones: cuDNN searches in the first, and torch.compile captures its own CUDA graphs in the third
TRACED = 5  # steps of a trace
NAME_MAX = 300  # characters of a kernel's name: those of templates are long


class Skipped(Exception):
    """What a case needs is not there."""


def say(case, state, **more):
    print(json.dumps({"case": case, "state": state, **more}), flush=True)


def reason(error):
    """The error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:400]


def optimizer_of(model, device):
    """SGD in the fewest launches that this PyTorch has."""
    fast = {"foreach": True}
    if device == "cuda" and "fused" in inspect.signature(torch.optim.SGD).parameters:
        fast = {"fused": True}
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **fast)


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return functional.cross_entropy(self.model(x), y)


class Step:
    """The training step of a case."""

    def __init__(self, case, device):
        self.way, self.precision, name, batch = case.split(",")
        self.device = device
        make, shape = MODELS[name]
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.precision == "TF32"
        torch.backends.cudnn.benchmark = True  # cuDNN times its algorithms for each shape, and takes the fastest
        torch.manual_seed(7)
        self.model = make().to(device)
        self.x = torch.randn(int(batch), *shape).to(device)
        if self.precision == "bf16" and len(shape) == 3:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
        self.y = torch.randint(0, 10, (int(batch),)).to(device)
        self.optimizer = optimizer_of(self.model, device)
        self.forward = WithLoss(self.model)
        self.mark = lambda: None
        self.loss = None
        if self.way == "compiled":
            self.compile()

    def compile(self):
        if not hasattr(torch, "compile"):
            raise Skipped(f"PyTorch {torch.__version__} has no torch.compile, which came with 2.0")
        if self.device == "cuda" and importlib.util.find_spec("triton") is None:
            raise Skipped("Triton is missing, which torch.compile needs for a GPU")
        if not any(shutil.which(c) for c in (os.environ.get("CC", "cc"), "gcc", "clang")):
            raise Skipped("a C compiler is missing, which torch.compile needs")
        self.forward = torch.compile(self.forward, mode="max-autotune")
        self.mark = getattr(getattr(torch, "compiler", None), "cudagraph_mark_step_begin", self.mark)

    def take(self, learns):
        """Takes a step."""
        self.mark()
        self.optimizer.zero_grad(set_to_none=True)
        # Without a cache of casts, because a captured step must cast the weights anew each time.
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.precision == "bf16", cache_enabled=False):
            loss = self.forward(self.x, self.y)
        loss.backward()
        if learns:
            self.optimizer.step()
        # What backward used goes now: what accumulates gradients belongs to the stream of the step, and the next one may be on another.
        self.loss = loss.detach()

    def captured(self, learns):
        """Captures a step in a CUDA graph. Returns what replays it, and the loss of the first step."""
        if self.device != "cuda":
            raise Skipped("a CUDA graph needs a GPU")
        aside = torch.cuda.Stream()  # steps before a capture must not be on the default stream
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self.take(learns)
            first = self.loss.item()
            for _ in range(WARM):
                self.take(learns)
        torch.cuda.current_stream().wait_stream(aside)
        self.optimizer.zero_grad(set_to_none=True)  # or the graph would write gradients outside its own memory
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.take(learns)
        return graph.replay, first

    def ready(self, learns):
        """Prepares steps. Returns what takes one, the seconds that this took, and the loss of the first step."""
        began = time.perf_counter()
        if self.way == "graph":
            run, first = self.captured(learns)
        else:
            run = functools.partial(self.take, learns)
            run()
            first = self.loss.item()
        for _ in range(WARM):
            run()
        self.wait()
        return run, time.perf_counter() - began, first

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def elapsed(self, run, count):
        """The milliseconds of so many steps."""
        if self.device != "cuda":
            began = time.perf_counter()
            for _ in range(count):
                run()
            return 1e3 * (time.perf_counter() - began)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def ms(self, run, seconds, repetitions):
        """The milliseconds of a step: the median over repetitions of about so many seconds each."""
        count = 1
        while (took := self.elapsed(run, count)) < 1e3 * seconds / 4:
            count *= 2
        count = max(1, round(count * 1e3 * seconds / took))
        return statistics.median(self.elapsed(run, count) / count for _ in range(repetitions))

    def trace(self, run):
        """The kernels of some steps: name, launches, microseconds; and for how many microseconds any of them ran."""
        activity = torch.profiler.ProfilerActivity
        with torch.profiler.profile(activities=[activity.CUDA if self.device == "cuda" else activity.CPU]) as profiler:
            for _ in range(TRACED):
                run()
            self.wait()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            profiler.export_chrome_trace(path)  # the form of the trace has not changed since 1.13, other than the profiler's objects
            with open(path, encoding="utf-8", errors="replace") as file:
                return kernels_of(json.load(file))


def kernels_of(trace):
    """The kernels in a trace, and the microseconds in which at least one ran."""
    if isinstance(trace, dict):
        trace = trace["traceEvents"]
    ran = [e for e in trace if e.get("ph") == "X" and str(e.get("cat", "")).lower() in ("kernel", "gpu_memcpy", "gpu_memset")]
    if not ran:
        raise RuntimeError("the profiler saw no kernel")
    kernels, busy, until = {}, 0.0, -math.inf
    for e in sorted(ran, key=lambda e: float(e["ts"])):
        begin, took = float(e["ts"]), float(e["dur"])
        kernel = kernels.setdefault(e["name"][:NAME_MAX], [0, 0.0])
        kernel[0] += 1
        kernel[1] += took
        busy += max(0.0, begin + took - max(begin, until))
        until = max(until, begin + took)
    return [{"name": name, "count": n, "us": us} for name, (n, us) in kernels.items()], busy


def run_case(case, options):
    step = Step(case, options.device)
    run, setup, first = step.ready(True)
    ms = step.ms(run, options.seconds, options.repetitions)
    step.wait()
    last = step.loss.item()
    if not last < first:  # also a step that does nothing would be fast
        raise RuntimeError(f"the loss did not fall: {first:.4f} at first, {last:.4f} at last")
    bare, setup_bare, _ = step.ready(False)
    without = step.ms(bare, options.seconds, options.repetitions)
    traced = case.split(",")[2] == options.trace
    say(case, "ok", ms=ms, without_ms=without, setup_s=setup + setup_bare, traced=traced)
    if not traced:
        return
    try:
        kernels, busy = step.trace(run)
        say(case, "trace", kernels=kernels, busy_us=busy, steps=TRACED)
    except Exception as error:  # the times stand
        traceback.print_exc()
        say(case, "untraced", reason=reason(error))


def main():
    parser = argparse.ArgumentParser(description="Training steps of PyTorch on a GPU")
    parser.add_argument("cases", nargs="+", metavar="WAY,CLASS,MODEL,BATCH", help="models: " + " ".join(MODELS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda", help="what computes (cuda)")
    parser.add_argument("--seconds", type=float, default=0.1, help="of a repetition, about (0.1)")
    parser.add_argument("--repetitions", type=int, default=5, help="whose median counts (5)")
    parser.add_argument("--trace", default="", metavar="MODEL", help="whose kernels are listed (none)")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("PyTorch does not see a GPU", file=sys.stderr)
        sys.exit(BLIND)
    for case in options.cases:
        say(case, "begun")
        try:
            run_case(case, options)
        except Skipped as error:
            say(case, "skipped", reason=str(error))
        except Exception as error:
            traceback.print_exc()
            say(case, "failed", reason=reason(error))
            sys.exit(BROKEN)


if __name__ == "__main__":
    main()

"""A PyTorch that computes nothing, for tests of torchpeer.py and gpu-check: a clock of its own says how long steps take on its GPU.

A forward pass takes 1 ms, backward 2 ms, the optimizer 0.5 ms; half of that in TF32, a quarter in bf16. A graph replays what was captured
in a fifth of the time, torch.compile halves forward and backward. FAKE_TORCH names what is broken in it: KEY[,CLASS][;...].
"""

import json
import os
import signal
import subprocess
import sys
import time
from unittest.mock import MagicMock

__version__ = "2.11.0"
broken = dict((each + ",").split(",")[:2] for each in os.environ.get("FAKE_TORCH", "").split(";"))


class GPU:
    """The state of the fake GPU."""

    ms = 0.0  # its clock
    capturing = None  # milliseconds captured so far; None: no capture
    stream = "default"
    autocast = False
    trained = 0


def precision():
    return "bf16" if GPU.autocast else "TF32" if backends.cudnn.allow_tf32 else "float32"


def is_broken(what):
    return broken.get(what) in ("", precision())


def work(ms):
    ms *= {"bf16": 0.25, "TF32": 0.5, "float32": 1}[precision()]
    if GPU.capturing is not None:
        GPU.capturing += ms
    else:
        GPU.ms += ms
        profiler.ran.append(ms)


class Tensor:
    def to(self, device=None, memory_format=None):
        return self


class Loss(Tensor):
    def __init__(self, share):
        self.share = share

    def backward(self):
        work(2 * self.share)

    def detach(self):
        return self

    def item(self):
        return 2.3 if is_broken("no step learns") else 2.3 / (1 + GPU.trained)


class Module:
    def __init__(self, *parts, **options):
        self.share = 1

    def to(self, device=None, memory_format=None):
        return self

    def parameters(self):
        return []

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def forward(self, x):
        return x


class SGD:
    def __init__(self, parameters, lr, momentum, foreach=None, fused=None):
        assert fused, "the fused optimizer has the fewest launches"
        self.grads = False

    def zero_grad(self, set_to_none):
        assert set_to_none

    def step(self):
        work(0.5)
        GPU.trained += 1


def cross_entropy(outputs, y):
    work(share_now[-1])
    return Loss(share_now[-1])


share_now = [1]  # of the time of an eager step


def compile(module, mode):
    assert mode == "max-autotune"
    if is_broken("compile fails"):
        raise RuntimeError("BackendCompilerFailed: no such\n  intrinsic")
    if is_broken("compile hangs"):  # with a worker in a session of its own, whose parent has ended: no group and no parent leads to it
        script = 'sleep 3000 >/dev/null 2>&1 & printf %d "$!" >"$FAKE_TORCH_WORKER"'
        subprocess.run(["sh", "-c", script], start_new_session=True, check=True)
        time.sleep(3000)

    def compiled(*inputs):
        share_now.append(0.5)
        try:
            return module(*inputs)
        finally:
            share_now.pop()

    return compiled


if "no compile" in broken:
    del compile


class autocast:
    def __init__(self, device, dtype, enabled, cache_enabled):
        assert not cache_enabled
        self.enabled = enabled

    def __enter__(self):
        GPU.autocast = self.enabled

    def __exit__(self, *error):
        pass  # backward computes in the same types


class Stream:
    def wait_stream(self, other):
        pass


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = GPU.ms

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return end.at - self.at


class on_stream:
    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        self.before, GPU.stream = GPU.stream, self.stream

    def __exit__(self, *error):
        GPU.stream = self.before


class CUDAGraph:
    def replay(self):
        GPU.ms += self.ms
        profiler.ran.append(self.ms)
        GPU.trained += 1


class capture:
    def __init__(self, graph):
        self.graph = graph

    def __enter__(self):
        if is_broken("capture crashes"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if is_broken("capture fails"):
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        GPU.capturing = 0.0

    def __exit__(self, *error):
        self.graph.ms, GPU.capturing = GPU.capturing / 5, None


class Profile:
    def __init__(self, activities):
        assert activities == ["CUDA"]

    def __enter__(self):
        if is_broken("profiler fails"):
            raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")
        if is_broken("profiler crashes"):
            os._exit(134)
        profiler.ran = []
        return self

    def __exit__(self, *error):
        pass

    def export_chrome_trace(self, path):
        events, at = [{"ph": "M", "name": "process_name"}, {"ph": "X", "cat": "cpu_op", "name": "aten::conv", "ts": 0, "dur": 1}], 1e6
        for ms in profiler.ran:  # half of it convolves, a quarter is a norm, an eighth a gap
            for name, share in (("sm80_xmma_fprop_implicit_gemm_tf32f32", 0.5), ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>", 0.25), ("vectorized_elementwise_kernel", 0.125)):
                events.append({"ph": "X", "cat": "kernel", "name": name, "ts": at, "dur": 1e3 * ms * share})
                at += 1e3 * ms * share
            at += 1e3 * ms * 0.125
        with open(path, "w", encoding="ascii") as file:
            json.dump({"traceEvents": events}, file)


bfloat16, channels_last = "bfloat16", "channels_last"
manual_seed = randn = randint = lambda *a, **k: Tensor()
cuda, backends, nn, optim, profiler, functional = MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock()
cuda.is_available = lambda: "blind" not in broken
cuda.Stream, cuda.Event, cuda.CUDAGraph, cuda.graph, cuda.stream = Stream, Event, CUDAGraph, capture, on_stream
backends.cudnn.allow_tf32 = False
nn.Module = nn.Sequential = nn.Linear = nn.Conv2d = Module
nn.functional, functional.cross_entropy = functional, cross_entropy
optim.SGD = SGD
profiler.profile, profiler.ran = Profile, []
profiler.ProfilerActivity.CUDA = "CUDA"
for name, module in {"nn": nn, "nn.functional": functional, "distributed": MagicMock(), "multiprocessing": MagicMock(), "optim": optim}.items():
    sys.modules["torch." + name] = module
distributed, multiprocessing = sys.modules["torch.distributed"], sys.modules["torch.multiprocessing"]

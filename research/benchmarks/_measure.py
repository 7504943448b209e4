"""CPU time and peak memory of tensor code, for the scripts in this folder.

Peak memory is the maximum that the tensor allocator holds above its level at the start, from the allocation events of
torch.profiler: the value is exact and independent of other programs. Times are medians of interleaved repetitions,
measured without the profiler.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile


@dataclass(frozen=True, slots=True)
class Measurement:
    """One forward and backward pass.

    Attributes:
        value: The loss.
        seconds: Median time.
        peak_mib: Peak memory above the input, MiB.
    """

    value: float
    seconds: float
    peak_mib: float


def measure(run: Callable[[], Tensor], *, repeats: int = 3) -> Measurement:
    """Measure time and memory of a function that computes and returns a loss and also computes its gradient."""
    return compare({"only": run}, repeats=repeats)["only"]


def compare(runs: Mapping[str, Callable[[], Tensor]], *, repeats: int = 3) -> dict[str, Measurement]:
    """Measure several functions, with interleaved repetitions so that load on the machine affects all alike."""
    peaks = {name: peak_memory(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    values: dict[str, float] = {}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            value = run()
            times[name].append(time.perf_counter() - start)
            values[name] = value.item()
    return {name: Measurement(values[name], statistics.median(times[name]), peaks[name] / 2**20) for name in runs}


def peak_memory(run: Callable[[], Tensor]) -> int:
    """Return the maximum number of bytes held by the CPU allocator above its level at the start."""
    gc.collect()
    with quiet_profiler(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    inner = profiler.profiler
    if inner is None or inner.kineto_results is None:
        raise RuntimeError("torch.profiler returned no results")
    events = [event for event in inner.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


@contextmanager
def quiet_profiler() -> Iterator[None]:
    """Suppress the messages that the profiler writes to standard error from native code."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def machine() -> dict[str, str | int]:
    """Describe the environment of the measurements."""
    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
    }

"""Single-threaded BLAS, and array operations that are slow in plain NumPy: the largest values of rows, medians.

Also counts the processors available to this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


# Maximum number of values per group. A first pass compares only the maximum of each group.
_MAX_GROUP_SIZE = 16


def processor_count() -> int:
    """Return the number of processors that this process may use, at least 1."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit NumPy's BLAS library to one thread within the block.

    Feature extraction, comparison and shot detection multiply thousands of small matrices. With two threads, OpenBLAS
    needs twice the processor time for these, mostly spent waiting, and more wall-clock time if anything else is
    running.
    """
    if _is_on_one_thread():
        yield
        return
    with _load_controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _is_on_one_thread() -> bool:
    """Whether the environment already limits NumPy's OpenBLAS to one thread, as the command line does; threadpoolctl
    need not be imported then."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        return False
    built: Any = getattr(np.__config__, "CONFIG", {})
    return "openblas" in str(built.get("Build Dependencies", {}).get("blas", {}).get("name", "")).lower()


@cache
def _load_controller() -> ThreadpoolController:
    # The controller finds only libraries that are already loaded, such as NumPy's.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def largest_columns(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Return the columns [Q, min(count, N)] of the largest values in each row [Q, N], best first, ties in order.

    The group maxima yield a lower bound that at least ``count`` values in a row reach, but few others do, so that only
    a few values must be sorted.
    """
    rows, length = values.shape
    # Use at least twice as many groups as requested columns; with fewer, too many values would reach the bound.
    size = min(_MAX_GROUP_SIZE, length // (2 * count))
    if size < 2:
        order = np.argsort(-values, axis=1, kind="stable")
        return order[:, :count]
    # The maxima of `count` groups reach this bound, so at least `count` values do.
    groups = length // size
    largest = values[:, : groups * size].reshape(rows, size, groups).max(axis=1)
    bound = np.partition(largest, groups - count, axis=1)[:, groups - count]
    found, columns = np.divmod(np.flatnonzero(values >= bound[:, None]), length)
    counts = np.bincount(found, minlength=rows)
    positions = np.arange(len(found)) - np.repeat(np.cumsum(counts) - counts, counts)
    candidates = np.full((rows, counts.max(initial=count)), -np.inf, np.float32)
    candidates[found, positions] = values[found, columns]
    chosen = np.zeros(candidates.shape, np.int64)
    chosen[found, positions] = columns
    order = np.argsort(-candidates, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(chosen, order, axis=1)


def median(values: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """Compute the median along an axis. ``numpy.median`` imports masked arrays, which takes 5 % of the startup time."""
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, 0)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return np.asarray((low.astype(np.float64) + high) / 2)

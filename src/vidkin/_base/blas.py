"""Arithmetic of arrays where NumPy alone wastes time: linear algebra on one thread, the largest numbers of rows.

And how many processors there are for what is worth dividing.
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


# Numbers a group of which only the largest is looked at first.
_MOST_A_GROUP = 16


def processor_count() -> int:
    """Number of processors that this process may use, at least 1."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep the BLAS library that NumPy brings on one thread for a while.

    Describing, comparing and cutting multiply thousands of small matrices. With two threads OpenBLAS takes twice the
    processor time for that, most of it waiting, and longer by the clock as soon as anything else runs.
    """
    if _is_on_one_thread():
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _is_on_one_thread() -> bool:
    """Whether NumPy brought OpenBLAS, which the environment keeps on one thread, as the command line does: then nothing
    has to be limited, and threadpoolctl is not loaded."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        return False
    built: Any = getattr(np.__config__, "CONFIG", {})
    return "openblas" in str(built.get("Build Dependencies", {}).get("blas", {}).get("name", "")).lower()


@cache
def _controller() -> ThreadpoolController:
    # Only libraries that are loaded are found, such as that of NumPy.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def largest_columns(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Columns [Q, min(count, N)] of the largest of each row of [Q, N], best first; equal ones in their order.

    The largest numbers of groups give a bound that at least ``count`` numbers of a row reach and few others do: only
    these are sorted.
    """
    rows, length = values.shape
    # Twice as many groups as are searched for: with fewer, the bound would let too many pass.
    size = min(_MOST_A_GROUP, length // (2 * count))
    if size < 2:
        order = np.argsort(-values, axis=1, kind="stable")
        return order[:, :count]
    # So many groups reach this bound with their largest number, so at least so many numbers do.
    groups = length // size
    largest = values[:, : groups * size].reshape(rows, size, groups).max(axis=1)
    bound = np.partition(largest, groups - count, axis=1)[:, groups - count]
    found, columns = np.divmod(np.flatnonzero(values >= bound[:, None]), length)
    counts = np.bincount(found, minlength=rows)
    places = np.arange(len(found)) - np.repeat(np.cumsum(counts) - counts, counts)
    few = np.full((rows, counts.max(initial=count)), -np.inf, np.float32)
    few[found, places] = values[found, columns]
    chosen = np.zeros(few.shape, np.int64)
    chosen[found, places] = columns
    order = np.argsort(-few, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(chosen, order, axis=1)


def median(values: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """``numpy.median`` along an axis without it: that imports NumPy's masked arrays, a twentieth of a start."""
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, 0)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return np.asarray((low.astype(np.float64) + high) / 2)

"""Linear algebra on one thread: our products are small, and a thread that waits for them costs more than it saves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep the BLAS library that NumPy brings on one thread for a while.

    Describing, comparing and cutting multiply thousands of small matrices. With two threads OpenBLAS takes twice the
    processor time for that, most of it waiting, and longer by the clock as soon as anything else runs.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    # NumPy first: only libraries that are loaded are found.
    import numpy as np
    from threadpoolctl import ThreadpoolController

    np.zeros(1)
    return ThreadpoolController()

"""Memory of the C library: return unused memory to the system, and limit how much each thread holds."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

# M_ARENA_MAX and M_MMAP_THRESHOLD from malloc.h. Unless the threshold is set, glibc raises it up to 32 MB and then
# keeps the memory of large arrays.
_HEAPS_OPTION, _HEAPS = -8, 2
_LARGE_OPTION, _LARGE = -3, 1 << 20


def give_back_memory() -> None:
    """Return unused memory to the system.

    Reference cycles, such as errors with their tracebacks, keep frames and decoders alive. Python counts these as only
    a few objects and so collects them late. Threads also fragment the heaps of the C library (glibc).
    """
    gc.collect()
    trim = _find_glibc_function("malloc_trim")
    if trim is not None:
        trim(0)


def share_heaps() -> bool:
    """Limit malloc to two heaps shared by all threads; return whether the C library (glibc) supports it.

    By default, glibc creates up to eight heaps per processor and returns little of their memory, so that a server with
    dozens of threads holds a third more memory than it needs. Blocks above 1 MB are returned immediately.
    """
    mallopt = _find_glibc_function("mallopt")
    return mallopt is not None and bool(mallopt(_HEAPS_OPTION, _HEAPS)) and bool(mallopt(_LARGE_OPTION, _LARGE))


def _find_glibc_function(name: str) -> Any | None:
    """Return a function of glibc; None on other systems and in other C libraries."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None

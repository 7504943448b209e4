"""Return unused memory to the system."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back_memory() -> None:
    """Return unused memory to the system.

    Frames and decoders are kept alive by reference cycles, such as errors with their tracebacks. Python counts these as
    only a few objects and collects them late. Threads also fragment the heaps of the C library (glibc).
    """
    gc.collect()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

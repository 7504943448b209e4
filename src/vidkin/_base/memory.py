"""Memory that the C library holds for later."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back_memory() -> None:
    """Give memory that nobody uses back to the system.

    Pictures and decoders hang on cycles of objects, such as errors with their call stacks, which Python counts as a few
    objects and therefore keeps for long. Threads leave holes in the heaps of the C library (glibc).
    """
    gc.collect()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

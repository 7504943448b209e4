"""Detect whether vidkin runs as a bundle, an executable without Python, and start its worker processes."""

from __future__ import annotations

import sys

WORKER_OPTION = "--worker-process"
"""First argument that makes the executable of a bundle a worker; a file descriptor may follow."""


def is_bundled() -> bool:
    """Whether this process is the executable of a bundle. ``sys.executable`` then runs vidkin, not Python."""
    return bool(getattr(sys, "frozen", False))

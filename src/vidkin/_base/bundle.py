"""Detect whether vidkin runs as a bundle (an executable that needs no Python), and start its worker processes."""

from __future__ import annotations

import sys

WORKER_OPTION = "--worker-process"
"""First argument that makes a bundled executable run as a worker; a file descriptor may follow."""


def is_bundled() -> bool:
    """Whether this process is a bundled executable. ``sys.executable`` then runs vidkin, not Python."""
    return bool(getattr(sys, "frozen", False))

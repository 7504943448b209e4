"""Whether vidkin runs as a bundle, an executable without a Python interpreter, and how that starts a worker process."""

from __future__ import annotations

import sys

WORKER_OPTION = "--worker-process"
"""First argument that makes the executable of a bundle a worker; a file descriptor may follow."""


def is_bundled() -> bool:
    """Whether this process is the executable of a bundle. ``sys.executable`` then runs vidkin, not Python."""
    return bool(getattr(sys, "frozen", False))

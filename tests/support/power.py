"""Simulated power failures between two file operations, and disks on which one operation fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from vidkin._base import disk

__all__ = ["PowerCut", "PowerCutError", "RefusingDisk", "count_operations"]


class PowerCutError(BaseException):
    """The simulated machine stops; deliberately not caught by ``except Exception``."""


@dataclass
class PowerCut:
    """Stops before the n-th file operation and discards what had not reached the disk.

    Content that was not synchronized is truncated by half. With ``names``, new names in folders that were not
    synchronized
    are lost as well, and the files have their old names.

    Args:
        turn: Number of the operation before which the machine stops, starting at 0; -1 for never.
        names: Whether names are lost as well.
    """

    turn: int = -1
    names: bool = False
    operations: list[str] = field(default_factory=list)
    _unsynced: dict[str, int] = field(default_factory=dict)
    _renamed: list[tuple[str, str, bytes | None]] = field(default_factory=list)

    def __call__(self, operation: str, path: str, target: str = "") -> None:
        if 0 <= self.turn <= len(self.operations):
            raise PowerCutError
        self.operations.append(operation)
        if operation in ("create", "write"):
            self._unsynced.setdefault(path, os.path.getsize(path) if os.path.exists(path) else 0)
        elif operation == "sync":
            self._unsynced.pop(path, None)
            self._renamed = [item for item in self._renamed if path not in map(os.path.dirname, item[:2])]
        elif operation == "rename":
            old = Path(target).read_bytes() if os.path.isfile(target) else None
            self._renamed.append((path, target, old))
            if path in self._unsynced:
                self._unsynced[target] = self._unsynced.pop(path)

    def lose(self) -> None:
        """Bring the files to the state of a disk that had not written everything."""
        if self.names:
            for source, target, old in reversed(self._renamed):
                if os.path.lexists(target) and not os.path.lexists(source):
                    os.rename(target, source)
                    if old is not None:
                        Path(target).write_bytes(old)
                    if target in self._unsynced:
                        self._unsynced[source] = self._unsynced.pop(target)
        for path, size in self._unsynced.items():
            with suppress(FileNotFoundError):
                os.truncate(path, size + (os.path.getsize(path) - size) // 2)


@dataclass
class RefusingDisk:
    """Fails once, at the n-th operation, like a full disk.

    Args:
        turn: Number of the operation, starting at 0.
    """

    turn: int
    count: int = 0

    def __call__(self, operation: str, path: str, target: str = "") -> None:
        self.count += 1
        if self.count == self.turn + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def count_operations(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> list[str]:
    """Run an action and return its file operations."""
    watching = PowerCut()
    with monkeypatch.context() as patch:
        patch.setattr(disk, "before", watching)
        action()
    return watching.operations

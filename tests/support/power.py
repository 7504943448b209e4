"""A machine whose power fails between two file operations, and disks that refuse one of them."""

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
    """The machine stops: nothing catches this, as nothing runs any more."""


@dataclass
class PowerCut:
    """Stops before the n-th file operation and every later one, and takes back what the disk did not have yet.

    Content that was not synchronized is cut in half. With ``names``, new names are lost, too, whose folder was not
    synchronized: the file has its old one.

    Args:
        turn: Number of the operation before which the machine stops, from 0; -1 for never.
        names: Also lose names.
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
        """What a disk lacks that had not written everything."""
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
    """Fails at the n-th operation, once, as a disk does that is full.

    Args:
        turn: Number of the operation, from 0.
    """

    turn: int
    count: int = 0

    def __call__(self, operation: str, path: str, target: str = "") -> None:
        self.count += 1
        if self.count == self.turn + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def count_operations(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> list[str]:
    """The operations of an action that runs through."""
    watching = PowerCut()
    with monkeypatch.context() as patch:
        patch.setattr(disk, "before", watching)
        action()
    return watching.operations

"""A folder of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TypeVar

from vidkin._base.atomic import replace_file
from vidkin.index.storage.places.file_lock import hold_file_lock

__all__ = ["LocalPlace"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class LocalPlace:
    """A :class:`~vidkin.index.storage.places.contract.Place` in a folder.

    Args:
        folder: Absolute.
    """

    storage_options = None
    # The lock belongs to the operating system and ends with its process, not before.
    lock_ends_writing = True

    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        self.uri = str(folder)

    def prepare(self) -> None:
        os.makedirs(self.uri, exist_ok=True)

    def address(self, name: str) -> str:
        return os.path.join(self.uri, name)

    def read(self, name: str) -> bytes | None:
        try:
            with open(self.address(name), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        path = self.address(name)
        if "/" in name:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        # Never write through a link that somebody planted under a predictable name.
        with replace_file(path, sync=sync) as temporary:
            temporary.write_bytes(content)

    def version(self, name: str) -> Hashable | None:
        try:
            status = os.stat(self.address(name))
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

    def names(self) -> set[str]:
        return set(os.listdir(self.uri))

    def sizes(self, folder: str = "") -> dict[str, int]:
        sizes = {}
        for parent, _, files in os.walk(self.address(folder)):
            for file in files:
                path = os.path.join(parent, file)
                with suppress(FileNotFoundError):  # a writer has just replaced it
                    sizes[os.path.relpath(path, self.uri)] = os.stat(path).st_size
        return sizes

    def has_file(self, name: str) -> bool:
        return os.path.isfile(self.address(name))

    def has_folder(self, name: str = "") -> bool:
        return os.path.isdir(self.address(name))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(self.address(name))

    def delete_folder(self, name: str) -> None:
        shutil.rmtree(self.address(name))

    def delete_unfinished(self, folder: str) -> None:
        for path in Path(self.address(folder)).glob("*/.*.part.*"):
            path.unlink()

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        return [function(item) for item in items]

    def exclusive(self, wait: float = 0.0) -> AbstractContextManager[None]:
        return hold_file_lock(Path(self.uri), wait)

    def check_writer(self, *, ask: bool = False) -> None:
        pass

    def needs_fence(self) -> bool:
        return False

    def note_fence(self) -> None:
        pass

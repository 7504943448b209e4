"""The contract of places that hold the files of an index."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Place(Protocol):
    """Files by name below one root; ``/`` separates folders in a name.

    Failures of the system or the network raise a :class:`vidkin.errors.CollectionError` or an :class:`OSError` that
    :mod:`vidkin.index.storage.files` turns into one.
    """

    @property
    def uri(self) -> str:
        """The root as text: an absolute path, or an address such as ``s3://bucket/prefix``."""

    @property
    def folder(self) -> Path | None:
        """The root as a local folder; None on object storage."""

    @property
    def storage_options(self) -> Mapping[str, str] | None:
        """Options with which Lance opens tables here."""

    @property
    def lock_ends_writing(self) -> bool:
        """Whether a process that no longer holds the lock can no longer write.

        If False, a long-delayed writer may still have a request in flight.
        """

    def explain(self, text: str) -> str | None:
        """Explain why the place refused a request of Lance, with advice; None if unknown.

        Args:
            text: Message of an error.
        """

    def prepare(self) -> None:
        """Create the root, if this kind of place needs that."""

    def address(self, name: str) -> str:
        """The address of a file or folder, for Lance and for messages."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if the file is missing."""

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        """Write a file atomically.

        On object storage, a file that was read or written here before is replaced only if it has not changed since,
        and a file that was missing is created only if it still does not exist; otherwise
        :class:`vidkin.errors.CollectionLockedError` is raised.

        Args:
            name: Name of the file; its folder is created if missing.
            content: The whole content.
            sync: Wait until the content would survive a power cut.
        """

    def version(self, name: str) -> Hashable | None:
        """A value that changes whenever the file changes; None if the file is missing."""

    def names(self) -> set[str]:
        """Names of files and folders directly below the root, possibly without files of the lock."""

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Bytes of every file in a folder and below, by its name from the root."""

    def has_file(self, name: str) -> bool:
        """Whether a file of this name exists."""

    def has_folder(self, name: str = "") -> bool:
        """Whether a folder of this name exists; on object storage, whether any file is below it."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; missing ones are ignored."""

    def delete_folder(self, name: str) -> None:
        """Delete a folder with its contents."""

    def delete_unfinished(self, folder: str) -> None:
        """Delete unfinished files of killed writers; only for the holder of the writer's lock."""

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Apply a function that reads or writes one file; results in order, in parallel over a network."""

    def exclusive(self, wait: float = 0.0) -> AbstractContextManager[None]:
        """Hold the writer's lock, which one process has at a time.

        In a folder it is a lock of the operating system, released when its process ends. On object storage it is a
        lease, renewed while the writer lives; the lease of a killed writer expires.

        Args:
            wait: Seconds to wait for other writers; 0 fails at once.

        Raises:
            CollectionLockedError: Another process (or another part of this one), named in the message, still holds it.
            CollectionError: The system refuses to write there, or a part of an index in a folder is a symbolic link.
        """

    def check_writer(self, *, ask: bool = False) -> None:
        """Raise :class:`vidkin.errors.CollectionLockedError` if the writer's lock was lost.

        Args:
            ask: Ask the storage; otherwise decide by time alone.
        """

    def needs_fence(self) -> bool:
        """Whether an earlier writer did not release its lock and may not know that it lost it."""

    def note_fence(self) -> None:
        """Record that tables are fenced, so that commits of earlier writers fail."""


Location = str | os.PathLike[str] | Place
"""A folder, an address on object storage, or an open place."""

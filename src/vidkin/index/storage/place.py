"""The interface of places, the locations that store the files of an index."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Place(Protocol):
    """Access to files by name relative to a root; ``/`` separates folders in a name.

    Failures of the system or the network raise a :class:`vidkin.errors.CollectionError`, or an :class:`OSError` that
    :mod:`vidkin.index.storage.files` converts to one.
    """

    @property
    def uri(self) -> str:
        """The root as text: an absolute path, or a URL such as ``s3://bucket/prefix``."""

    @property
    def folder(self) -> Path | None:
        """The root as a local folder; None on object storage."""

    @property
    def storage_options(self) -> Mapping[str, str] | None:
        """Options for opening Lance tables at this place."""

    @property
    def lock_ends_writing(self) -> bool:
        """Whether a process that no longer holds the lock can no longer write.

        If False, a long-delayed writer may still have a request in flight.
        """

    def explain(self, text: str) -> str | None:
        """Explain why the place refused a request by Lance, with advice; None if unknown.

        Args:
            text: Text of the error message.
        """

    def prepare(self) -> None:
        """Create the root, if necessary for this kind of place."""

    def address(self, name: str) -> str:
        """Path or URL of a file or folder, for Lance and for error messages."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        """Write a file atomically.

        On object storage, a file that was read or written through this object before is replaced only if it has not
        changed since, and a file that did not exist is created only if it still does not exist.

        Args:
            name: Name of the file; its folder is created if necessary.
            content: The whole content.
            sync: Whether to wait until the content would survive a power failure.

        Raises:
            CollectionLockedError: Another writer has changed the file on object storage.
        """

    def version(self, name: str) -> Hashable | None:
        """Return a value that changes whenever the file changes; None if the file does not exist."""

    def names(self) -> set[str]:
        """Names of files and folders directly below the root, possibly without lock files."""

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Size in bytes of every file in a folder and its subfolders, keyed by name relative to the root."""

    def has_file(self, name: str) -> bool:
        """Whether a file with this name exists."""

    def has_folder(self, name: str = "") -> bool:
        """Whether a folder with this name exists; on object storage, whether it contains any file."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; missing files are ignored."""

    def delete_folder(self, name: str) -> None:
        """Delete a folder and its contents."""

    def delete_unfinished(self, folder: str) -> None:
        """Delete unfinished files left by killed writers; the caller must hold the write lock."""

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Apply a function that reads or writes one file to each item, in parallel over a network; keep the order."""

    def exclusive(self, wait: float = 0.0) -> AbstractContextManager[None]:
        """Hold the write lock, which only one process can hold at a time.

        In a folder, this is a lock of the operating system, which is released when the process exits. On object
        storage, it is a lease, which is renewed while the writer is alive and expires if it is killed.

        Args:
            wait: Seconds to wait for other writers; 0 to fail immediately.

        Raises:
            CollectionLockedError: The lock is held by another process, or elsewhere in this one; the message says by
                which.
            CollectionError: The system refuses to write, or part of an index in a folder is a symbolic link.
        """

    def check_writer(self, *, ask: bool = False) -> None:
        """Check that the write lock has not been lost.

        Args:
            ask: Whether to query the storage; otherwise only the time is checked.

        Raises:
            CollectionLockedError: The write lock was lost.
        """

    def needs_fence(self) -> bool:
        """Whether an earlier writer did not release its lock and may not know that it has lost it."""

    def note_fence(self) -> None:
        """Record that tables are fenced, so that commits by earlier writers fail."""


Location = str | os.PathLike[str] | Place
"""A folder, a URL on object storage, or an open place."""

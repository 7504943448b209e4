"""The lock that lets one process at a time write to an index."""

from __future__ import annotations

from contextlib import AbstractContextManager

from vidkin.index.storage.places.contract import Location
from vidkin.index.storage.places.opening import open_place

__all__ = ["writer_lock"]


def writer_lock(location: Location, *, wait: float = 0.0) -> AbstractContextManager[None]:
    """Hold the right to write to an index.

    In a folder it is a lock of the operating system, released the moment its process ends. On object storage it is a
    lease, renewed while the writer lives: that of a killed writer ends by itself
    (:mod:`vidkin.index.storage.places.lease`).

    Args:
        location: Location of the index.
        wait: Seconds to wait for other writers; 0 fails at once.

    Raises:
        CollectionLockedError: Another process (or another part of this one) still holds it; says which.
        CollectionError: The system refuses to write there, or a part of an index in a folder is a symbolic link.
    """
    return open_place(location).exclusive(wait)

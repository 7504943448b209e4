"""Look up records by a path from the user: a file, or a folder for all files below it."""

from __future__ import annotations

import os
import unicodedata

from vidkin.errors import NotIndexedError
from vidkin.index.records import VideoRecord
from vidkin.index.storage.contract import VectorStore

__all__ = ["find_records", "has_record"]


def find_records(store: VectorStore, path: str | os.PathLike[str]) -> list[VideoRecord]:
    """Find the record of a file, or of all files in a folder and below; at least one.

    Args:
        store: Store of the index.
        path: Path of a video; it can be relative or begin with ``~``, and accents can be composed or decomposed.

    Raises:
        NotIndexedError: There is no such record.
    """
    name = os.path.abspath(os.path.expanduser(os.fspath(path)))
    inside = os.path.join(name, "")
    records = [r for r in store.videos() if r.path == name or r.path.startswith(inside)]
    if not records:
        normalized = unicodedata.normalize("NFC", name)
        records = [r for r in store.videos() if unicodedata.normalize("NFC", r.path) == normalized]
    if not records:
        raise NotIndexedError(f"{name} is not in the index; `vidkin info --videos` lists the videos that are")
    return records


def has_record(store: VectorStore, path: str | os.PathLike[str]) -> bool:
    """Whether there is a record of exactly this file; names as in :func:`find_records`."""
    name = os.path.abspath(os.path.expanduser(os.fspath(path)))
    normalized = unicodedata.normalize("NFC", name)
    return store.find(name) is not None or any(
        unicodedata.normalize("NFC", record.path) == normalized for record in store.videos()
    )

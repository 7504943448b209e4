"""Remove files from an index by name, so that scanning their folder again does not bring them back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from vidkin._base.plain_values import parse_json
from vidkin.errors import CollectionDamagedError
from vidkin.index.ingest.files.scan import Scan
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.files import write_whole
from vidkin.index.storage.lookup import find_records
from vidkin.index.storage.places.contract import Place

__all__ = ["RemovedPaths", "leave_out_removed", "remove_records"]


@dataclass(frozen=True, slots=True)
class RemovedPaths:
    """Files and folders that stay out of an index until they are named again.

    Attributes:
        paths: Absolute.
    """

    FILE = "removed.json"

    paths: frozenset[str] = frozenset()

    @classmethod
    def open(cls, place: Place) -> RemovedPaths:
        """Load the removed paths of an index; none if nothing was removed.

        Raises:
            CollectionDamagedError: The file is there and cannot be read.
        """
        content = place.read(cls.FILE)
        if content is None:
            return cls()
        try:
            names = parse_json(content.decode())["removed"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError("removed is not a list of paths")
        except (ValueError, KeyError, TypeError) as error:
            raise CollectionDamagedError(
                f"{place.address(cls.FILE)} is damaged ({error}); delete it to let `vidkin index` add again what was "
                "removed by name"
            ) from error
        return cls(frozenset(names))

    def save(self, place: Place) -> None:
        """Write the paths whole or not at all."""
        # Only ASCII, so that names that are not valid UTF-8 survive.
        write_whole(place, self.FILE, json.dumps({"removed": sorted(self.paths)}, indent=2).encode())

    def with_paths(self, paths: Iterable[str]) -> RemovedPaths:
        """A copy with these paths added."""
        return RemovedPaths(self.paths | frozenset(paths))

    def without(self, paths: Iterable[str]) -> RemovedPaths:
        """A copy without these paths, which were named again; paths below them stay removed."""
        return RemovedPaths(self.paths - frozenset(paths))

    def holds(self, path: str) -> bool:
        """Whether a file was removed, itself or with a folder that it is in."""
        while path not in self.paths:
            parent = os.path.dirname(path)
            if parent == path:
                return False
            path = parent
        return True


def remove_records(place: Place, store: VectorStore, names: Iterable[str | os.PathLike[str]]) -> int:
    """Remove files and all files in folders, and remember them; the caller holds the writer's lock.

    Args:
        place, store: Place and store of the index.
        names: Files and folders.

    Returns:
        The number of records removed.

    Raises:
        NotIndexedError: One of the names is not in the index; then nothing is removed.
    """
    store.recover()
    records: dict[int, str] = {}
    paths: set[str] = set()
    for name in names:
        named = find_records(store, name)
        records |= {record.id: record.path for record in named}
        path = os.path.abspath(os.path.expanduser(os.fspath(name)))
        inside = os.path.join(path, "")
        # The name may encode accents differently than the file system.
        is_spelled_so = any(record.path == path or record.path.startswith(inside) for record in named)
        paths |= {path} if is_spelled_so else {record.path for record in named}
    RemovedPaths.open(place).with_paths(paths).save(place)
    store.remove(records)
    return len(records)


def leave_out_removed(scan: Scan, removed: RemovedPaths, known: Callable[[str], bool]) -> Scan:
    """Drop removed files from a scan, except those that were named or are in the index again.

    Args:
        scan: Scan of the paths named now.
        removed: Paths that are still removed, without the named ones.
        known: Whether a path has a record.
    """
    named = tuple(os.path.join(folder, "") for folder in scan.folders if removed.holds(folder))
    left_out = {
        file.path
        for file in scan.files
        if removed.holds(file.path)
        and file.path not in scan.named
        and not file.path.startswith(named)
        and not known(file.path)
    }
    if not left_out:
        return scan
    reasons = ((path, "removed from the index; name it to add it again") for path in left_out)
    return replace(
        scan,
        files=tuple(file for file in scan.files if file.path not in left_out),
        skipped=tuple(sorted([*scan.skipped, *reasons])),
    )

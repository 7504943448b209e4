"""The sharded store: several Lance stores under one address that act as one store."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.storage.contract import (
    NO_WINDOW,
    NearestWindows,
    check_entries,
    check_path_is_free,
    check_vectors,
    no_windows,
)
from vidkin.index.storage.manifest import PARTS_FOLDER, Manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import Entry, VideoRecord
from vidkin.index.storage.stores import StoreKind
from vidkin.similarity import FrameFeatures
from vidkin_scale.lance_store import LanceStore

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


MAX_SHARDS = 4096


def count_shards(manifest: Manifest) -> int:
    """Return the number of shards of an index; 0 if it has another store."""
    named = parse_name(manifest.store)
    return _count(named.address) if named.prefix == "shards" else 0


def shard_places(place: Place, address: str | None) -> list[Place]:
    """Return the place of each shard's store.

    Args:
        place: Place of the index.
        address: Number of shards, from the name of the store.

    Raises:
        InvalidArgumentError: The number of shards is out of range.
    """
    return [PartOfPlace(place, f"{PARTS_FOLDER}/{number:04d}") for number in range(_count(address))]


def open_shards(place: Place, manifest: Manifest) -> ShardedStore:
    """Open the store of a sharded index."""
    return ShardedStore(place, count_shards(manifest))


def open_shard(place: Place, manifest: Manifest, shard: int) -> LanceStore:
    """Open the store of one shard of an index."""
    places = shard_places(place, parse_name(manifest.store).address)
    return LanceStore(places[shard], parts=len(places))


def _count(address: str | None) -> int:
    count = int(address) if address is not None and re.fullmatch(r"\d{1,9}", address) else 0
    if not 1 <= count <= MAX_SHARDS:
        raise InvalidArgumentError(f"shards must be from 1 to {MAX_SHARDS}, as in shards:16, got {address}")
    return count


Ask = Callable[[str, Mapping[int, tuple[Any, ...]]], dict[int, Any]]
"""Calls a reading method of a :class:`VectorStore` of several shards, with the ids of these shards. Takes the name
and, by shard number, the arguments; returns the results by shard number."""


class ShardedStore:
    """A :class:`~vidkin.index.storage.contract.VectorStore` of several stores, each with its own tables and features.

    A video is in the shard given by a hash of its first path, and stays there when its file moves. Its id is its id in
    the shard times the number of shards, plus the number of the shard, so that an id identifies the shard. The
    nearest windows overall are the best of each shard's nearest windows, so searches give the same results as with one
    store if windows are compared exactly, and better ones if each shard has its own approximate index.

    Every shard commits separately; after a crash each video is still either complete or absent.

    Args:
        place: Place of the index; shards are in ``shards/0000`` and following.
        shards: Number of shards, at least 1; it never changes.

    Attributes:
        ask: Function that queries the shards, replaced when they are on a cluster.
    """

    def __init__(self, place: Place, shards: int) -> None:
        self._root = place
        self.shards = [LanceStore(part, parts=shards) for part in shard_places(place, str(shards))]
        self.ask: Ask = self._ask_here

    def shard_of(self, video_id: int) -> int:
        """Return the number of the shard that contains a video."""
        return video_id % len(self.shards)

    def refresh(self) -> bool:
        """Move every shard to its newest committed state; True if any of them changed."""
        changed = [shard.refresh() for shard in self.shards]
        return any(changed)

    def videos(self) -> list[VideoRecord]:
        """Return the records of all shards, sorted by path as in a single store."""
        return self.select(lambda record: True)

    def select(self, wanted: Callable[[VideoRecord], bool]) -> list[VideoRecord]:
        """Return the selected records of all shards, sorted by path; only these are converted to global ids."""
        records = [
            self._globalize(at, record) for at, shard in enumerate(self.shards) for record in shard.select(wanted)
        ]
        return sorted(records, key=lambda record: record.path)

    def count(self) -> int:
        """Return the number of records in all shards."""
        return sum(shard.count() for shard in self.shards)

    def get(self, video_id: int) -> VideoRecord:
        """Return the record of a video, from the shard that its id identifies.

        Raises:
            NotIndexedError: There is no such video.
        """
        at, own = self._own(video_id)
        try:
            return self._globalize(at, self.shards[at].get(own))
        except NotIndexedError:
            raise NotIndexedError(f"there is no video with id {video_id} in the index") from None

    def find(self, path: str) -> VideoRecord | None:
        """Return the record of a path; every shard is searched, because a moved file stays in its shard."""
        found = ((at, shard.find(path)) for at, shard in enumerate(self.shards))
        return next((self._globalize(at, record) for at, record in found if record is not None), None)

    def append(
        self,
        record: VideoRecord,
        features: FrameFeatures | None = None,
        windows: NDArray[np.floating] | None = None,
    ) -> VideoRecord:
        return self.append_many([Entry(record, features, windows)])[0]

    def append_many(self, entries: Sequence[Entry]) -> list[VideoRecord]:
        """Add videos, each to the shard of its path; returns their records in the same order.

        Each shard commits separately, so after a crash only the videos of some shards may have been added.
        """
        check_entries(entries)
        by_shard: dict[int, list[int]] = {}
        for number, entry in enumerate(entries):
            by_shard.setdefault(self._shard_of_path(entry.record.path), []).append(number)
        records: dict[int, VideoRecord] = {}
        for at, numbers in by_shard.items():
            appended = self.shards[at].append_many([entries[number] for number in numbers])
            records |= {number: self._globalize(at, record) for number, record in zip(numbers, appended, strict=True)}
        return [records[number] for number in range(len(entries))]

    def update(self, records: Sequence[VideoRecord]) -> None:
        """Replace records; a file that moved stays in its shard.

        Raises:
            InvalidArgumentError: Another video of any shard has the path.
        """
        by_shard: dict[int, list[VideoRecord]] = {}
        for record in records:
            at, own = self._own(self.get(record.id).id)
            present = self.find(record.path)
            check_path_is_free(record, {} if present is None else {record.path: present.id})
            by_shard.setdefault(at, []).append(replace(record, id=own))
        for at, of_shard in by_shard.items():
            self.shards[at].update(of_shard)

    def read(self, video_id: int) -> FrameFeatures:
        """Return the features of a video, read through its shard."""
        return self.read_many([video_id])[0]

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Return the features of videos in order; on a cluster all shards read in parallel."""
        return self._collect("read_many", video_ids)

    def read_windows(self, video_id: int) -> NDArray[np.float16]:
        """Return the windows of a video, read through its shard."""
        return self.read_windows_many([video_id])[0]

    def read_windows_many(self, video_ids: Sequence[int]) -> list[NDArray[np.float16]]:
        """Return the windows of videos in order, read as by `read_many`."""
        return self._collect("read_windows_many", video_ids)

    def nearest(self, vectors: NDArray[np.floating], limit: int) -> NearestWindows:
        """Return the ``limit`` best of the nearest windows of all shards."""
        queries = check_vectors(vectors, limit)
        found = self.ask("nearest", dict.fromkeys(range(len(self.shards)), (queries, limit)))
        tables = [self._global(at, found[at]) for at in sorted(found)]
        scores = np.concatenate([table.scores for table in tables], axis=1)
        # Ties go to the first shard, so that the result does not depend on which shard answers first.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :limit]
        best = no_windows(len(queries), limit)
        for name in ("video_ids", "windows", "scores"):
            joined = np.concatenate([getattr(table, name) for table in tables], axis=1)
            getattr(best, name)[...] = np.take_along_axis(joined, order, axis=1)
        return best

    def window_count(self) -> int:
        """Return the number of windows in all shards."""
        return sum(shard.window_count() for shard in self.shards)

    def remove(self, video_ids: Iterable[int]) -> None:
        """Remove videos, shard by shard; each shard commits once."""
        by_shard: dict[int, list[int]] = {}
        for video_id in video_ids:
            at, own = self._own(video_id)
            by_shard.setdefault(at, []).append(own)
        for at, own_ids in by_shard.items():
            self.shards[at].remove(own_ids)

    def recover(self) -> int:
        """Delete leftovers of killed writers and removed videos in all shards; return the number of such videos."""
        removed = sum(shard.recover() for shard in self.shards)
        if self._root.needs_fence():
            self._root.note_fence()  # all shards have fenced their tables
        return removed

    def missing(self) -> dict[int, str]:
        """Return the videos whose features or windows are missing in their shard, as id -> cause."""
        return {
            self._global_id(at, own): cause
            for at, shard in enumerate(self.shards)
            for own, cause in shard.missing().items()
        }

    def discard_features(self, video_ids: Iterable[int]) -> None:
        """Delete the features of videos, so that :meth:`recover` marks them as stale."""
        for video_id in video_ids:
            at, own = self._own(video_id)
            self.shards[at].discard_features([own])

    def check_videos(self) -> None:
        """Read all lists of videos; raise :class:`CollectionDamagedError` if one of them is damaged."""
        for shard in self.shards:
            shard.check_videos()

    def remove_damaged_windows(self) -> dict[str, str]:
        """Run :meth:`LanceStore.remove_damaged_windows` in all shards."""
        return {path: why for shard in self.shards for path, why in shard.remove_damaged_windows().items()}

    def optimize(self) -> None:
        """Compact the tables of every shard, and index its windows if there are many."""
        for shard in self.shards:
            shard.optimize()

    def close(self) -> None:
        """Close every shard."""
        for shard in self.shards:
            shard.close()

    def _ask_here(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        def ask(at: int) -> Any:
            return getattr(self.shards[at], method)(*arguments[at])

        if len(arguments) < 2:
            return {at: ask(at) for at in arguments}
        # Slow work in a shard releases the GIL.
        with ThreadPoolExecutor(min(len(arguments), os.cpu_count() or 1), thread_name_prefix="vidkin-shards") as pool:
            return dict(zip(arguments, pool.map(ask, arguments), strict=True))

    def _collect(self, method: str, video_ids: Sequence[int]) -> list[Any]:
        """Collect results that shards read for their videos, in the order of the ids."""
        by_shard: dict[int, list[int]] = {}
        for video_id in video_ids:
            record = self.get(video_id)
            if record.status != "ok":
                part = "features" if method == "read_many" else "windows"
                raise NotIndexedError(f"video {video_id} is {record.status} and has no {part}")
            at, own = self._own(video_id)
            by_shard.setdefault(at, []).append(own)
        found = self.ask(method, {at: (own_ids,) for at, own_ids in by_shard.items()})
        remaining = {at: iter(results) for at, results in found.items()}
        return [next(remaining[self.shard_of(video_id)]) for video_id in video_ids]

    def _shard_of_path(self, path: str) -> int:
        present = self.find(path)
        if present is not None:
            return self.shard_of(present.id)
        return zlib.crc32(path.encode(errors="surrogateescape")) % len(self.shards)

    def _own(self, video_id: int) -> tuple[int, int]:
        """Return the shard of a video and its id there."""
        own, at = divmod(video_id, len(self.shards))
        return at, own

    def _global_id(self, at: int, own: int) -> int:
        return own * len(self.shards) + at

    def _globalize(self, at: int, record: VideoRecord) -> VideoRecord:
        """Return a record of a shard with its global id."""
        return replace(record, id=self._global_id(at, record.id))

    def _global(self, at: int, table: NearestWindows) -> NearestWindows:
        ids = np.where(table.video_ids == NO_WINDOW, NO_WINDOW, table.video_ids * len(self.shards) + at)
        return replace(table, video_ids=ids)


class PartOfPlace:
    """A :class:`~vidkin.index.storage.place.Place` within another one, whose lock it shares.

    Args:
        whole: The other place.
        prefix: Position within the other place, without outer slashes.
    """

    def __init__(self, whole: Place, prefix: str) -> None:
        self._whole = whole
        self._prefix = prefix

    @property
    def uri(self) -> str:
        return self._whole.address(self._prefix)

    @property
    def folder(self) -> Path | None:
        return None if self._whole.folder is None else self._whole.folder / self._prefix

    @property
    def storage_options(self) -> dict[str, str] | None:
        options = self._whole.storage_options
        return None if options is None else dict(options)

    @property
    def lock_ends_writing(self) -> bool:
        return self._whole.lock_ends_writing

    def explain(self, text: str) -> str | None:
        return self._whole.explain(text)

    def prepare(self) -> None:
        self._whole.prepare()
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def address(self, name: str) -> str:
        return self._whole.address(self._inside(name))

    def read(self, name: str) -> bytes | None:
        return self._whole.read(self._inside(name))

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        self._whole.write(self._inside(name), content, sync=sync)

    def version(self, name: str) -> Hashable | None:
        return self._whole.version(self._inside(name))

    def names(self) -> set[str]:
        if self.folder is not None:
            return {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        return {name.split("/", 1)[0] for name in self.sizes()}

    def sizes(self, folder: str = "") -> dict[str, int]:
        skip = len(self._prefix) + 1
        return {name[skip:]: size for name, size in self._whole.sizes(self._inside(folder)).items()}

    def has_file(self, name: str) -> bool:
        return self._whole.has_file(self._inside(name))

    def has_folder(self, name: str = "") -> bool:
        return self._whole.has_folder(self._inside(name))

    def delete(self, names: Iterable[str]) -> None:
        self._whole.delete([self._inside(name) for name in names])

    def delete_folder(self, name: str) -> None:
        self._whole.delete_folder(self._inside(name))

    def delete_unfinished(self, folder: str) -> None:
        self._whole.delete_unfinished(self._inside(folder))

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        return self._whole.map(function, items)

    def exclusive(self, wait: float = 0.0) -> AbstractContextManager[None]:
        return self._whole.exclusive(wait)

    def check_writer(self, *, ask: bool = False) -> None:
        self._whole.check_writer(ask=ask)

    def needs_fence(self) -> bool:
        return self._whole.needs_fence()

    def note_fence(self) -> None:
        """Do nothing: the whole place is fenced once all of its parts are."""

    def _inside(self, name: str) -> str:
        return f"{self._prefix}/{name}" if name else self._prefix


SHARDS = StoreKind(open=open_shards, places=shard_places)
"""The kind of store that vidkin finds by names such as ``shards:16``."""

"""The interface of stores for the records, features and windows of an index, and an in-memory store with exact search.

Shapes: E dimensions of a window vector, Q query vectors, K nearest windows requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.blas import largest_columns
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.storage.records import Entry, VideoRecord, to_stored
from vidkin.similarity import FrameFeatures

NO_WINDOW = -1
"""Placeholder in :class:`NearestWindows` if the store has fewer windows than requested."""


@dataclass(frozen=True, slots=True)
class NearestWindows:
    """The windows nearest to each query vector, best first.

    If there are fewer than K windows, the rest of each row is filled with :data:`NO_WINDOW` and score -1.

    Attributes:
        video_ids: [Q, K] int64.
        windows: [Q, K] int64, number of the window within its video.
        scores: [Q, K] float32 in [-1, 1], cosine similarity; approximate indexes may be off by a few thousandths.
    """

    video_ids: NDArray[np.int64]
    windows: NDArray[np.int64]
    scores: NDArray[np.float32]

    def put(
        self,
        place: tuple[slice, slice] | tuple[NDArray[np.int64], NDArray[np.int64]],
        video_ids: NDArray[np.int64],
        windows: NDArray[np.int64],
        scores: NDArray[np.float32],
    ) -> None:
        """Set part of the result, given by an index into its arrays."""
        self.scores[place] = scores
        self.video_ids[place] = video_ids
        self.windows[place] = windows


class FeatureReader(Protocol):
    """The methods of a store that are needed to score candidates."""

    def get(self, video_id: int) -> VideoRecord:
        """See :meth:`VectorStore.get`."""

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """See :meth:`VectorStore.read_many`."""


class VectorStore(Protocol):
    """Stores records, features and windows, and finds the windows nearest to a vector.

    **Snapshots.** Reading methods return the state as of opening or the last :meth:`refresh`, plus the writes made
    through this object, so that all steps of a search see the same state while another process is writing. Call
    :meth:`refresh` at the start of a search.

    **Atomicity.** A video exists once its record does, which is written after its features and windows. A path has one
    record; appending it again replaces the old record atomically.

    **Single writer.** Callers must ensure that only one process writes at a time (`Place.exclusive`).

    **Rounding.** Features are rounded by :func:`vidkin.index.storage.records.to_stored`.
    """

    def refresh(self) -> bool:
        """Move to the latest committed state; return whether anything changed."""

    def videos(self) -> list[VideoRecord]:
        """All records, including broken and stale ones, sorted by path."""

    def select(self, wanted: Callable[[VideoRecord], bool]) -> list[VideoRecord]:
        """Records selected by a predicate, sorted by path; much faster than :meth:`videos` if they are few.

        The ids that the predicate sees may be local to a shard.
        """

    def count(self) -> int:
        """Number of records, including broken and stale ones."""

    def get(self, video_id: int) -> VideoRecord:
        """Return the record with this id.

        Raises:
            NotIndexedError: There is no such record.
        """

    def find(self, path: str) -> VideoRecord | None:
        """Return the record with this absolute path, or None."""

    def append(
        self,
        record: VideoRecord,
        features: FrameFeatures | None = None,
        windows: NDArray[np.floating] | None = None,
    ) -> VideoRecord:
        """Add one video, replacing any record with the same path; return the record with its id."""

    def append_many(self, entries: Sequence[Entry]) -> list[VideoRecord]:
        """Add several videos with distinct paths in one commit, which is faster than adding them one at a time."""

    def update(self, records: Sequence[VideoRecord]) -> None:
        """Rewrite existing records, for example of moved files, without changing features and windows.

        Raises:
            InvalidArgumentError: A new path belongs to another video.
        """

    def read(self, video_id: int) -> FrameFeatures:
        """Read the features of one video.

        Raises:
            NotIndexedError: The video does not exist or has no features.
        """

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Read the features of several videos, in order; much faster than reading them one at a time."""

    def read_windows(self, video_id: int) -> NDArray[np.float16]:
        """Read the vectors [W, E] of all windows of one video.

        Raises:
            NotIndexedError: The video does not exist or has no windows.
        """

    def read_windows_many(self, video_ids: Sequence[int]) -> list[NDArray[np.float16]]:
        """Read the windows of several videos, in order; much faster than reading them one at a time."""

    def nearest(self, vectors: NDArray[np.floating], limit: int) -> NearestWindows:
        """Find the ``limit`` windows nearest to each of the unit vectors [Q, E]."""

    def window_count(self) -> int:
        """Total number of windows."""

    def remove(self, video_ids: Iterable[int]) -> None:
        """Remove these videos; unknown ids are ignored."""

    def recover(self) -> int:
        """Delete data left behind by killed writers and removed videos; return the number of such videos.

        Missing windows are rebuilt from the features. Videos with missing features become stale, with the cause.
        Must be called before the first write.
        """

    def missing(self) -> dict[int, str]:
        """Ids of videos with parts that are missing or, judging by their sizes, incomplete; with the causes."""

    def optimize(self) -> None:
        """Speed up reading after many writes: merge small files, index vectors, drop old versions."""

    def close(self) -> None:
        """Release memory and files; the store must not be used afterward."""


def check_entries(entries: Sequence[Entry]) -> None:
    """Check that the parts of each entry are consistent; every store calls this before adding entries.

    Raises:
        InvalidArgumentError: An entry is inconsistent, or two entries have the same path.
    """
    for entry in entries:
        record, features, windows = entry.record, entry.features, entry.windows
        if record.status != "ok" and (features is not None or windows is not None):
            raise InvalidArgumentError(f"{record.path} is {record.status} and cannot have features or windows")
        if record.status == "ok" and (features is None or windows is None):
            raise InvalidArgumentError(f"{record.path} is ok and must have features and windows (possibly empty)")
        if windows is not None and (windows.ndim != 2 or not np.issubdtype(windows.dtype, np.floating)):
            raise InvalidArgumentError(
                f"windows of {record.path} must be [W, E] floating point, got {list(windows.shape)} {windows.dtype}"
            )
        frames = 0 if features is None else len(features)
        count = 0 if windows is None else len(windows)
        if (record.frames, record.windows) != (frames, count):
            raise InvalidArgumentError(
                f"the record of {record.path} must have counts of {frames} frames and {count} windows, got "
                f"{record.frames} and {record.windows}"
            )
    if len({entry.record.path for entry in entries}) < len(entries):
        raise InvalidArgumentError("entries must have distinct paths, got the same path twice")


def check_path_is_free(record: VideoRecord, ids: Mapping[str, int]) -> None:
    """Check that a path does not belong to another video; every store calls this before updating records.

    Raises:
        InvalidArgumentError: The path belongs to another video.
    """
    owner = ids.get(record.path, record.id)
    if owner != record.id:
        raise InvalidArgumentError(
            f"video {record.id} cannot have the path {record.path}, which belongs to video {owner}; remove that first"
        )


def check_vectors(vectors: NDArray[np.floating], limit: int) -> NDArray[np.float32]:
    """Check query vectors and return them as float32; every store calls this before searching.

    Raises:
        InvalidArgumentError: The vectors or the limit are invalid.
    """
    if vectors.ndim != 2 or not np.issubdtype(vectors.dtype, np.floating):
        raise InvalidArgumentError(f"vectors must be [Q, E] floating point, got {list(vectors.shape)} {vectors.dtype}")
    if limit < 1:
        raise InvalidArgumentError(f"limit must be at least 1, got {limit}")
    return vectors.astype(np.float32, copy=False)


def check_dimension(queries: NDArray[np.float32], dimension: int) -> None:
    """Check that query vectors [Q, E] have the dimension of the windows.

    Raises:
        InvalidArgumentError: The dimensions differ.
    """
    if queries.shape[1] != dimension:
        raise InvalidArgumentError(
            f"query vectors must have dimension {dimension}, like the index, got {queries.shape[1]}"
        )


class Catalog:
    """In-memory table of records with unique ids and paths.

    Args:
        records: Initial records.

    Attributes:
        by_id: Records keyed by id.
        ids: Ids keyed by path.
    """

    def __init__(self, records: Iterable[VideoRecord] = ()) -> None:
        self.by_id = {record.id: record for record in records}
        self.ids = {record.path: record.id for record in self.by_id.values()}

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[VideoRecord]:
        return iter(self.by_id.values())

    def __contains__(self, video_id: int) -> bool:
        return video_id in self.by_id

    def by_path(self) -> list[VideoRecord]:
        """All records, sorted by path."""
        return self.select(lambda record: True)

    def select(self, wanted: Callable[[VideoRecord], bool]) -> list[VideoRecord]:
        """Records selected by a predicate, sorted by path."""
        return sorted(filter(wanted, self.by_id.values()), key=lambda record: record.path)

    def get(self, video_id: int) -> VideoRecord:
        """Return the record with this id.

        Raises:
            NotIndexedError: There is no such record.
        """
        record = self.by_id.get(video_id)
        if record is None:
            raise NotIndexedError(f"there is no video with id {video_id} in the index")
        return record

    def get_described(self, video_id: int, part: str) -> VideoRecord:
        """Return the record with this id, which must have features.

        Raises:
            NotIndexedError: There is no such record, or it has no features; the message says that ``part`` is missing.
        """
        record = self.get(video_id)
        if record.status != "ok":
            raise NotIndexedError(f"video {video_id} is {record.status} and has no {part}")
        return record

    def find(self, path: str) -> VideoRecord | None:
        """Return the record with this path, or None."""
        video_id = self.ids.get(path)
        return None if video_id is None else self.by_id[video_id]

    def put(self, record: VideoRecord) -> None:
        """Add a record, replacing any with the same id."""
        before = self.by_id.get(record.id)
        if before is not None:
            del self.ids[before.path]
        self.by_id[record.id] = record
        self.ids[record.path] = record.id

    def drop(self, video_ids: Iterable[int]) -> None:
        """Remove these records; unknown ids are ignored."""
        for video_id in video_ids:
            record = self.by_id.pop(video_id, None)
            if record is not None and self.ids.get(record.path) == video_id:
                del self.ids[record.path]

    def clear(self) -> None:
        """Remove all records."""
        self.by_id.clear()
        self.ids.clear()


class MemoryStore:
    """A :class:`~vidkin.index.storage.contract.VectorStore` in memory, with exact search."""

    def __init__(self) -> None:
        self._catalog = Catalog()
        self._features: dict[int, FrameFeatures] = {}
        self._windows: dict[int, NDArray[np.float16]] = {}
        self._next_id = 1
        self._matrix: WindowMatrix | None = None

    def refresh(self) -> bool:
        return False

    def videos(self) -> list[VideoRecord]:
        return self._catalog.by_path()

    def select(self, wanted: Callable[[VideoRecord], bool]) -> list[VideoRecord]:
        return self._catalog.select(wanted)

    def count(self) -> int:
        return len(self._catalog)

    def get(self, video_id: int) -> VideoRecord:
        return self._catalog.get(video_id)

    def find(self, path: str) -> VideoRecord | None:
        return self._catalog.find(path)

    def append(
        self,
        record: VideoRecord,
        features: FrameFeatures | None = None,
        windows: NDArray[np.floating] | None = None,
    ) -> VideoRecord:
        return self.append_many([Entry(record, features, windows)])[0]

    def append_many(self, entries: Sequence[Entry]) -> list[VideoRecord]:
        check_entries(entries)
        records = []
        for entry in entries:
            record = replace(entry.record, id=self._next_id)
            self._next_id += 1
            self.remove([before.id for before in [self._catalog.find(record.path)] if before is not None])
            self._catalog.put(record)
            if entry.features is not None and entry.windows is not None:
                self._features[record.id] = to_stored(entry.features)
                self._windows[record.id] = entry.windows.astype(np.float16, copy=False)
            records.append(record)
        self._matrix = None
        return records

    def update(self, records: Sequence[VideoRecord]) -> None:
        for record in records:
            self._catalog.get(record.id)
            check_path_is_free(record, self._catalog.ids)
            self._catalog.put(record)
        self._matrix = None

    def read(self, video_id: int) -> FrameFeatures:
        self._catalog.get_described(video_id, "features")
        return self._features[video_id]

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        return [self.read(video_id) for video_id in video_ids]

    def read_windows(self, video_id: int) -> NDArray[np.float16]:
        self._catalog.get_described(video_id, "windows")
        return self._windows[video_id]

    def read_windows_many(self, video_ids: Sequence[int]) -> list[NDArray[np.float16]]:
        return [self.read_windows(video_id) for video_id in video_ids]

    def nearest(self, vectors: NDArray[np.floating], limit: int) -> NearestWindows:
        queries = check_vectors(vectors, limit)
        if self._matrix is None:
            self._matrix = WindowMatrix.of_videos(self._windows)
        return self._matrix.nearest(queries, limit)

    def window_count(self) -> int:
        return sum(record.windows for record in self._catalog)

    def remove(self, video_ids: Iterable[int]) -> None:
        for video_id in list(video_ids):
            self._catalog.drop([video_id])
            self._features.pop(video_id, None)
            self._windows.pop(video_id, None)
        self._matrix = None

    def recover(self) -> int:
        return 0

    def missing(self) -> dict[int, str]:
        return {record.id: record.cause for record in self._catalog if record.needs_reindex}

    def optimize(self) -> None:
        return None

    def close(self) -> None:
        self.remove([record.id for record in self._catalog])


# Maximum number of scores computed at a time, unless a minimum block of queries exceeds it.
_MAX_SCORES = 1 << 22

_QUERIES_PER_BLOCK = 32


@dataclass(frozen=True, slots=True)
class WindowMatrix:
    """All windows of an index in memory.

    Attributes:
        vectors: [N, E] float32, because half-precision products are slow.
        video_ids: [N] int64.
        windows: [N] int64, number of the window within its video.
    """

    vectors: NDArray[np.float32]
    video_ids: NDArray[np.int64]
    windows: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    @classmethod
    def of_videos(cls, windows: Mapping[int, NDArray[np.float16]]) -> WindowMatrix:
        """Concatenate the windows of videos, given by id, in ascending order of ids."""
        parts = [(video_id, part) for video_id, part in sorted(windows.items()) if len(part)]
        if not parts:
            numbers = np.zeros(0, np.int64)
            return cls(np.zeros((0, 0), np.float32), numbers, numbers)
        return cls(
            vectors=np.concatenate([part for _, part in parts], dtype=np.float32),
            video_ids=np.concatenate([np.full(len(part), video_id, np.int64) for video_id, part in parts]),
            windows=np.concatenate([np.arange(len(part)) for _, part in parts]),
        )

    def of_known(self, known: NDArray[np.bool_]) -> WindowMatrix:
        """Return only the windows for which ``known`` [N] is True."""
        if known.all():
            return self
        return WindowMatrix(self.vectors[known], self.video_ids[known], self.windows[known])

    def nearest(self, queries: NDArray[np.float32], limit: int) -> NearestWindows:
        """Find the ``limit`` windows with the largest dot product with each query [Q, E] float32."""
        if len(self) == 0 or len(queries) == 0:
            return no_windows(len(queries), limit)
        check_dimension(queries, self.vectors.shape[1])
        table = no_windows(len(queries), limit)
        step = max(_QUERIES_PER_BLOCK, _MAX_SCORES // len(self))
        for first in range(0, len(queries), step):
            scores = queries[first : first + step] @ self.vectors.T
            rows = largest_columns(scores, limit)
            best = np.take_along_axis(scores, rows, axis=1).clip(-1.0, 1.0)
            place = slice(first, first + step), slice(rows.shape[1])
            table.put(place, self.video_ids[rows], self.windows[rows], best)
        return table


@check_arguments
def no_windows(queries: int, limit: int) -> NearestWindows:
    """Create an empty result of shape [queries, limit]."""
    return NearestWindows(
        video_ids=np.full((queries, limit), NO_WINDOW, np.int64),
        windows=np.full((queries, limit), NO_WINDOW, np.int64),
        scores=np.full((queries, limit), -1.0, np.float32),
    )

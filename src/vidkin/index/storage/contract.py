"""The contract of what keeps the records, features and windows of an index.

Shape legend: E dimension of a window vector, Q query vectors, K number of nearest windows requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.index.storage.records import Entry, VideoRecord, WindowVectors
from vidkin.similarity import FrameFeatures

__all__ = [
    "NO_WINDOW",
    "FeatureReader",
    "NearestWindows",
    "VectorStore",
    "check_entries",
    "check_path_is_free",
    "check_vectors",
]

NO_WINDOW = -1
"""Stands for "no window" in :class:`NearestWindows` if the store has fewer windows than requested."""


@dataclass(frozen=True, slots=True)
class NearestWindows:
    """The windows nearest to each of Q vectors, best first.

    If there are fewer than K windows, the rest of the row is :data:`NO_WINDOW` with score -1.

    Attributes:
        video_ids: [Q, K] int64.
        windows: [Q, K] int64, number of the window within its video.
        starts: [Q, K] float64, seconds in the target.
        ends: [Q, K] float64, seconds in the target.
        scores: [Q, K] float32 in [-1, 1], cosine similarity, computed exactly from the stored vectors
            even if candidates come from an approximate index.
    """

    video_ids: torch.Tensor
    windows: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor
    scores: torch.Tensor


class FeatureReader(Protocol):
    """The part of a store that scoring candidates needs."""

    def get(self, video_id: int) -> VideoRecord:
        """See :meth:`VectorStore.get`."""
        ...

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """See :meth:`VectorStore.read_many`."""
        ...


class VectorStore(Protocol):
    """Keeps records, features and windows; finds the windows nearest to a vector.

    **Snapshots.** Reading methods answer from the state at the last :meth:`refresh` (or opening) plus the
    writes made through this object, so that all steps of one search see the same collection whatever
    another process writes meanwhile. Call :meth:`refresh` at the start of a search.

    **Whole or not at all.** A video exists once its record does; the record is written after its features
    and windows. A path has one record: appending it again replaces the old one in one step.

    **One writer.** Callers make sure that only one process writes (`Place.exclusive`).

    **Rounding.** Features are kept as :func:`vidkin.index.storage.records.to_stored` rounds them.
    """

    def refresh(self) -> bool:
        """Move to the newest committed state; True if anything changed."""
        ...

    def videos(self) -> list[VideoRecord]:
        """All records, broken and stale ones too, sorted by path."""
        ...

    def count(self) -> int:
        """Number of records, broken and stale ones too."""
        ...

    def get(self, video_id: int) -> VideoRecord:
        """The record with this id; :class:`NotIndexedError` if there is none."""
        ...

    def find(self, path: str) -> VideoRecord | None:
        """The record of this absolute path."""
        ...

    def append(
        self,
        record: VideoRecord,
        features: FrameFeatures | None = None,
        windows: WindowVectors | None = None,
    ) -> VideoRecord:
        """Add one video, replacing the record of the same path; returns the record with its id."""
        ...

    def append_many(self, entries: Sequence[Entry]) -> list[VideoRecord]:
        """Add several videos in one commit, which is cheaper than one at a time; paths must differ."""
        ...

    def update(self, records: Sequence[VideoRecord]) -> None:
        """Rewrite records that have an id (a moved or touched file); features and windows stay.

        A new path must not be that of another video, :class:`InvalidArgumentError` otherwise.
        """
        ...

    def read(self, video_id: int) -> FrameFeatures:
        """Features of one video; :class:`NotIndexedError` if it is unknown or has none."""
        ...

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Features of several videos in the order of the ids; much faster than reading them one at a time."""
        ...

    def read_windows(self, video_id: int) -> WindowVectors:
        """Windows of one video, vectors as float16; :class:`NotIndexedError` if it is unknown or has none."""
        ...

    def nearest(self, vectors: torch.Tensor, limit: int) -> NearestWindows:
        """The ``limit`` windows nearest to each of ``vectors`` [Q, E], unit length."""
        ...

    def window_count(self) -> int:
        """Number of windows of all videos."""
        ...

    def remove(self, video_ids: Iterable[int]) -> None:
        """Remove these videos; unknown ids are ignored."""
        ...

    def recover(self) -> int:
        """Delete what killed writers and removed videos left behind; returns the number of such videos.

        Rebuilds lost windows from the features. A video whose features are lost becomes stale, with the cause.

        Call this before the first write.
        """
        ...

    def missing(self) -> dict[int, str]:
        """Ids and causes of videos with parts that are missing, or incomplete as far as sizes tell."""
        ...

    def optimize(self) -> None:
        """Make reading fast again after many writes: merge small files, index vectors, drop old versions."""
        ...

    def close(self) -> None:
        """Release memory and files; the store cannot be used afterwards."""
        ...


def check_entries(entries: Sequence[Entry]) -> None:
    """:class:`InvalidArgumentError` if parts of an entry do not fit together. Every store calls this."""
    for entry in entries:
        record, features, windows = entry.record, entry.features, entry.windows
        if record.status != "ok" and (features is not None or windows is not None):
            raise InvalidArgumentError(
                f"{record.path} is {record.status} and cannot have features or windows"
            )
        if record.status == "ok" and (features is None or windows is None):
            raise InvalidArgumentError(
                f"{record.path} is ok and needs features and windows (possibly of length 0)"
            )
        frames = 0 if features is None else len(features)
        count = 0 if windows is None else len(windows)
        if (record.frames, record.windows) != (frames, count):
            raise InvalidArgumentError(
                f"the record of {record.path} must state its {frames} frames and {count} windows, got {record.frames} "
                f"and {record.windows}"
            )
    if len({entry.record.path for entry in entries}) < len(entries):
        raise InvalidArgumentError("paths of entries must differ, got one path twice; a path has one record")


def check_path_is_free(record: VideoRecord, ids: Mapping[str, int]) -> None:
    """:class:`InvalidArgumentError` if the path belongs to another video. Every store calls this."""
    owner = ids.get(record.path, record.id)
    if owner != record.id:
        raise InvalidArgumentError(
            f"video {record.id} cannot have the path {record.path}: that is video {owner}; remove it first"
        )


def check_vectors(vectors: torch.Tensor, limit: int) -> torch.Tensor:
    """Check query vectors; returns them as float32 in CPU memory. Every store calls this.

    Raises:
        InvalidArgumentError: The vectors or the limit are invalid.
    """
    if vectors.ndim != 2 or not vectors.is_floating_point():
        raise InvalidArgumentError(
            f"vectors must be [Q, E] floating point, got {list(vectors.shape)} {vectors.dtype}"
        )
    if limit < 1:
        raise InvalidArgumentError(f"limit must be at least 1, got {limit}")
    return vectors.detach().to("cpu", torch.float32)

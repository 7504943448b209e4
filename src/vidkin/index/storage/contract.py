"""What an index keeps of each video, and the contract of the part that keeps it.

Shape legend: T frames, R regions, D dimension of a regional descriptor, W windows, E dimension of a window
vector, Q query vectors, K nearest windows asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch

from vidkin.errors import InvalidArgumentError

__all__ = [
    "NO_WINDOW",
    "READ_AGAIN",
    "BaselineFunction",
    "Entry",
    "NearestWindows",
    "StoredFeatures",
    "VectorStore",
    "VideoRecord",
    "WindowVectors",
]

BaselineFunction = Callable[[torch.Tensor], torch.Tensor]
"""Values [T, R, D] -> background similarity of each frame [T], stored beside the values."""

READ_AGAIN = -1
"""As the time of the last change of a record: no file has it."""

NO_WINDOW = -1
"""Stands for "no window" in :class:`NearestWindows` where the store has fewer windows than were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoRecord:
    """One row of the index: a file, and what came of it.

    Attributes:
        path: Absolute path; names that are not valid UTF-8 are surrogate-escaped, as in :func:`os.fsdecode`.
        size: Bytes.
        mtime_ns: Time of the last change of the file, nanoseconds since the epoch.
        content_hash: Of the file's bytes, see :func:`vidkin.index.ingest.scan.content_hash`.
        status: "ok", or "broken" when it could not be read.
        cause: One line that says why it is broken, else "".
        duration: Seconds.
        width, height: Pixels as displayed.
        frame_rate: Of the file, frames per second.
        codec: Name of the video codec.
        bit_depth: Bits per sample.
        has_audio: There is a sound track.
        frames: Number of frames that have features.
        sampling_rate: Frames per second at which they were sampled.
        windows: Number of windows for the first stage of search.
        added_at: Seconds since the epoch.
        id: Given by the store when the record is appended; never used again after a removal.
    """

    path: str
    size: int
    mtime_ns: int
    content_hash: str
    status: Literal["ok", "broken"] = "ok"
    cause: str = ""
    duration: float = 0.0
    width: int = 0
    height: int = 0
    frame_rate: float = 0.0
    codec: str = ""
    bit_depth: int = 0
    has_audio: bool = False
    frames: int = 0
    sampling_rate: float = 0.0
    windows: int = 0
    added_at: float = 0.0
    id: int = -1

    def __post_init__(self) -> None:
        if self.status not in ("ok", "broken"):
            raise InvalidArgumentError(f"status is {self.status!r}, allowed are 'ok' and 'broken'")
        if (self.status == "broken") != bool(self.cause):
            raise InvalidArgumentError(
                f"a broken video has a cause and an ok one has none, given is status={self.status!r}, "
                f"cause={self.cause!r}"
            )

    @property
    def to_be_read_again(self) -> bool:
        """Whatever the file is like now, it counts as changed: its features were lost, or made while it changed."""
        return self.mtime_ns == READ_AGAIN


@dataclass(frozen=True, slots=True)
class StoredFeatures:
    """Regional descriptors of one video, as they lie in the store.

    Attributes:
        values: [T, R, D] float16, unit vectors along D.
        timestamps: [T] float64, seconds.
        information: [T] float32 in [0, 1].
        baseline: [T] float32, similarity of each frame to a background set; zeros where none was given.
    """

    values: torch.Tensor
    timestamps: torch.Tensor
    information: torch.Tensor
    baseline: torch.Tensor

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.dtype != torch.float16:
            raise InvalidArgumentError(
                f"values must be [T, R, D] float16, given is {list(self.values.shape)} {self.values.dtype}"
            )
        _check_column("timestamps", self.timestamps, len(self.values), torch.float64)
        _check_column("information", self.information, len(self.values), torch.float32)
        _check_column("baseline", self.baseline, len(self.values), torch.float32)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __repr__(self) -> str:
        return f"StoredFeatures(values={list(self.values.shape)})"


@dataclass(frozen=True, slots=True)
class WindowVectors:
    """What the first stage of search looks at: one vector for each stretch of alike frames.

    Attributes:
        vectors: [W, E] floating point, unit vectors; stored as float16.
        starts: [W] float64, time of the first frame, seconds.
        ends: [W] float64, time at which the last frame ends, seconds.
        first_frames: [W] int64, number of the first frame in the video's features.
        last_frames: [W] int64, number of the last frame, inclusive.
    """

    vectors: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor
    first_frames: torch.Tensor
    last_frames: torch.Tensor

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not self.vectors.is_floating_point():
            raise InvalidArgumentError(
                f"vectors must be [W, E] floating point, given is {list(self.vectors.shape)} {self.vectors.dtype}"
            )
        count = len(self.vectors)
        _check_column("starts", self.starts, count, torch.float64)
        _check_column("ends", self.ends, count, torch.float64)
        _check_column("first_frames", self.first_frames, count, torch.int64)
        _check_column("last_frames", self.last_frames, count, torch.int64)

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    def __repr__(self) -> str:
        return f"WindowVectors(vectors={list(self.vectors.shape)})"


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with all that belongs to it; a broken video has neither features nor windows."""

    record: VideoRecord
    features: StoredFeatures | None = None
    windows: WindowVectors | None = None


@dataclass(frozen=True, slots=True)
class NearestWindows:
    """The windows nearest to each of Q vectors, best first.

    Where there are fewer than K windows the rest of the row is :data:`NO_WINDOW` with score -1.

    Attributes:
        video_ids: [Q, K] int64.
        windows: [Q, K] int64, number of the window within its video.
        starts: [Q, K] float64, seconds in the target.
        ends: [Q, K] float64, seconds in the target.
        scores: [Q, K] float32 in [-1, 1], cosine similarity, computed exactly from the stored vectors
            however the candidates were found.
    """

    video_ids: torch.Tensor
    windows: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor
    scores: torch.Tensor


class VectorStore(Protocol):
    """Keeps records, features and windows; finds windows near to a vector.

    **Snapshots.** Reading methods answer from the state at the last :meth:`refresh` (or opening) plus the
    writes made through this object, so that all steps of one search see the same collection whatever
    another process writes meanwhile. Call :meth:`refresh` at the start of a search.

    **Whole or not at all.** A video is there when its record is; the record is written after its features
    and windows. A path has one record: appending it again replaces the old one in one step.

    **One writer.** Callers see to it that only one process writes (:mod:`vidkin.index.lock`).
    """

    def refresh(self) -> bool:
        """Move to the newest committed state; True if anything changed."""
        ...

    def videos(self) -> list[VideoRecord]:
        """All records, broken ones too, sorted by path."""
        ...

    def count(self) -> int:
        """Number of records, broken ones too."""
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
        features: StoredFeatures | None = None,
        windows: WindowVectors | None = None,
    ) -> VideoRecord:
        """Add one video, replacing the record of the same path; gives the record with its id."""
        ...

    def append_many(self, entries: Sequence[Entry]) -> list[VideoRecord]:
        """Add several videos in one commit, which is cheaper than one at a time; paths must differ."""
        ...

    def update(self, records: Sequence[VideoRecord]) -> None:
        """Rewrite records that have an id (a moved or touched file); features and windows stay.

        A new path must not be that of another video, :class:`InvalidArgumentError` otherwise.
        """
        ...

    def read(self, video_id: int) -> StoredFeatures:
        """Features of one video; :class:`NotIndexedError` if it is unknown or broken."""
        ...

    def read_many(self, video_ids: Sequence[int]) -> list[StoredFeatures]:
        """Features of several videos in the order asked for; much faster than one at a time."""
        ...

    def read_windows(self, video_id: int) -> WindowVectors:
        """Windows of one video, vectors as float16; :class:`NotIndexedError` if it is unknown or broken."""
        ...

    def nearest(self, vectors: torch.Tensor, limit: int) -> NearestWindows:
        """The ``limit`` windows nearest to each of ``vectors`` [Q, E], unit length."""
        ...

    def window_count(self) -> int:
        """Number of windows of all videos."""
        ...

    def remove(self, video_ids: Iterable[int]) -> None:
        """Forget these videos; unknown ids are ignored."""
        ...

    def recover(self) -> int:
        """Delete what killed writers left half done and what removed videos left; of how many videos.

        Makes lost windows anew from the features. A video whose features are lost becomes a broken one, with the
        cause, and is :attr:`VideoRecord.to_be_read_again`.

        To be called by a writer before its first write.
        """
        ...

    def missing(self) -> dict[int, str]:
        """Ids of videos of which a part is not there, or not whole as far as sizes tell, with the cause."""
        ...

    def optimise(self) -> None:
        """Make reading fast again after many writes: merge small files, index vectors, drop old versions."""
        ...

    def close(self) -> None:
        """Release memory and files; the store cannot be used afterwards."""
        ...


def check_entries(entries: Sequence[Entry]) -> None:
    """:class:`InvalidArgumentError` if parts of an entry do not fit together. Every store calls this."""
    for entry in entries:
        record, features, windows = entry.record, entry.features, entry.windows
        if record.status == "broken" and (features is not None or windows is not None):
            raise InvalidArgumentError(f"{record.path} is broken and cannot have features or windows")
        if record.status == "ok" and (features is None or windows is None):
            raise InvalidArgumentError(
                f"{record.path} is ok and needs features and windows (possibly of length 0)"
            )
        frames = 0 if features is None else len(features)
        count = 0 if windows is None else len(windows)
        if (record.frames, record.windows) != (frames, count):
            raise InvalidArgumentError(
                f"the record of {record.path} says {record.frames} frames and {record.windows} windows, "
                f"given are {frames} and {count}"
            )
    if len({entry.record.path for entry in entries}) < len(entries):
        raise InvalidArgumentError("two of the entries have the same path; a path has one record")


def check_path_is_free(record: VideoRecord, ids: Mapping[str, int]) -> None:
    """:class:`InvalidArgumentError` if the path belongs to another video. Every store calls this."""
    owner = ids.get(record.path, record.id)
    if owner != record.id:
        raise InvalidArgumentError(
            f"video {record.id} cannot have the path {record.path}: that is video {owner}; remove it first"
        )


def checked_vectors(vectors: torch.Tensor, limit: int) -> torch.Tensor:
    """Query vectors as float32 on the CPU, if they and the limit are allowed. Every store calls this."""
    if vectors.ndim != 2 or not vectors.is_floating_point():
        raise InvalidArgumentError(
            f"vectors must be [Q, E] floating point, given is {list(vectors.shape)} {vectors.dtype}"
        )
    if limit < 1:
        raise InvalidArgumentError(f"limit is {limit}, allowed is 1 or more")
    return vectors.detach().to("cpu", torch.float32)


def _check_column(name: str, column: torch.Tensor, length: int, dtype: torch.dtype) -> None:
    if tuple(column.shape) != (length,) or column.dtype != dtype:
        raise InvalidArgumentError(
            f"{name} must be [{length}] {dtype}, given is {list(column.shape)} {column.dtype}"
        )

"""What an index keeps of each video: its record, its features and its windows.

Shape legend: T frames, V views, R regions, D dimension of a descriptor, W windows, E dimension of a window vector.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import torch

from vidkin._base.plain_values import Result
from vidkin.errors import InvalidArgumentError
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import VideoInfo

__all__ = [
    "Entry",
    "VideoRecord",
    "VideoStatus",
    "WindowVectors",
    "describe_cut_off",
    "restore_parts",
    "round_parts",
    "to_stored",
]

VideoStatus = Literal["ok", "broken", "stale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoRecord(Result):
    """One row of the index: a file and its state.

    Attributes:
        path: Absolute path; names that are not valid UTF-8 are surrogate-escaped, as in :func:`os.fsdecode`.
        size: Bytes.
        mtime_ns: Time of the last change of the file, nanoseconds since the epoch; 0 for a stale record.
        content_hash: Hash of the file's bytes, see :func:`vidkin.index.ingest.files.content.content_hash`; empty if
            unknown because the file changed while it was being read.
        status: "ok"; "broken" when the file itself cannot be read; "stale" when its features were lost, were made
            while the file changed, or failed for a cause that may pass: the next :meth:`Index.add` of the file reads it
            again, changed or not.
        cause: Why it is broken or stale, in one line, else "".
        duration: Duration in seconds.
        width, height: Pixels as displayed.
        frame_rate: Frames per second of the file.
        codec: Name of the video codec.
        bit_depth: Bits per sample.
        has_audio: Whether there is a sound track.
        frames: Number of frames that have features.
        sampling_rate: Frames per second at which they were sampled.
        windows: Number of windows for the first stage of search.
        added_at: Seconds since the epoch.
        damage: One line about unreadable parts of an ok video (packets skipped, its end cut off), else "".
        id: Assigned by the store when the record is appended; never reused after a removal.
    """

    path: str
    size: int
    mtime_ns: int
    content_hash: str
    status: VideoStatus = "ok"
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
    damage: str = ""
    id: int = -1

    def __post_init__(self) -> None:
        if self.status not in get_args(VideoStatus):
            raise InvalidArgumentError(f"status must be 'ok', 'broken' or 'stale', got {self.status!r}")
        if (self.status == "ok") == bool(self.cause):
            raise InvalidArgumentError(
                f"cause must say why a video is broken or stale and be empty for an ok one, got "
                f"status={self.status!r}, cause={self.cause!r}"
            )

    @property
    def needs_reindex(self) -> bool:
        """Whether the file must be read again even if it has not changed."""
        return self.status == "stale"

    def as_stale(self, cause: str) -> VideoRecord:
        """This record as stale: without features until its file is read again.

        Args:
            cause: The reason, in one line.
        """
        return replace(self, status="stale", cause=cause, mtime_ns=0, frames=0, windows=0, damage="")


@dataclass(frozen=True, slots=True)
class WindowVectors:
    """Vectors for the first stage of search: one for each stretch of similar frames.

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
                f"vectors must be [W, E] floating point, got {list(self.vectors.shape)} {self.vectors.dtype}"
            )
        columns = {
            "starts": torch.float64,
            "ends": torch.float64,
            "first_frames": torch.int64,
            "last_frames": torch.int64,
        }
        for name, dtype in columns.items():
            column: torch.Tensor = getattr(self, name)
            if tuple(column.shape) != (len(self.vectors),) or column.dtype != dtype:
                raise InvalidArgumentError(
                    f"{name} must be [{len(self.vectors)}] {dtype}, got {list(column.shape)} {column.dtype}"
                )

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    def __repr__(self) -> str:
        return f"WindowVectors(vectors={list(self.vectors.shape)})"

    def of_whole(self) -> WindowVectors:
        """Windows of the whole picture. They come first, in order of time; those of each part start over."""
        again = (self.first_frames[1:] <= self.last_frames[:-1]).nonzero()[:, 0]
        count = int(again[0]) + 1 if len(again) else len(self)
        columns = (self.vectors, self.starts, self.ends, self.first_frames, self.last_frames)
        return WindowVectors(*(column[:count] for column in columns))

    @classmethod
    def empty(cls, dimension: int = 0) -> WindowVectors:
        """No windows [0, dimension]."""
        times, frames = torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.int64)
        return cls(torch.zeros((0, dimension), dtype=torch.float16), times, times, frames, frames)


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with its features and windows, which only an ok video has."""

    record: VideoRecord
    features: FrameFeatures | None = None
    windows: WindowVectors | None = None


_STEPS = 7


def round_parts(values: torch.Tensor) -> torch.Tensor:
    """Quantize unit vectors along the last dimension to int8 from -7 to 7, in sevenths of the largest absolute value.

    Each takes half a byte; docs/results/feature_precision.json has the effect on accuracy. Zeros stay zeros.
    """
    size = values.float().abs().amax(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny) / _STEPS
    return (values.float() / size).round().to(torch.int8)


def restore_parts(numbers: torch.Tensor) -> torch.Tensor:
    """Restore unit vectors from :func:`round_parts`, in half precision; rounding them again gives the same numbers."""
    return torch.nn.functional.normalize(numbers.float(), dim=-1).half()


def to_stored(features: FrameFeatures) -> FrameFeatures:
    """Round features as a store keeps them, in CPU memory: values in half precision, those of parts of the picture
    (views after the first) more coarsely (:func:`round_parts`).

    The only place where features are rounded. Windows, baselines and queries are made from rounded features, so that a
    video is exactly as similar to itself as to its stored form. Rounding again changes nothing.
    """

    def column(values: torch.Tensor | None) -> torch.Tensor | None:
        return None if values is None else values.detach().to("cpu", torch.float32)

    values = features.values.detach().to("cpu", torch.float16)
    if values.shape[1] > 1:
        values = torch.cat([values[:, :1], restore_parts(round_parts(values[:, 1:]))], dim=1)
    return replace(
        features,
        values=values,
        timestamps=features.timestamps.detach().to("cpu", torch.float64),
        information=features.information.detach().to("cpu", torch.float32),
        baseline=column(features.baseline),
        boxes=column(features.boxes),
    )


def describe_cut_off(info: VideoInfo) -> str:
    """One line about a file that is :attr:`~vidkin.media.VideoInfo.cut_off`."""
    return f"the file is cut off: {info.duration:.1f} s of {info.stated_duration:.1f} s are there"

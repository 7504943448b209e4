"""What an index keeps of each video: its record, its features and its windows, and the rates at which videos are
sampled.

Shape legend: T frames, V views, R regions, D dimension of a descriptor, W windows, E dimension of a window vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import is_before
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import VideoInfo

VideoStatus = Literal["ok", "broken", "stale"]

# Seconds; frames of a slide show stay longer.
_LONGEST_PHOTOGRAPH = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoRecord(Result):
    """One row of the index: a file and its state.

    Attributes:
        path: Absolute path; names that are not valid UTF-8 are surrogate-escaped, as in :func:`os.fsdecode`.
        size: Bytes.
        mtime_ns: Time of the last change of the file, nanoseconds since the epoch; 0 for a stale record.
        content_hash: Hash of the file's bytes, see :func:`vidkin.index.storage.files.content_hash`; empty if
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
        if not isinstance(self.status, str) or self.status not in get_args(VideoStatus):
            raise InvalidArgumentError(f"status must be 'ok', 'broken' or 'stale', got {self.status!r}")
        if not isinstance(self.cause, str) or (self.status == "ok") == bool(self.cause):
            raise InvalidArgumentError(
                f"cause must say why a video is broken or stale and be empty for an ok one, got "
                f"status={self.status!r}, cause={self.cause!r}"
            )

    @property
    def is_photograph(self) -> bool:
        """Whether the file is an image: one frame that lasts no time (some image formats state a few hundredths of a
        second)."""
        return self.frames == 1 and self.duration < _LONGEST_PHOTOGRAPH

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
class Entry:
    """A record with its features and the vectors [W, E] of its windows, which only an ok video has."""

    record: VideoRecord
    features: FrameFeatures | None = None
    windows: NDArray[np.floating] | None = None


_STEPS = 7
# Shorter vectors stay as they are, as zeros do.
_LEAST_LENGTH = np.float32(1e-12)


def unit_vectors(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Vectors [..., D] divided by their lengths, in single precision; zeros stay zeros."""
    values = values.astype(np.float32, copy=False)
    lengths = np.sqrt(np.vecdot(values, values))
    units: NDArray[np.float32] = values / np.maximum(lengths, _LEAST_LENGTH)[..., None]
    return units


def round_parts(values: NDArray[np.floating]) -> NDArray[np.int8]:
    """Quantize unit vectors along the last dimension to int8 from -7 to 7, in sevenths of the largest absolute value.

    Each takes half a byte; research/results/feature_precision.json has the effect on accuracy. Zeros stay zeros.
    """
    values = values.astype(np.float32, copy=False)
    if values.shape[-1] == 0:
        return values.astype(np.int8)
    size = np.maximum(np.abs(values).max(axis=-1, keepdims=True), np.finfo(np.float32).tiny) / np.float32(_STEPS)
    numbers: NDArray[np.int8] = np.rint(values / size).astype(np.int8)
    return numbers


def restore_parts(numbers: NDArray[np.number]) -> NDArray[np.float16]:
    """Restore unit vectors from :func:`round_parts`, in half precision; rounding them again gives the same numbers."""
    return unit_vectors(numbers.astype(np.float32, copy=False)).astype(np.float16)


@check_arguments
def to_stored(features: FrameFeatures, *, parts: bool = True) -> FrameFeatures:
    """Round features as a store keeps them: values in half precision, those of parts of the picture (views after the
    first) more coarsely (:func:`round_parts`).

    The only place where features are rounded. Windows, baselines and queries are made from rounded features, so that a
    video is exactly as similar to itself as to its stored form. Rounding again changes nothing. Without ``parts``,
    these stay as they are.
    """

    def column(values: NDArray[np.floating] | None) -> NDArray[np.float32] | None:
        return None if values is None else values.astype(np.float32, copy=False)

    values = features.values.astype(np.float16, copy=False)
    if parts and values.shape[1] > 1:
        values = np.concatenate([values[:, :1], restore_parts(round_parts(values[:, 1:]))], axis=1)
    return replace(
        features,
        values=values,
        timestamps=features.timestamps.astype(np.float64, copy=False),
        information=features.information.astype(np.float32, copy=False),
        baseline=column(features.baseline),
        boxes=column(features.boxes),
    )


def describe_cut_off(info: VideoInfo) -> str:
    """One line about a file that is :attr:`~vidkin.media.VideoInfo.cut_off`."""
    return f"the file is cut off: {info.duration:.1f} s of {info.stated_duration:.1f} s are there"


def frame_vectors(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Average regions [..., R, D] to one unit vector per frame [..., D]; zero where all are zero."""
    values = values.astype(np.float32, copy=False)
    return unit_vectors(values[..., 0, :] if values.shape[-2] == 1 else values.mean(axis=-2))


def window_vectors(features: FrameFeatures) -> NDArray[np.float32]:
    """Unit vectors [W, E] of the windows of a video, for the first stage of search; see :func:`find_windows`."""
    return find_windows(features)[1]


@check_arguments
def find_windows(
    features: FrameFeatures,
    *,
    similarity: float = 0.9,
    similarity_of_parts: float = 0.45,
    longest: float = 10.0,
    longest_of_parts: float = 30.0,
    least_information: float = 0.01,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Merge runs of similar frames, so that a still minute costs the first stage six vectors instead of sixty.

    A frame joins the open window if its vector (:func:`frame_vectors`) has a cosine of at least ``similarity``
    with the window's mean so far and the window stays within ``longest`` seconds; otherwise it opens the
    next one. A frame with less than ``least_information`` belongs to no window and closes the open one; frames in
    which a view was not described are skipped.
    A window's vector is the normalized mean of its frames. Every view has windows of its own, those of the whole
    picture first.

    Args:
        features: T frames of V views of R regions with D dimensions; D is the dimension E of the windows.
        similarity: Cosine in [-1, 1]; higher makes more windows.
        similarity_of_parts: The same for views of parts of the picture, of which there are many.
        longest: Maximum length of a window in seconds.
        longest_of_parts: The same for views of parts.
        least_information: Least information of a window, in [0, 1]; 0 gives black frames windows, too.

    Returns:
        The first and last frame [W, 2] of each window, and its unit vector [W, E].
    """
    starts = features.timestamps.astype(np.float64, copy=False)
    # The last frame stands as long as the one before it.
    last_step = starts[-1:] - starts[-2:-1] if len(starts) > 1 else np.zeros_like(starts)
    ends = np.concatenate([starts[1:], starts[-1:] + last_step])
    vectors = frame_vectors(features.values)
    views = np.arange(vectors.shape[1])
    spans, sums = _spans(
        vectors,
        features.information >= least_information,
        starts,
        ends,
        np.where(views == 0, similarity, similarity_of_parts),
        np.where(views == 0, longest, longest_of_parts),
    )
    return spans, unit_vectors(sums)


def _spans(
    vectors: NDArray[np.float32],
    informative: NDArray[np.bool_],
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    similarity: NDArray[np.float64],
    longest: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """First and last frame [W, 2] of each window and the sum [W, E] of its vectors, one view after the other; of
    vectors [T, V, E], with a similarity and a longest window for each view. All views are walked along together."""
    # Frames in which a view was not described have zero vectors.
    described = np.vecdot(vectors, vectors) > 0.5
    sums, is_open = np.zeros(vectors.shape[1:], np.float32), np.zeros(len(similarity), bool)
    first, last = np.zeros((2, len(similarity)), np.int64)
    owners, spans, sums_of = [], [], []

    def close(closed: NDArray[np.bool_]) -> None:
        (rows,) = np.nonzero(closed)
        owners.append(rows)
        spans.append(np.stack([first[rows], last[rows]], axis=1))
        sums_of.append(sums[rows])

    for at in np.flatnonzero(described.any(axis=1) | ~informative).tolist():
        if not informative[at]:
            close(is_open)
            is_open[:] = False
            continue
        vector = vectors[at]
        joins = is_open & described[at] & ~is_before(longest, ends[at] - starts[first])
        # vector . mean / |mean|, with the sum in place of the mean.
        lengths = np.sqrt(np.vecdot(sums, sums).astype(np.float64))
        joins &= np.vecdot(vector, sums) >= similarity * lengths
        opens = described[at] & ~joins
        if opens.any():
            close(opens & is_open)
            sums[opens] = vector[opens]
            first[opens] = at
            is_open |= opens
        sums[joins] += vector[joins]
        last[described[at]] = at
    close(is_open)
    owner = np.concatenate(owners)
    # Those of a view were closed in the order in which they were opened.
    order = np.argsort(owner, kind="stable")
    return np.concatenate(spans)[order], np.concatenate(sums_of)[order]


# A short video is sampled more densely until it has this many frames, up to this many per second.
_FEWEST_FRAMES = 8

_DENSEST_RATE = 2.0

# A query has about this many frames, so that one of them is near each frame of a fast-moving target.
_QUERY_FRAMES = 90


@check_arguments
def sampling_rate(duration: float, base: float = 1.0) -> float:
    """Frames per second at which to sample a video: ``base``, or more for very short videos.

    A video (or stretch of one) that would have fewer than 8 frames is sampled at two, four or more times ``base``, so
    that it has 8, at no more than 2 frames per second.

    Args:
        duration: Duration in seconds; 0 or less means unknown and very short.
        base: Frames per second for ordinary videos, above 0.

    Raises:
        InvalidArgumentError: The base is not above 0.
    """
    if not base > 0:
        raise InvalidArgumentError(f"base sampling rate must be above 0, got {base}")
    if duration * base >= _FEWEST_FRAMES:
        return base
    densest = max(_DENSEST_RATE, base)
    if duration <= 0:
        return densest
    doublings = math.ceil(math.log2(_FEWEST_FRAMES / (duration * base)))
    return float(min(densest, base * 2**doublings))


@check_arguments
def query_rate(duration: float, base: float = 1.0) -> float:
    """Frames per second at which a query is sampled: more densely than the collection, up to 120 frames.

    The frames of two copies are sampled at different moments, up to half a period apart, and a moving camera has moved
    on by then. A query of a minute or less is sampled at 2 frames per second, a longer one at ``base``: always a whole
    multiple of :func:`sampling_rate`, so that among the frames of a query are those that the collection has of the same
    video.

    Args:
        duration: Duration in seconds; 0 or less means unknown and very short.
        base: Frames per second for ordinary videos, above 0.

    Raises:
        InvalidArgumentError: The base is not above 0.
    """
    least = sampling_rate(duration, base)
    if duration <= 0:
        return least
    multiple = min(math.floor(_QUERY_FRAMES / (duration * least) + 0.5), int(max(_DENSEST_RATE, base) / least))
    return least * max(1, multiple)

"""The data stored for each video (record, features and windows), and the sampling rates.

Shapes: T frames, V views, R regions, D dimensions of a descriptor, W windows, E dimensions of a window vector.
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

# Maximum duration in seconds that an image format may state for a photograph; frames of slide shows last longer.
_MAX_PHOTOGRAPH = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoRecord(Result):
    """The record of a file in the index, and its state.

    Attributes:
        path: Absolute path; names that are not valid UTF-8 are surrogate-escaped, as in :func:`os.fsdecode`.
        size: Size in bytes.
        mtime_ns: Modification time in nanoseconds since the epoch; 0 for a stale record.
        content_hash: Hash of the file's bytes, see :func:`vidkin.index.storage.files.content_hash`; empty if unknown
            because the file changed while it was being read.
        status: "ok"; "broken" if the file cannot be read; "stale" if its features were lost, were extracted while the
            file changed, or failed for a cause that may be temporary. The next :meth:`Index.add` rereads stale files
            even if they have not changed.
        cause: One-line reason why the video is broken or stale; otherwise empty.
        duration: Duration in seconds.
        width, height: Size in pixels as displayed.
        frame_rate: Frames per second of the file.
        codec: Name of the video codec.
        bit_depth: Bits per sample.
        has_audio: Whether the file has an audio track.
        frames: Number of frames with features.
        sampling_rate: Rate at which these were sampled, in frames per second.
        windows: Number of windows for the first search stage.
        added_at: When the file was indexed, in seconds since the epoch.
        damage: One-line description of damage in an ok video (skipped packets, truncated end); otherwise empty.
        id: Id assigned by the store when the record is appended; never reused.
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
                f"cause must be given for a broken or stale video and be empty for an ok one, got "
                f"status={self.status!r}, cause={self.cause!r}"
            )

    @property
    def is_photograph(self) -> bool:
        """Whether the file is an image: a single frame without duration, or with the few hundredths of a second that
        some image formats state."""
        return self.frames == 1 and self.duration < _MAX_PHOTOGRAPH

    @property
    def needs_reindex(self) -> bool:
        """Whether the file must be read again even if it has not changed."""
        return self.status == "stale"

    def as_stale(self, cause: str) -> VideoRecord:
        """Return the record marked as stale, without features until its file is read again.

        Args:
            cause: One-line reason.
        """
        return replace(self, status="stale", cause=cause, mtime_ns=0, frames=0, windows=0, damage="")


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with its features and the vectors [W, E] of its windows, which are None unless its status is ok."""

    record: VideoRecord
    features: FrameFeatures | None = None
    windows: NDArray[np.floating] | None = None


_STEPS = 7
# Lower bound on the norm in divisions, which keeps zero vectors at zero.
_MIN_NORM = np.float32(1e-12)


def unit_vectors(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Normalize vectors [..., D] to unit length, in single precision; zero vectors are unchanged."""
    values = values.astype(np.float32, copy=False)
    norms = np.sqrt(np.vecdot(values, values))
    units: NDArray[np.float32] = values / np.maximum(norms, _MIN_NORM)[..., None]
    return units


def round_parts(values: NDArray[np.floating]) -> NDArray[np.int8]:
    """Quantize vectors [..., D] to int8 in [-7, 7], in sevenths of each vector's largest absolute value.

    Each value fits in half a byte; research/results/feature_precision.json has the effect on accuracy. Zero vectors are
    unchanged.
    """
    values = values.astype(np.float32, copy=False)
    if values.shape[-1] == 0:
        return values.astype(np.int8)
    size = np.maximum(np.abs(values).max(axis=-1, keepdims=True), np.finfo(np.float32).tiny) / np.float32(_STEPS)
    numbers: NDArray[np.int8] = np.rint(values / size).astype(np.int8)
    return numbers


def restore_parts(numbers: NDArray[np.number]) -> NDArray[np.float16]:
    """Restore unit vectors from :func:`round_parts`, in half precision; quantizing them again gives the same values."""
    return unit_vectors(numbers.astype(np.float32, copy=False)).astype(np.float16)


@check_arguments
def to_stored(features: FrameFeatures, *, parts: bool = True) -> FrameFeatures:
    """Round features to the precision in which they are stored.

    Values are rounded to half precision, and those of boxes and crops (views after the first) are quantized by
    :func:`round_parts`. Features are rounded only here. Windows, baselines and queries are computed from rounded
    features, so that a video and its stored features are exactly equally similar. Rounding is idempotent.

    Args:
        features: Features of a video.
        parts: Whether to quantize the values of boxes and crops.
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
    """Describe a truncated file (:attr:`~vidkin.media.VideoInfo.cut_off`) in one line."""
    return f"the file is cut off: it has {info.duration:.1f} s of {info.stated_duration:.1f} s"


def frame_vectors(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Average regions [..., R, D] to one unit vector per frame [..., D]; zero if all regions are zero."""
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
    """Merge runs of similar frames into windows, so that a still minute costs the first search stage six vectors
    instead of sixty.

    A frame is added to the current window if its vector (:func:`frame_vectors`) has a cosine similarity of at least
    ``similarity`` to the window's mean so far, and the window does not exceed ``longest`` seconds; otherwise it starts
    a new window. A frame with less than ``least_information`` is in no window and ends the current one; frames without
    features of a view are skipped. A window's vector is the normalized mean of its frames. Each view has separate
    windows; those of whole frames come first.

    Args:
        features: Features [T, V, R, D]; the dimension E of the windows is D.
        similarity: Minimum cosine similarity in [-1, 1]; higher values give more windows.
        similarity_of_parts: Minimum cosine similarity for boxes and crops, of which there are many.
        longest: Maximum duration of a window in seconds.
        longest_of_parts: Maximum duration of a window of a box or crop in seconds.
        least_information: Minimum information of a frame in a window, in [0, 1]; 0 also gives black frames windows.

    Returns:
        The first and last frame [W, 2] of each window, and its unit vector [W, E].
    """
    starts = features.timestamps.astype(np.float64, copy=False)
    # The last frame lasts as long as the one before it.
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
    """Find windows in all views simultaneously.

    Args:
        vectors: [T, V, E] unit vectors; zero for frames without features of a view.
        informative: [T] mask of informative frames.
        starts, ends: [T] seconds.
        similarity, longest: [V] minimum cosine similarity and maximum duration for each view.

    Returns:
        First and last frame [W, 2] of each window, and the sum [W, E] of its vectors, view by view.
    """
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
        # The cosine similarity to the mean equals that to the sum.
        norms = np.sqrt(np.vecdot(sums, sums).astype(np.float64))
        joins &= np.vecdot(vector, sums) >= similarity * norms
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
    # A stable sort by view keeps the windows of each view in order of time.
    order = np.argsort(owner, kind="stable")
    return np.concatenate(spans)[order], np.concatenate(sums_of)[order]


# Short videos are sampled more densely to get this many frames, but at no more than this rate in frames per second.
_MIN_FRAMES = 8
_MAX_RATE = 2.0

# Approximate number of frames of a query, which is dense so that some frame is close to each frame of a fast-moving
# target.
_QUERY_FRAMES = 90


@check_arguments
def sampling_rate(duration: float, base: float = 1.0) -> float:
    """Return the sampling rate for a video in frames per second: ``base``, or more for very short videos.

    A video or clip that would have fewer than 8 frames is sampled at ``base`` times a power of two, to get 8 frames,
    but at no more than 2 frames per second.

    Args:
        duration: Duration in seconds; 0 or less if it is unknown, which is treated as very short.
        base: Sampling rate for ordinary videos in frames per second; must be positive.

    Raises:
        InvalidArgumentError: ``base`` is not positive.
    """
    if not base > 0:
        raise InvalidArgumentError(f"base sampling rate must be positive, got {base}")
    if duration * base >= _MIN_FRAMES:
        return base
    densest = max(_MAX_RATE, base)
    if duration <= 0:
        return densest
    doublings = math.ceil(math.log2(_MIN_FRAMES / (duration * base)))
    return float(min(densest, base * 2**doublings))


@check_arguments
def query_rate(duration: float, base: float = 1.0) -> float:
    """Return the sampling rate for a query in frames per second, which is higher than for indexed videos, up to about
    120 frames.

    Copies are sampled at different moments, up to half a period apart, by which time a moving camera may show something
    different. With the default ``base``, a query of up to a minute is sampled at 2 frames per second, a longer one at
    ``base``. The rate is always an integer multiple of :func:`sampling_rate`, so that the frames of a query include
    those that an index has of the same video.

    Args:
        duration: Duration in seconds; 0 or less if it is unknown, which is treated as very short.
        base: Sampling rate for ordinary videos in frames per second; must be positive.

    Raises:
        InvalidArgumentError: ``base`` is not positive.
    """
    least = sampling_rate(duration, base)
    if duration <= 0:
        return least
    multiple = min(math.floor(_QUERY_FRAMES / (duration * least) + 0.5), int(max(_MAX_RATE, base) / least))
    return least * max(1, multiple)

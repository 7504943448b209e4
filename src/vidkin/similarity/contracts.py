"""Inputs and results of comparisons: features of a video, matching segments, and the interface of scorers.

Shapes: T frames; V views per frame; R regions per view; D dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError

_Known = TypeVar("_Known")

THUMBNAIL = 8
"""Side of a thumbnail in pixels: enough to distinguish eight poses, see `vidkin.match.pose`."""


@dataclass(frozen=True, slots=True)
class FrameFeatures:
    """Descriptors of a video's frames in one or more views.

    A view is a box in the frame. The first view is the full frame; the others are parts of it, such as columns or an
    inset. For frames that do not have a view, its values are zero.

    Fields are stored as NumPy arrays; array-likes such as torch tensors on the CPU are converted.

    Attributes:
        values: [T, V, R, D] floating point, unit vectors along D, or zeros for a region without content.
        timestamps: [T] float64, times of the frames in seconds, in increasing order.
        information: [T] in [0, 1], weight of each frame: 0 for black and other featureless frames, 1 for a highly
            detailed frame. Independent of the extractor.
        fingerprint: Identifies the extractor, its settings and its weights; features with different fingerprints cannot
            be compared. Empty disables the check.
        baseline: [T, V] in [-1, 1], similarity of each view to unrelated frames (:func:`vidkin.match.levels`); None
            for zeros.
        boxes: [T, V, 4] left, top, right, bottom of each view, as fractions of the frame; None if the full frame is the
            only view. A view that a frame does not have has a box of zeros.
        thumbnails: [T, V, 8, 8] uint8, luma of each view, used to recognize mirrored and rotated frames; None if not
            computed.
        end: End time of the video (or of the compared part) in seconds, at or after the last frame; an upper bound for
            segments. None if unknown.
    """

    values: NDArray[np.floating]
    timestamps: NDArray[np.floating]
    information: NDArray[np.floating]
    fingerprint: str = ""
    baseline: NDArray[np.floating] | None = None
    boxes: NDArray[np.floating] | None = None
    thumbnails: NDArray[np.uint8] | None = None
    end: float | None = None
    # Cached because every comparison reads it dozens of times.
    _period: float | None = field(default=None, init=False, repr=False, compare=False)
    # Values derived from these features, cached for reuse in every comparison.
    _computed: dict[Hashable, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("values", "timestamps", "information", "baseline", "boxes", "thumbnails"):
            value = getattr(self, name)
            is_absent = value is None and name in ("baseline", "boxes", "thumbnails")
            if not is_absent and not isinstance(value, np.ndarray):
                object.__setattr__(self, name, np.asarray(value))
        if self.values.ndim != 4 or not np.issubdtype(self.values.dtype, np.floating):
            raise InvalidArgumentError(
                f"values must be [T, V, R, D] floating point, got {list(self.values.shape)} {self.values.dtype}"
            )
        frames, views = self.values.shape[:2]
        shapes: dict[str, tuple[int, ...]] = {"timestamps": (frames,), "information": (frames,)}
        if self.baseline is not None:
            shapes["baseline"] = (frames, views)
        if self.thumbnails is not None:
            shapes["thumbnails"] = (frames, views, THUMBNAIL, THUMBNAIL)
        if self.boxes is not None:
            shapes["boxes"] = (frames, views, 4)
        elif views != 1:
            raise InvalidArgumentError(f"boxes must be given for {views} views, got None")
        for name, expected in shapes.items():
            shape = tuple(getattr(self, name).shape)
            if shape != expected:
                raise InvalidArgumentError(
                    f"{name} must be {list(expected)} as values has {frames} frames and {views} views, "
                    f"got {list(shape)}"
                )
        if self.end is not None and frames and self.end < float(self.timestamps[-1]):
            raise InvalidArgumentError(
                f"end must be at or after the last frame, at {float(self.timestamps[-1])} s, got {self.end} s"
            )

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __repr__(self) -> str:
        return f"FrameFeatures(values={list(self.values.shape)} {self.values.dtype}, fingerprint={self.fingerprint!r})"

    @classmethod
    def of_whole(
        cls,
        values: NDArray[np.floating],
        timestamps: NDArray[np.floating],
        information: NDArray[np.floating] | None = None,
        fingerprint: str = "",
        *,
        baseline: NDArray[np.floating] | None = None,
        thumbnails: NDArray[np.uint8] | None = None,
        end: float | None = None,
    ) -> FrameFeatures:
        """Create features whose only view is the full frame.

        Args:
            values: [T, R, D] descriptors of the full frame.
            timestamps: [T] times in seconds.
            information: [T] information of each frame; default: ones.
            fingerprint: Fingerprint of the extractor.
            baseline: [T] baseline of the full frame.
            thumbnails: [T, 8, 8] luma of the full frame.
            end: End of the video in seconds.
        """
        if information is None:
            information = np.ones(len(values), np.float32)
        column = None if baseline is None else baseline[:, None]
        small = None if thumbnails is None else thumbnails[:, None]
        return cls(values[:, None], timestamps, information, fingerprint, column, thumbnails=small, end=end)

    @classmethod
    def concatenate(cls, parts: Sequence[FrameFeatures]) -> FrameFeatures:
        """Concatenate the features of consecutive parts of a video from the same extractor.

        Raises:
            InvalidArgumentError: There are no parts.
        """
        if not parts:
            raise InvalidArgumentError("parts must not be empty")
        if len(parts) == 1:
            return parts[0]
        baselines = [part.baseline for part in parts if part.baseline is not None]
        boxes = [part.boxes for part in parts if part.boxes is not None]
        thumbnails = [part.thumbnails for part in parts if part.thumbnails is not None]
        return replace(
            parts[0],
            values=np.concatenate([part.values for part in parts]),
            timestamps=np.concatenate([part.timestamps for part in parts]),
            information=np.concatenate([part.information for part in parts]),
            baseline=np.concatenate(baselines) if len(baselines) == len(parts) else None,
            boxes=np.concatenate(boxes) if len(boxes) == len(parts) else None,
            thumbnails=np.concatenate(thumbnails) if len(thumbnails) == len(parts) else None,
            end=parts[-1].end,
        )

    @property
    def whole(self) -> NDArray[np.floating]:
        """Descriptors [T, R, D] of the full frame."""
        return self.values[:, 0]

    @property
    def vectors(self) -> NDArray[np.floating]:
        """One vector per view, [T, V, R D]: the concatenated regions, scaled to make inner products mean cosines."""
        frames, views, regions, dimension = self.values.shape
        joined = self.values.reshape(frames, views, regions * dimension)
        return joined if regions == 1 else joined / np.float32(math.sqrt(regions))

    @property
    def baselines(self) -> NDArray[np.floating]:
        """Baseline [T, V]; zeros if it is None."""
        return np.zeros(self.values.shape[:2], np.float32) if self.baseline is None else self.baseline

    @property
    def period(self) -> float:
        """Median time between frames in seconds; 1.0 for a single frame."""
        if self._period is None:
            period = lower_median(np.diff(self.timestamps)) if len(self) > 1 else 1.0
            object.__setattr__(self, "_period", period)
            return period
        return self._period

    def once(self, name: Hashable, compute: Callable[[], _Known]) -> _Known:
        """Return the value cached under ``name``, or compute and cache it; it must depend only on these features."""
        computed = self._computed
        if computed is None:
            computed = {}
            object.__setattr__(self, "_computed", computed)
        if name not in computed:
            computed[name] = compute()
        result: _Known = computed[name]
        return result

    def box(self, view: int, frames: NDArray[np.integer]) -> Box:
        """Compute the median box of a view over the frames with these indices, as fractions of the frame."""
        if self.boxes is None:
            return WHOLE
        chosen = np.sort(self.boxes[frames, view].astype(np.float32), axis=0)
        left, top, right, bottom = chosen[(len(chosen) - 1) // 2].tolist()
        return left, top, right, bottom

    def frames(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> FrameFeatures:
        """Select frames by a mask [T] or by increasing indices."""
        return replace(
            self,
            values=self.values[rows],
            timestamps=self.timestamps[rows],
            information=self.information[rows],
            baseline=None if self.baseline is None else self.baseline[rows],
            boxes=None if self.boxes is None else self.boxes[rows],
            thumbnails=None if self.thumbnails is None else self.thumbnails[rows],
        )

    def views(self, indices: Sequence[int]) -> FrameFeatures:
        """Select views, in the given order."""
        # For a single view, a slice avoids copying the values.
        chosen = slice(indices[0], indices[0] + 1) if len(indices) == 1 else list(indices)
        return replace(
            self,
            values=self.values[:, chosen],
            boxes=None if self.boxes is None else self.boxes[:, chosen],
            baseline=None if self.baseline is None else self.baseline[:, chosen],
            thumbnails=None if self.thumbnails is None else self.thumbnails[:, chosen],
        )


def lower_median(values: NDArray[np.floating]) -> float:
    """Compute the median of at least one value; the lower of the two middle values if their number is even."""
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


Box = tuple[float, float, float, float]

"""Left, top, right, bottom, as fractions of a frame's width and height."""

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)

"""The box of the full frame."""


@check_constructor
@dataclass(frozen=True, slots=True)
class Segment(Result):
    """A part of the query that appears in the target.

    Attributes:
        query_start: Start in the query in seconds.
        query_end: End in the query in seconds, not before the start.
        target_start: Start in the target in seconds.
        target_end: End in the target in seconds, not before the start.
        score: Mean calibrated frame similarity along the segment, in [0, 1].
        speed: Seconds of target per second of query, ``(target_end - target_start) / (query_end -
            query_start)`` along the matched line: 2.0 means that the query plays the target's footage at twice the
            speed.
        mirrored: Whether the query must be flipped horizontally to match.
        query_box: Part of the query frame that shows the target: left, top, right, bottom as fractions of the frame.
        target_box: Part of the target frame that the query shows, in the same units.
        turned: Degrees by which the query must be rotated clockwise to match: 0, 90, 180 or 270. If it is also
            mirrored, it is rotated first and then flipped. ``query_box`` refers to the unrotated frame.
        backwards: Whether the query plays the target's footage backwards.
    """

    query_start: float
    query_end: float
    target_start: float
    target_end: float
    score: float
    speed: float = 1.0
    mirrored: bool = False
    query_box: Box = WHOLE
    target_box: Box = WHOLE
    turned: int = 0
    backwards: bool = False

    def __post_init__(self) -> None:
        if self.query_end < self.query_start or self.target_end < self.target_start:
            raise InvalidArgumentError(
                f"a segment must not end before it starts, got [{self.query_start}, {self.query_end}] s of the query "
                f"and [{self.target_start}, {self.target_end}] s of the target"
            )
        if not 0.0 <= self.score <= 1.0:
            raise InvalidArgumentError(f"score of a segment must be in [0, 1], got {self.score}")
        for name, (left, top, right, bottom) in (
            ("query_box", self.query_box),
            ("target_box", self.target_box),
        ):
            if not (0.0 <= left < right <= 1.0 and 0.0 <= top < bottom <= 1.0):
                raise InvalidArgumentError(
                    f"{name} must be left < right and top < bottom in [0, 1], got {(left, top, right, bottom)}"
                )
        if self.turned not in (0, 90, 180, 270):
            raise InvalidArgumentError(f"turned must be 0, 90, 180 or 270, got {self.turned}")
        if not self.speed > 0.0:
            raise InvalidArgumentError(f"speed of a segment must be above 0, got {self.speed}")

    def target_time(self, query_time: float) -> float:
        """Convert a time in the query to the corresponding time in the target, by linear interpolation."""
        fraction = (query_time - self.query_start) / max(self.query_end - self.query_start, 1e-9)
        length = self.target_end - self.target_start
        return self.target_end - fraction * length if self.backwards else self.target_start + fraction * length

    def cut(self, query_end: float, target_end: float) -> Segment:
        """Clip the segment to the ends of the videos, because the last frame counts as a full period, which may extend
        beyond the end."""
        return replace(
            self,
            query_start=min(self.query_start, query_end),
            query_end=min(self.query_end, query_end),
            target_start=min(self.target_start, target_end),
            target_end=min(self.target_end, target_end),
        )

    def within(self, start: float | None, end: float | None) -> Segment:
        """The part of the segment between two times of the query, which it must overlap; None does not limit it."""
        first = self.query_start if start is None else min(max(self.query_start, start), self.query_end)
        last = self.query_end if end is None else max(min(self.query_end, end), first)
        there = sorted((self.target_time(first), self.target_time(last)))
        return replace(self, query_start=first, query_end=last, target_start=there[0], target_end=there[1])

    def swapped(self) -> Segment:
        """Return the segment with query and target swapped."""
        return replace(
            self,
            query_start=self.target_start,
            query_end=self.target_end,
            target_start=self.query_start,
            target_end=self.query_end,
            speed=1.0 / self.speed,
            query_box=self.target_box,
            target_box=self.query_box,
            # The inverse of a rotation is the opposite one; combined with a flip, it is its own inverse.
            turned=self.turned if self.mirrored else -self.turned % 360,
        )


SCORE_REVISION = 11
"""Revision of the scorers, part of the fingerprint of scores. Increment it whenever scores or segments change, so that
stored scores of earlier versions are ignored."""


@dataclass(frozen=True, slots=True)
class PairScore:
    """The result for one pair of videos.

    Attributes:
        score: Score in [0, 1]: 1.0 for identical videos, close to 0 for unrelated ones.
        segments: Matching segments, best first; empty for a scorer without segments.
        map: [Tq, Tt] float32, frame similarities in [0, 1].
    """

    score: float
    segments: tuple[Segment, ...]
    map: NDArray[np.float32]


class Scorer(Protocol):
    """Computes exact scores of a query against any number of targets."""

    @property
    def name(self) -> str:
        """Name used in manifests and by extractors: ``copies``, ``kinds``."""

    @property
    def needs_background(self) -> bool:
        """Whether scores are calibrated by the similarity to unrelated frames, so that features need a baseline."""

    @property
    def has_segments(self) -> bool:
        """Whether the scorer locates matching segments, and thus distinguishes copies from similar videos."""

    def score(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> list[PairScore]:
        """Score the query against each target, and return the results in target order.

        Args:
            query: Features of the query.
            targets: Features of the targets, of any length.
        """


def fingerprint_of_scores(features: str, scorer: Scorer) -> str:
    """Return a fingerprint of everything that a score depends on besides the two videos; stored scores are valid only
    for the same fingerprint.

    Args:
        features: Fingerprint of the feature extractor.
        scorer: The scorer; its ``repr`` includes all its constants.
    """
    return repr((SCORE_REVISION, features, scorer))

"""What is compared and what comes of it: the features of a video, matching segments, and the contract of scorers.

Shapes: T frames; V views of a frame; R regions of a view; D dimension.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError

_Known = TypeVar("_Known")


@dataclass(frozen=True, slots=True)
class FrameFeatures:
    """Descriptors of the frames of one video, seen in one or more views.

    A view is a box in the picture. The first view is the whole picture; the others are parts of it, such as columns or
    the rectangle of an inset. A view that shows nothing in a frame has only zeros there.

    Everything is kept as NumPy arrays; what else can be one, such as a torch tensor on the CPU, is accepted.

    Attributes:
        values: [T, V, R, D] floating point, unit vectors along D, or zeros for a region without content.
        timestamps: [T] float64, times of the frames in seconds, increasing.
        information: [T] in [0, 1], how much each frame counts: 0 for black and other featureless frames, 1 for a
            frame full of detail. Independent of the extractor.
        fingerprint: Identifies the extractor, its settings and its weights; features with different fingerprints cannot
            be compared. Empty if that does not matter.
        baseline: [T, V] in [-1, 1], how similar unrelated pictures are to each view (`background_baseline`); None
            means zeros.
        boxes: [T, V, 4] left, top, right, bottom of each view, shares of the picture without its black bars; None if
            the whole picture is the only view. A view missing in a frame has a box of zeros.
        end: Time in seconds at which the video (or the compared part of it) ends, at or after the last frame; no
            segment ends later. None if unknown.
    """

    values: NDArray[np.floating]
    timestamps: NDArray[np.floating]
    information: NDArray[np.floating]
    fingerprint: str = ""
    baseline: NDArray[np.floating] | None = None
    boxes: NDArray[np.floating] | None = None
    end: float | None = None
    # Asked for dozens of times in every comparison.
    _period: float | None = field(default=None, init=False, repr=False, compare=False)
    # What was computed of these features and is the same for every other video they are compared with.
    _known: dict[Hashable, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("values", "timestamps", "information", "baseline", "boxes"):
            given = getattr(self, name)
            is_absent = given is None and name in ("baseline", "boxes")
            if not is_absent and not isinstance(given, np.ndarray):
                object.__setattr__(self, name, np.asarray(given))
        if self.values.ndim != 4 or not np.issubdtype(self.values.dtype, np.floating):
            raise InvalidArgumentError(
                f"values must be [T, V, R, D] floating point, got {list(self.values.shape)} {self.values.dtype}"
            )
        frames, views = self.values.shape[:2]
        shapes: dict[str, tuple[int, ...]] = {"timestamps": (frames,), "information": (frames,)}
        if self.baseline is not None:
            shapes["baseline"] = (frames, views)
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
        end: float | None = None,
    ) -> FrameFeatures:
        """Features with the whole picture as their only view.

        Args:
            values: [T, R, D] descriptors of the whole picture.
            timestamps: [T] times in seconds.
            information: [T] information of each frame; default: ones.
            fingerprint: Fingerprint of the extractor.
            baseline: [T] baseline of the whole picture.
            end: End of the video in seconds.
        """
        if information is None:
            information = np.ones(len(values), np.float32)
        column = None if baseline is None else baseline[:, None]
        return cls(values[:, None], timestamps, information, fingerprint, column, end=end)

    @classmethod
    def concatenate(cls, parts: Sequence[FrameFeatures]) -> FrameFeatures:
        """Join consecutive stretches of one video described by the same extractor.

        Raises:
            InvalidArgumentError: There are no parts.
        """
        if not parts:
            raise InvalidArgumentError("parts must be at least one, got none")
        if len(parts) == 1:
            return parts[0]
        baselines = [part.baseline for part in parts if part.baseline is not None]
        boxes = [part.boxes for part in parts if part.boxes is not None]
        return replace(
            parts[0],
            values=np.concatenate([part.values for part in parts]),
            timestamps=np.concatenate([part.timestamps for part in parts]),
            information=np.concatenate([part.information for part in parts]),
            baseline=np.concatenate(baselines) if len(baselines) == len(parts) else None,
            boxes=np.concatenate(boxes) if len(boxes) == len(parts) else None,
            end=parts[-1].end,
        )

    @property
    def whole(self) -> NDArray[np.floating]:
        """Descriptors [T, R, D] of the whole picture."""
        return self.values[:, 0]

    @property
    def baselines(self) -> NDArray[np.floating]:
        """The baseline [T, V], zeros if there is none."""
        return np.zeros(self.values.shape[:2], np.float32) if self.baseline is None else self.baseline

    @property
    def period(self) -> float:
        """Median distance between frames, seconds; 1.0 for a single frame."""
        if self._period is None:
            period = lower_median(np.diff(self.timestamps)) if len(self) > 1 else 1.0
            object.__setattr__(self, "_period", period)
            return period
        return self._period

    def once(self, name: Hashable, compute: Callable[[], _Known]) -> _Known:
        """What ``compute`` returns, which depends on these features alone, from the first time on it was asked for."""
        known = self._known
        if known is None:
            known = {}
            object.__setattr__(self, "_known", known)
        if name not in known:
            known[name] = compute()
        result: _Known = known[name]
        return result

    def box(self, view: int, frames: NDArray[np.integer]) -> Box:
        """Left, top, right, bottom of a view as shares of the picture: the median over these frames (indices)."""
        if self.boxes is None:
            return WHOLE
        chosen = np.sort(self.boxes[frames, view].astype(np.float32), axis=0)
        left, top, right, bottom = chosen[(len(chosen) - 1) // 2].tolist()
        return left, top, right, bottom

    @property
    def described_parts(self) -> NDArray[np.bool_]:
        """[T] bool: whether parts of the picture were described in each frame."""
        described: NDArray[np.bool_] = (self.values[:, 1:] != 0).any(axis=(1, 2, 3))
        return described

    def frames(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> FrameFeatures:
        """Only the chosen frames: [T] bool, or indices in increasing order."""
        return replace(
            self,
            values=self.values[rows],
            timestamps=self.timestamps[rows],
            information=self.information[rows],
            baseline=None if self.baseline is None else self.baseline[rows],
            boxes=None if self.boxes is None else self.boxes[rows],
        )

    def views(self, indices: Sequence[int]) -> FrameFeatures:
        """Only the chosen views, in the given order."""
        # A single view is a window on the values, not a copy.
        chosen = slice(indices[0], indices[0] + 1) if len(indices) == 1 else list(indices)
        return replace(
            self,
            values=self.values[:, chosen],
            boxes=None if self.boxes is None else self.boxes[:, chosen],
            baseline=None if self.baseline is None else self.baseline[:, chosen],
        )


def lower_median(values: NDArray[np.floating]) -> float:
    """The median of at least one number; of an even number of them, the lower of the two in the middle."""
    place = (len(values) - 1) // 2
    return float(np.partition(values, place)[place])


Box = tuple[float, float, float, float]

"""Left, top, right, bottom, as shares of a picture's sides."""

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)

"""The box of the whole picture."""


@check_constructor
@dataclass(frozen=True, slots=True)
class Segment(Result):
    """One stretch of the query that appears in the target.

    Attributes:
        query_start: Start in the query in seconds.
        query_end: End in the query in seconds, not before the start.
        target_start: Start in the target in seconds.
        target_end: End in the target in seconds, not before the start.
        score: Mean calibrated frame similarity along the segment, in [0, 1].
        speed: Seconds of target per second of query, ``(target_end - target_start) / (query_end -
            query_start)`` of the matched line: 2.0 means that the query runs through the target's material
            twice as fast as the target does.
        mirrored: The query matches after flipping it left to right.
        query_box: Left, top, right, bottom of the part of the query's picture that shows the target, shares of its
            sides without black bars.
        target_box: Left, top, right, bottom of the part of the target's picture that the query shows, in the same
            units.
        turned: Degrees by which the query's picture has to be turned clockwise to match: 0, 90, 180 or 270. One that is
            mirrored as well is turned first and then flipped. Its box is in the picture as it is.
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

    def cut(self, query_end: float, target_end: float) -> Segment:
        """The segment clipped to the ends of the videos: the last frame counts for a whole period, which can extend
        beyond the end."""
        return replace(
            self,
            query_start=min(self.query_start, query_end),
            query_end=min(self.query_end, query_end),
            target_start=min(self.target_start, target_end),
            target_end=min(self.target_end, target_end),
        )

    def swapped(self) -> Segment:
        """The same stretch with query and target exchanged."""
        return replace(
            self,
            query_start=self.target_start,
            query_end=self.target_end,
            target_start=self.query_start,
            target_end=self.query_end,
            speed=1.0 / self.speed,
            query_box=self.target_box,
            target_box=self.query_box,
            # What undoes a turn is the turn back; after a flip it is the same turn.
            turned=self.turned if self.mirrored else -self.turned % 360,
        )


SCORE_REVISION = 8
"""Raise it whenever a scorer gives the same two videos another score or other segments, so that no stored score of an
earlier version is used: it is part of what identifies scores."""


@dataclass(frozen=True, slots=True)
class PairScore:
    """The result for one pair.

    Attributes:
        score: Score in [0, 1]: 1.0 for identical videos, near 0 for unrelated ones.
        segments: Matching segments, best first; none for a scorer without segments.
        map: [Tq, Tt] float32, similarities of frames in [0, 1].
    """

    score: float
    segments: tuple[Segment, ...]
    map: NDArray[np.float32]


class Scorer(Protocol):
    """Computes exact scores of one query against any number of targets."""

    @property
    def name(self) -> str:
        """The name used in manifests and by extractors: ``copies``, ``kinds``."""

    @property
    def needs_background(self) -> bool:
        """Whether scores are calibrated by how similar unrelated pictures are, so that features must have a
        baseline."""

    @property
    def has_segments(self) -> bool:
        """Whether it finds where two videos match, and distinguishes copies from videos that are merely similar."""

    def score(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore]:
        """One result for each target, in their order.

        Args:
            query: Features of the query.
            targets: Features of the targets, of any length.
            mirrored: Whether the query's frames were flipped left to right; only recorded in the segments.
        """


@runtime_checkable
class PromisingScorer(Scorer, Protocol):
    """A scorer that knows what a pair cannot reach, in less time than its score takes."""

    def promise(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> NDArray[np.float32]:
        """Seconds of match [targets] that each pair can have at most."""


class BestScores:
    """The best scores of a search so far; of a video that is scored more than once, its best one counts.

    Args:
        count: Number of videos that are asked for.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._scores: dict[int, float] = {}

    def add(self, video: int, score: float) -> None:
        """Note a score of a video, whichever number identifies it."""
        self._scores[video] = max(score, self._scores.get(video, 0.0))

    @property
    def least(self) -> float:
        """What a video needs to be among the best; 0 while there are fewer of them than are asked for."""
        if len(self._scores) < self._count:
            return 0.0
        return heapq.nlargest(self._count, self._scores.values())[-1]


@runtime_checkable
class ScorerOfBest(Scorer, Protocol):
    """A scorer that leaves out the costly part of scores that cannot be among the best."""

    def score_best(
        self, query: FrameFeatures, targets: Mapping[int, FrameFeatures], best: BestScores, *, mirrored: bool = False
    ) -> dict[int, PairScore]:
        """What :meth:`Scorer.score` returns for the targets, without those that cannot be among the best.

        Args:
            query: Features of the query.
            targets: Features of the targets by the number of their video, most promising first.
            best: The best scores so far, to which those computed are added.
            mirrored: As for :meth:`Scorer.score`.
        """


@runtime_checkable
class ScorerOfParts(Scorer, Protocol):
    """A scorer that can compare parts of one picture with parts of the other, at a higher cost than :meth:`score`."""

    def score_parts(
        self,
        query: FrameFeatures,
        targets: Sequence[FrameFeatures],
        *,
        mirrored: bool = False,
        least: Sequence[float] | None = None,
    ) -> list[PairScore | None]:
        """One result for each target, in their order; None where no pair of parts is worth a look.

        Args:
            query, targets, mirrored: As for :meth:`Scorer.score`.
            least: For each target, the score below which nobody asks for it; it can be None then.
        """

    def score_changes(
        self,
        query: FrameFeatures,
        targets: Sequence[FrameFeatures],
        *,
        mirrored: bool = False,
        least: Sequence[float] | None = None,
    ) -> list[PairScore | None]:
        """One result for each target by what changes in the same regions of both; None where nothing does, which is
        soon known.

        Args:
            query, targets, mirrored, least: As for :meth:`score_parts`.
        """


def fingerprint_of_scores(features: str, scorer: Scorer) -> str:
    """Identifies what a score depends on besides the two videos: stored scores are valid for the same text only.

    Args:
        features: Fingerprint of the extractor of the features.
        scorer: The scorer; its ``repr`` has all its constants.
    """
    return repr((SCORE_REVISION, features, scorer))

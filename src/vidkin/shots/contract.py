"""The interface of shot detectors (frames of a video in, transitions out), and the result types of detection.

A detector is a small class with a ``name`` and two methods. It receives either images (`ShotDetector`) or samples of
the decoded planes, which need no conversion (`PlanesDetector`). `detect` opens the video, pushes every frame once and
converts the `DetectedCuts` to times and shots; `KnownCutsDetector` is a minimal implementation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result, check_at_least, check_choice, check_share
from vidkin.errors import InvalidArgumentError
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name
from vidkin.media.time_code import SourceClock, timeline_rate

if TYPE_CHECKING:
    from vidkin.media import FramePlanes


@dataclass(frozen=True, slots=True, eq=False)
class RgbFrame:
    """A frame passed to a detector.

    Attributes:
        index: Number of the frame in presentation order, from 0.
        time: Time in seconds from the first frame.
        image: [H, W, 3] uint8 RGB. The detector may keep it, but must not modify it.
    """

    index: int
    time: float
    image: NDArray[np.uint8]


@check_constructor
@dataclass(frozen=True, slots=True)
class DetectedCut:
    """A transition in frame numbers; `detect` adds the times.

    Attributes:
        frame: First frame of the new shot, at least 1; for a gradual transition, a frame inside it.
        kind: One of `TRANSITIONS`; ``gradual`` if the detector does not distinguish gradual kinds.
        confidence: Confidence in [0, 1] that there is a transition.
        start_frame: First frame of a gradual transition; None means ``frame``.
        end_frame: Last frame of a gradual transition; None means ``frame``.
        kind_confidence: Confidence in [0, 1] in the kind, given that there is a transition.
        is_to_ground: Whether this is a cut to a plain, usually black background, followed by a fade-in within a second.
            Such a cut does not start a shot.
        is_from_ground: Whether this is a cut away from a plain background, preceded by a fade-out within a second. The
            new shot starts at this cut, not at the fade-out.
    """

    frame: int
    kind: Transition = "hard"
    confidence: float = 1.0
    start_frame: int | None = None
    end_frame: int | None = None
    kind_confidence: float = 1.0
    is_to_ground: bool = False
    is_from_ground: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, frame=self.frame)
        check_choice("kind of a cut", self.kind, TRANSITIONS)
        check_share(confidence=self.confidence, kind_confidence=self.kind_confidence)

    @property
    def is_gradual(self) -> bool:
        """Whether the transition spans several frames, regardless of its kind."""
        return self.kind not in SUDDEN


@check_constructor
@dataclass(frozen=True, slots=True, eq=False)
class DetectedCuts:
    """A detector's result for one video.

    Attributes:
        cuts: Transitions ordered by frame, at most one per frame.
        curve: The curve from which the cuts were derived; None if the detector has no curve.
        critical: Score of each shot (one more than cuts), in [0, 1]; None if the detector does not score shots.
    """

    cuts: tuple[DetectedCut, ...]
    curve: Curve | None = None
    critical: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        frames = [cut.frame for cut in self.cuts]
        if frames != sorted(set(frames)):
            raise InvalidArgumentError(f"cuts must be ordered by frame, with at most one per frame, got {frames}")
        if self.critical is not None and len(self.critical) != len(self.cuts) + 1:
            raise InvalidArgumentError(
                f"critical must have one score per shot, {len(self.cuts) + 1} for {len(self.cuts)} cuts, "
                f"got {len(self.critical)}"
            )

    def select(self, types: Collection[Transition]) -> DetectedCuts:
        """Keep only cuts of these kinds; ``gradual`` matches any kind except ``hard`` and ``jump``.

        Merged shots take the critical score of the last one.
        """
        accepted = {*types, "gradual"} if set(types) - SUDDEN else set(types)
        selected = [cut.kind in accepted for cut in self.cuts]
        critical = self.critical
        if critical is not None:
            critical = tuple(compress(critical, (*selected, True)))
        return replace(self, cuts=tuple(compress(self.cuts, selected)), critical=critical)


@runtime_checkable
class ShotDetector(Protocol):
    """Receives the frames of one video in order and returns its cuts. Each video needs a new detector.

    Frames are pushed one at a time and not kept by the caller. A detector that needs earlier frames should store only
    what it needs, so that memory does not grow with the length of the video.

    A detector that can report cuts before the last frame may have a method ``settled``, which returns each cut once, as
    soon as no later frame can change it; it is called by `ShotStream`.

    Attributes:
        name: Name shown in results; `open_detector` sets it to the name passed to it.
    """

    name: str

    @property
    def short_side(self) -> int | None:
        """Shorter side of the frames the detector needs, in pixels; None for the video's size. Videos are never
        upscaled.
        """
        ...

    def push(self, frame: RgbFrame) -> None:
        """Process the next frame."""
        ...

    def finish(self) -> DetectedCuts:
        """Return the cuts in all frames pushed, if any. Called once, after the last frame."""
        ...


@runtime_checkable
class PlanesDetector(Protocol):
    """A detector that works on samples of the decoded planes, which is fast because frames need no conversion.

    Attributes:
        name: Name shown in results; `open_detector` sets it to the name passed to it.
    """

    name: str

    @property
    def grid(self) -> tuple[int, int]:
        """Number of rows and columns of luma samples per frame, both even; chroma has half as many of each."""
        ...

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames, in order."""
        ...

    def finish(self) -> DetectedCuts:
        """Return the cuts in all frames pushed, if any. Called once, after the last frame."""
        ...


Transition = Literal["hard", "jump", "gradual", "dissolve", "fade", "wipe"]

"""Kind of change from one shot to the next.

``hard``: from one frame to the next. ``jump``: also from one frame to the next, but within one camera setup, skipping
part of a take. ``dissolve``: the old shot blends into the new one. ``fade``: through a plain,
usually black background, or from it at the start of a video, or to it at the end. ``wipe``: any geometric transition,
such as lines, circles, slides, pushes or zooms. ``gradual``: any of the last three, if the detector does not
distinguish them."""

TRANSITIONS: tuple[Transition, ...] = get_args(Transition)

SUDDEN: frozenset[Transition] = frozenset(("hard", "jump"))
"""Kinds that happen between two frames."""

Opening = Literal["start", "hard", "jump", "gradual", "dissolve", "fade", "wipe"]

"""How a shot begins: with the video, or with a `Transition`."""

# Fields omitted from the short form of a detection.
_LONG = ("curve", "frame_times", "stream", "critical")

# Minimum score of a critical shot.
_CRITICAL = 0.5


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Result):
    """A transition from one shot to the next.

    Frames are numbered from 0 in presentation order; times are in seconds from the first frame.

    Attributes:
        time: Start of the new shot in seconds.
        frame: First frame of the new shot; for a gradual transition, its middle frame.
        kind: One of `TRANSITIONS`.
        confidence: Confidence in [0, 1] that there is a transition.
        start: Start of the transition in seconds; for a hard cut or a jump, ``time``.
        end: End of the transition in seconds; for a hard cut or a jump, ``time``.
        start_frame: First frame of the transition; for a hard cut or a jump, ``frame``.
        end_frame: Last frame of the transition; for a hard cut or a jump, ``frame``.
        kind_confidence: Confidence in [0, 1] in the kind, given that there is a transition.
        is_to_ground: Whether this is a cut to a plain, usually black background, followed by a fade-in within a second.
            Such a cut does not start a shot.
        is_from_ground: Whether this is a cut away from a plain background, preceded by a fade-out within a second. The
            new shot starts at this cut, not at the fade-out.
    """

    time: float
    frame: int
    kind: Transition
    confidence: float
    start: float
    end: float
    start_frame: int
    end_frame: int
    kind_confidence: float = 1.0
    is_to_ground: bool = False
    is_from_ground: bool = False

    def __post_init__(self) -> None:
        check_choice("kind of a cut", self.kind, TRANSITIONS)
        check_share(confidence=self.confidence, kind_confidence=self.kind_confidence)
        if not 0 <= self.start_frame <= self.frame <= self.end_frame:
            raise InvalidArgumentError(
                "frames of a cut must satisfy 0 <= start_frame <= frame <= end_frame, "
                f"got {self.start_frame}, {self.frame}, {self.end_frame}"
            )
        if not 0.0 <= self.start <= self.time <= self.end:
            raise InvalidArgumentError(
                f"times of a cut must satisfy 0 <= start <= time <= end, got {self.start}, {self.time}, {self.end}"
            )

    @property
    def is_gradual(self) -> bool:
        """Whether the transition spans several frames, regardless of its kind."""
        return self.kind not in SUDDEN


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class Shot(Result):
    """Frames between two transitions.

    There are no gaps between the shots of a video: gradual transitions are split in the middle. A fade at the very
    start or end of a video belongs to the first or last shot, so its plain background is not a separate shot; neither
    is the black between a cut and a fade that are at most a second apart.

    Attributes:
        start: Start of the shot, in seconds from the first frame of the video.
        end: Start of the next shot, or end of the video, in seconds.
        start_frame: First frame of the shot, counting from 0.
        end_frame: First frame after the shot.
        kind: Kind of the opening transition; ``start`` for the first shot of the video, unless it fades in.
        confidence: Confidence of the opening transition, in [0, 1]; 1 for ``start``.
        transition_start: Start of the opening transition in seconds. For a fade composed of a cut to the background and
            a fade-in, or a fade-out and a cut away from the background, the start of the first of the two. ``start`` if
            there is no transition, or for a hard cut or jump.
        transition_end: End of the opening transition in seconds; ``start`` if there is none, or for a hard cut or jump.
        kind_confidence: Confidence in [0, 1] in the kind of the opening transition; 1 for ``start``.
        critical: Confidence in [0, 1] that a critical event happens at the end of the shot; None if the detector does
            not score shots.
    """

    derived: ClassVar = ("is_critical",)

    start: float
    end: float
    start_frame: int
    end_frame: int
    kind: Opening
    confidence: float
    transition_start: float
    transition_end: float
    kind_confidence: float = 1.0
    critical: float | None = None

    def __post_init__(self) -> None:
        check_choice("kind of a shot", self.kind, get_args(Opening))
        check_share(confidence=self.confidence, kind_confidence=self.kind_confidence)
        if self.critical is not None:
            check_share(critical=self.critical)
        if not 0 <= self.start_frame < self.end_frame:
            raise InvalidArgumentError(
                f"frames of a shot must satisfy 0 <= start_frame < end_frame, got {self.start_frame} and "
                f"{self.end_frame}"
            )
        if not 0.0 <= self.start < self.end:
            raise InvalidArgumentError(
                f"times of a shot must satisfy 0 <= start < end, got {self.start} and {self.end} s"
            )
        if not 0.0 <= self.transition_start <= self.start <= self.transition_end:
            raise InvalidArgumentError(
                "times of a shot's opening transition must satisfy 0 <= transition_start <= start <= transition_end, "
                f"got {self.transition_start}, {self.start} and {self.transition_end} s"
            )

    @property
    def is_critical(self) -> bool:
        """Whether the detector reports a critical event at the end of the shot, with a score of at least 0.5."""
        return self.critical is not None and self.critical >= _CRITICAL

    def cards(self, path: str = "") -> list[Card]:
        """Return a card with the middle of the shot, for notebooks; ``path`` is the video."""
        words = self.kind if self.critical is None else f"{self.kind}, critical {self.critical:.2f}"
        return [Card(path, (self.start + self.end) / 2, f"{self.start:.2f} - {self.end:.2f} s", words)]

    def table_rows(self) -> list[dict[str, Any]]:
        """Return a single row with the values of :meth:`to_dict`."""
        return [self.to_dict()]

    def to_pandas(self) -> Any:
        """Convert the shot to a pandas DataFrame with one row.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        """Return HTML with text only: unlike a detection, a shot has no path to read a frame from."""
        return cards_html(self.cards())


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class BlackStretch(Result):
    """A run of black frames: within a shot, between two shots, or at the start or end of the video.

    Attributes:
        start: Start time in seconds from the first frame of the video.
        end: Time of the first frame after the run, or end of the video, in seconds.
        start_frame: First black frame, counting from 0.
        end_frame: First frame after the run.
    """

    start: float
    end: float
    start_frame: int
    end_frame: int

    def __post_init__(self) -> None:
        if not (0 <= self.start_frame < self.end_frame and 0.0 <= self.start < self.end):
            raise InvalidArgumentError(
                "a black stretch must have 0 <= start < end, got frames "
                f"{self.start_frame} to {self.end_frame}, {self.start} to {self.end} s"
            )


@check_constructor
@dataclass(frozen=True, slots=True, eq=False)
class Curve(Result):
    """Values over time from which cuts are derived.

    Attributes:
        times: [N] float64 times in seconds, in increasing order.
        values: [N] float64 values.
        name: Name of the values, for example ``"novelty"``.
    """

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    name: str

    def __post_init__(self) -> None:
        if self.times.ndim != 1 or self.times.shape != self.values.shape:
            raise InvalidArgumentError(
                f"times and values of a curve must both be [N], got {self.times.shape} and {self.values.shape}"
            )

    def __repr__(self) -> str:
        return f"Curve(name={self.name!r}, values=[{len(self.values)}])"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ShotDetection(Result):
    """A detector's complete result for one video.

    Attributes:
        path: The video, as named by the caller.
        detector: Name of the detector.
        cuts: Transitions in order of time.
        shots: Shots in order of time, without gaps, from the first frame to the end.
        curve: The curve from which the cuts were derived; None if the detector has none.
        frame_times: [T] float64, time of every frame in seconds from the first frame.
        stream: Number of the video stream in the file; None for the first one.
        offset: Seconds from the start of the file, where players start counting, to the first frame.
        time_code: Time code of the first frame, as stored in the file; "" for none.
        black: Runs of black frames in order of time; they do not split shots.
        critical: Frames [first, last + 1) of the parts that a person marked as critical, in order of time.
    """

    derived: ClassVar = ("frames", "frame_rate")

    path: str
    detector: str
    cuts: tuple[Cut, ...]
    shots: tuple[Shot, ...]
    curve: Curve | None
    frame_times: NDArray[np.float64]
    stream: int | None = None
    offset: float = 0.0
    time_code: str = ""
    black: tuple[BlackStretch, ...] = ()
    critical: tuple[tuple[int, int], ...] = ()

    def clock(self, rate: Fraction | None = None) -> SourceClock:
        """Return the video's time code on a timeline with ``rate`` frames per second; None: its `timeline_rate`."""
        default = timeline_rate(np.asarray(self.frame_times))
        return SourceClock.of(default, time_code=self.time_code, offset=self.offset).at(rate or default)

    def black_seconds(self, shot: Shot) -> float:
        """Return the total duration of black in a shot in seconds."""
        return sum(max(0.0, min(shot.end, one.end) - max(shot.start, one.start)) for one in self.black)

    def seen(self, number: int) -> tuple[int, int]:
        """Return the longest run of frames [first, last + 1) that show only the shot with this number (from 0): frames
        that are not black and, if there are such frames, outside of transitions."""
        shot = self.shots[number]
        start, end = shot.start_frame, shot.end_frame
        for cut in (one for one in self.cuts if one.is_gradual and one.end_frame >= start and one.start_frame < end):
            if cut.start_frame <= start:
                start = cut.end_frame + 1
            else:
                end = cut.start_frame
        if end <= start:
            start, end = shot.start_frame, shot.end_frame
        edges = [start]
        for stretch in self.black:
            edges += [min(max(edge, start), end) for edge in (stretch.start_frame, stretch.end_frame)]
        runs = list(zip(edges[::2], [*edges[1::2], end], strict=True))
        first, last = max(runs, key=lambda run: run[1] - run[0])
        return (first, last) if last > first else (start, end)

    @property
    def frames(self) -> int:
        """Number of frames in the video."""
        return len(self.frame_times)

    @property
    def frame_rate(self) -> float:
        """Frame rate of a timeline for this video, rounded to three decimals."""
        return round(float(timeline_rate(np.asarray(self.frame_times))), 3)

    def to_dict(self, *, short: bool = False) -> dict[str, Any]:
        """Convert the detection to plain values: the fields, ``frames`` and ``frame_rate``.

        Args:
            short: Omit per-frame values and human marks, as ``shots --format json`` does; the result cannot be passed
                to ``from_dict``.
        """
        # slots=True creates a new class, so super() without arguments would refer to the wrong one.
        values = Result.to_dict(self)
        return {name: value for name, value in values.items() if not (short and name in _LONG)}

    def cards(self, path: str = "") -> list[Card]:
        """Return a card with a frame of each shot, for notebooks."""
        middles = [float(self.frame_times[sum(self.seen(position)) // 2]) for position in range(len(self.shots))]
        cards = [card for shot in self.shots for card in shot.cards(path or self.path)]
        return [replace(card, time=middle) for card, middle in zip(cards, middles, strict=True)]

    def table_rows(self) -> list[dict[str, Any]]:
        """Return one row per shot."""
        return [row for shot in self.shots for row in shot.table_rows()]

    def to_pandas(self) -> Any:
        """Convert the shots to a pandas DataFrame.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards(), f"{shown_name(self.path)}: {len(self.shots):,} shots")


@check_constructor
class KnownCutsDetector:
    """Reports the given cuts, up to the end of the video, without any computation.

    Args:
        cuts: Transitions ordered by frame.
        critical: Critical score of each shot in the video, one more than cuts; None reports no scores.
        name: Name shown in results.
        short_side: Shorter side of the frames to receive, in pixels.

    Attributes:
        frame_times: Times of all frames pushed so far, in seconds.
    """

    def __init__(
        self,
        cuts: Sequence[DetectedCut] = (),
        *,
        critical: Sequence[float] | None = None,
        name: str = "known",
        short_side: int | None = 32,
    ) -> None:
        self.name = name
        self.short_side = short_side
        self.frame_times: list[float] = []
        self._all = DetectedCuts(tuple(cuts), critical=None if critical is None else tuple(critical))

    def push(self, frame: RgbFrame) -> None:
        """Record the time of the next frame."""
        self.frame_times.append(frame.time)

    def finish(self) -> DetectedCuts:
        """Return the cuts within the frames pushed."""
        length = len(self.frame_times)
        cuts = tuple(cut for cut in self._all.cuts if max(cut.frame, cut.end_frame or 0) < length)
        critical = self._all.critical
        return DetectedCuts(cuts, critical=None if critical is None else critical[: len(cuts) + 1])

"""What is found in a video: cuts, the shots between them, and the curve that they were read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError

__all__ = ["Curve", "Cut", "CutKind", "Opening", "Shot", "ShotDetection"]

CutKind = Literal["hard", "gradual"]
Opening = Literal["start", "hard", "gradual"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A transition from one shot to the next.

    Frames are numbered from 0 in the order of presentation; times are seconds from the first frame.

    Attributes:
        time: When the new shot begins.
        frame: The first frame of the new shot; of a gradual transition the middle one.
        kind: ``hard``, or ``gradual`` (dissolve, fade, wipe).
        confidence: How sure it is, in [0, 1].
        start: Begin of the transition; of a hard cut ``time``.
        end: End of the transition; of a hard cut ``time``.
        start_frame: First frame of the transition; of a hard cut ``frame``.
        end_frame: Last frame of the transition; of a hard cut ``frame``.
    """

    time: float
    frame: int
    kind: CutKind
    confidence: float
    start: float
    end: float
    start_frame: int
    end_frame: int

    def __post_init__(self) -> None:
        if self.kind not in get_args(CutKind):
            raise InvalidArgumentError(f"kind of a cut is 'hard' or 'gradual', given is {self.kind!r}")
        if not 0.0 <= self.confidence <= 1.0:
            raise InvalidArgumentError(f"confidence lies in [0, 1], given is {self.confidence}")
        if not 0 <= self.start_frame <= self.frame <= self.end_frame:
            raise InvalidArgumentError(
                f"a cut's frames are start_frame <= frame <= end_frame from 0 on, given are "
                f"{self.start_frame}, {self.frame}, {self.end_frame}"
            )
        if not 0.0 <= self.start <= self.time <= self.end:
            raise InvalidArgumentError(
                f"a cut's times are start <= time <= end from 0 s on, given are {self.start}, {self.time}, {self.end}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """Frames between two transitions.

    The shots of a video follow each other without a gap: a gradual transition is divided at its middle.

    Attributes:
        start: When it begins, in seconds from the first frame of the video.
        end: When the next one begins, or the video ends.
        start_frame: Its first frame, numbered from 0.
        end_frame: The first frame after it.
        kind: The transition that opens it: ``start`` (of the video), ``hard`` or ``gradual``.
        confidence: Confidence of that transition, in [0, 1]; 1 for ``start``.
        critical: How surely something happens at its end, in [0, 1], yes from 0.5 on; None where the detector does
            not judge this.
    """

    start: float
    end: float
    start_frame: int
    end_frame: int
    kind: Opening
    confidence: float
    critical: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Opening):
            raise InvalidArgumentError(
                f"kind of a shot is 'start', 'hard' or 'gradual', given is {self.kind!r}"
            )
        if not 0 <= self.start_frame < self.end_frame:
            raise InvalidArgumentError(
                f"a shot has frames from start_frame up to before end_frame, given are "
                f"{self.start_frame} and {self.end_frame}"
            )
        if not 0.0 <= self.start < self.end:
            raise InvalidArgumentError(
                f"a shot ends after it starts, given are {self.start} and {self.end} s"
            )
        for name, value in (("confidence", self.confidence), ("critical", self.critical)):
            if value is not None and not 0.0 <= value <= 1.0:
                raise InvalidArgumentError(f"{name} lies in [0, 1], given is {value}")


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A number over time that cuts are read from.

    Attributes:
        times: [N] float64 seconds, increasing.
        values: [N] float64.
        name: What it is, as ``"novelty"``.
    """

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    name: str

    def __post_init__(self) -> None:
        if self.times.ndim != 1 or self.times.shape != self.values.shape:
            raise InvalidArgumentError(
                f"times and values of a curve are one each, given are {self.times.shape} and {self.values.shape}"
            )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ShotDetection:
    """All that a detector found in one video.

    Attributes:
        path: The video, as given.
        detector: The name of the detector.
        cuts: In the order of time.
        shots: In the order of time, without gaps, from the first frame to the end.
        curve: What the cuts were read from; None where the detector has none.
        frame_times: [T] float64, seconds of every frame from the first one on.
    """

    path: str
    detector: str
    cuts: tuple[Cut, ...]
    shots: tuple[Shot, ...]
    curve: Curve | None
    frame_times: NDArray[np.float64]

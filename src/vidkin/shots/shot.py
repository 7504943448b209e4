"""The results of a detection: cuts, the shots between them, and the curve they were read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.checks import check_choice, check_share
from vidkin._base.plain_values import Result, as_json, fields_as_json
from vidkin.errors import InvalidArgumentError
from vidkin.shots.timecode import timeline_rate

__all__ = ["TRANSITIONS", "Curve", "Cut", "Opening", "Shot", "ShotDetection", "Transition"]

Transition = Literal["hard", "gradual", "dissolve", "fade", "wipe"]
"""How one shot turns into the next; ``gradual`` if the detector does not distinguish gradual kinds."""

TRANSITIONS: tuple[Transition, ...] = get_args(Transition)

Opening = Literal["start", "hard", "gradual", "dissolve", "fade", "wipe"]
"""How a shot begins: with the video, or with a `Transition`."""

# Least score of a critical shot.
_CRITICAL = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Result):
    """A transition from one shot to the next.

    Frames are numbered from 0 in order of presentation; times are seconds from the first frame.

    Attributes:
        time: Start of the new shot in seconds.
        frame: First frame of the new shot; for a gradual transition, its middle frame.
        kind: ``hard``, ``dissolve``, ``fade``, ``wipe``, or ``gradual`` for any of the last three.
        confidence: Confidence of the detector, in [0, 1].
        start: Start of the transition in seconds; for a hard cut, ``time``.
        end: End of the transition in seconds; for a hard cut, ``time``.
        start_frame: First frame of the transition; for a hard cut, ``frame``.
        end_frame: Last frame of the transition; for a hard cut, ``frame``.
    """

    time: float
    frame: int
    kind: Transition
    confidence: float
    start: float
    end: float
    start_frame: int
    end_frame: int

    def __post_init__(self) -> None:
        check_choice("kind of a cut", self.kind, TRANSITIONS)
        check_share(confidence=self.confidence)
        if not 0 <= self.start_frame <= self.frame <= self.end_frame:
            raise InvalidArgumentError(
                "frames of a cut must be 0 <= start_frame <= frame <= end_frame, "
                f"got {self.start_frame}, {self.frame}, {self.end_frame}"
            )
        if not 0.0 <= self.start <= self.time <= self.end:
            raise InvalidArgumentError(
                f"times of a cut must be 0 <= start <= time <= end, got {self.start}, {self.time}, {self.end}"
            )

    @property
    def is_gradual(self) -> bool:
        """The transition takes several frames, of whatever type it is."""
        return self.kind != "hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot(Result):
    """Frames between two transitions.

    The shots of a video follow each other without a gap: a gradual transition is divided at its middle.

    Attributes:
        start: Start of the shot, in seconds from the first frame of the video.
        end: Start of the next shot, or end of the video, in seconds.
        start_frame: First frame of the shot, counting from 0.
        end_frame: First frame after the shot.
        kind: Kind of the transition that opens the shot; ``start`` for the first shot of the video.
        confidence: Confidence of that transition, in [0, 1]; 1 for ``start``.
        critical: Certainty that something happens at the shot's end, in [0, 1]; None if the detector does not judge
            this.
    """

    start: float
    end: float
    start_frame: int
    end_frame: int
    kind: Opening
    confidence: float
    critical: float | None = None

    def __post_init__(self) -> None:
        check_choice("kind of a shot", self.kind, get_args(Opening))
        check_share(confidence=self.confidence)
        if self.critical is not None:
            check_share(critical=self.critical)
        if not 0 <= self.start_frame < self.end_frame:
            raise InvalidArgumentError(
                "frames of a shot must be 0 <= start_frame < end_frame, "
                f"got {self.start_frame} and {self.end_frame}"
            )
        if not 0.0 <= self.start < self.end:
            raise InvalidArgumentError(
                f"times of a shot must be 0 <= start < end, got {self.start} and {self.end} s"
            )

    @property
    def is_critical(self) -> bool:
        """Whether the detector judges that something happens at the shot's end, with a score of at least 0.5."""
        return self.critical is not None and self.critical >= _CRITICAL

    def to_dict(self) -> dict[str, Any]:
        """The fields and ``is_critical`` as plain values, as ``vidkin shots --json`` prints them."""
        return {**fields_as_json(self), "is_critical": self.is_critical}


@dataclass(frozen=True, slots=True, eq=False)
class Curve(Result):
    """Values over time from which cuts are read.

    Attributes:
        times: [N] float64 times in seconds, increasing.
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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ShotDetection(Result):
    """The complete result of a detector for one video.

    Attributes:
        path: The video, as the caller named it.
        detector: The name of the detector.
        cuts: Transitions in order of time.
        shots: Shots in order of time, without gaps, from the first frame to the end.
        curve: The curve the cuts were read from; None if the detector has none.
        frame_times: [T] float64, time of every frame in seconds from the first frame.
    """

    path: str
    detector: str
    cuts: tuple[Cut, ...]
    shots: tuple[Shot, ...]
    curve: Curve | None
    frame_times: NDArray[np.float64]

    def to_dict(self, *, curve: bool = False) -> dict[str, Any]:
        """The detection as plain values, as ``vidkin shots --json`` prints it.

        Keys: ``path``, ``detector``, ``frames`` (their number), ``frame_rate``, ``shots`` and ``cuts`` (the fields of
        `Shot` and `Cut`; times in seconds, frames counted from 0, ``end_frame`` of a shot is the first frame after it).

        Args:
            curve: Include the curve, if there is one.
        """
        described = {
            "path": self.path,
            "detector": self.detector,
            "frames": len(self.frame_times),
            "frame_rate": round(float(timeline_rate(np.asarray(self.frame_times))), 3),
            "shots": as_json(self.shots),
            "cuts": as_json(self.cuts),
        }
        return described if not curve or self.curve is None else {**described, "curve": self.curve.to_dict()}

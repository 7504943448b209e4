"""The contract of shot detectors: frames of one video in order, then its transitions.

A detector is a small class with a ``name`` and two methods. It takes either images (`ShotDetector`) or samples of
the decoded planes, which cost no conversion (`PlanesDetector`). `detect` opens the video, pushes every frame once and
turns the `DetectedCuts` into times and shots; `KnownCutsDetector` is the smallest implementation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vidkin._base.checks import check_at_least, check_choice, check_share
from vidkin.errors import InvalidArgumentError
from vidkin.shots.shot import TRANSITIONS, Curve, Transition

if TYPE_CHECKING:
    from vidkin.media import FramePlanes

__all__ = ["DetectedCut", "DetectedCuts", "PlanesDetector", "RgbFrame", "ShotDetector"]


@dataclass(frozen=True, slots=True, eq=False)
class RgbFrame:
    """One frame as detectors see it.

    Attributes:
        index: Number of the frame in order of presentation, from 0.
        time: Seconds from the first frame.
        image: [H, W, 3] uint8 RGB. The detector can keep it, but must not write to it.
    """

    index: int
    time: float
    image: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class DetectedCut:
    """A transition in frames; `detect` adds the times.

    Attributes:
        frame: First frame of the new shot, at least 1; for a gradual transition, a frame inside it.
        kind: ``hard``, ``dissolve``, ``fade``, ``wipe``, or ``gradual`` if the detector does not distinguish gradual
            kinds.
        confidence: Confidence in [0, 1].
        start_frame: First frame of a gradual transition; None means ``frame``.
        end_frame: Last frame of a gradual transition; None means ``frame``.
    """

    frame: int
    kind: Transition = "hard"
    confidence: float = 1.0
    start_frame: int | None = None
    end_frame: int | None = None

    def __post_init__(self) -> None:
        check_at_least(1, frame=self.frame)
        check_choice("kind of a cut", self.kind, TRANSITIONS)
        check_share(confidence=self.confidence)

    @property
    def is_gradual(self) -> bool:
        """Whether the transition takes several frames, whatever its kind."""
        return self.kind != "hard"


@dataclass(frozen=True, slots=True, eq=False)
class DetectedCuts:
    """The result of a detector for one video.

    Attributes:
        cuts: Transitions in order of frames, at most one per frame.
        curve: The curve they were read from; None if the detector has no curve.
        critical: One score per shot (one more than cuts), in [0, 1]; None if the detector does not judge shots.
    """

    cuts: tuple[DetectedCut, ...]
    curve: Curve | None = None
    critical: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        frames = [cut.frame for cut in self.cuts]
        if frames != sorted(set(frames)):
            raise InvalidArgumentError(f"cuts must be in order of frames, at most one a frame, got {frames}")
        if self.critical is not None and len(self.critical) != len(self.cuts) + 1:
            raise InvalidArgumentError(
                f"critical must have one score a shot, {len(self.cuts) + 1} for {len(self.cuts)} cuts, "
                f"got {len(self.critical)}"
            )

    def select(self, types: Collection[Transition]) -> DetectedCuts:
        """Only the cuts of these kinds; ``gradual`` matches any kind except ``hard``.

        A merged shot is as critical as its last part.
        """
        accepted = {*types, "gradual"} if set(types) - {"hard"} else set(types)
        selected = [cut.kind in accepted for cut in self.cuts]
        critical = self.critical
        if critical is not None:
            critical = tuple(compress(critical, (*selected, True)))
        return replace(self, cuts=tuple(compress(self.cuts, selected)), critical=critical)


@runtime_checkable
class ShotDetector(Protocol):
    """Takes the frames of one video in order and returns its cuts. A detector is for one video only.

    Frames come one at a time and the caller drops them: a detector that needs earlier frames stores only what it
    needs, so that memory does not grow with the length of a film.

    Attributes:
        name: The name under which `open_detector` opens it, shown in results.
        short_side: Length in pixels of the shorter side of the frames the detector needs; None for the size of the
            video. Videos are never enlarged.
    """

    name: str
    short_side: int | None

    def push(self, frame: RgbFrame) -> None:
        """Process the next frame."""
        ...

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed; called once, after the last frame. Without frames there are none."""
        ...


@runtime_checkable
class PlanesDetector(Protocol):
    """A detector that works on samples of the decoded planes, which is fast because nothing is converted.

    Attributes:
        name: The name under which `open_detector` opens it, shown in results.
        grid: Rows and columns of luma sampled from every frame, both even; chroma has half as many.
    """

    name: str
    grid: tuple[int, int]

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames, in order."""
        ...

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed; called once, after the last frame. Without frames there are none."""
        ...

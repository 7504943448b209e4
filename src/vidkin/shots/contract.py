"""The contract of shot detectors: frames in order, then the cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.shots.shot import Curve, CutKind

if TYPE_CHECKING:
    from vidkin.media import FramePlanes

__all__ = ["DetectedCut", "DetectedCuts", "PlanesDetector", "RgbFrame", "ShotDetector"]


@dataclass(frozen=True, slots=True, eq=False)
class RgbFrame:
    """One frame as detectors see it.

    Attributes:
        index: Number of the frame in the order of presentation, from 0.
        time: Seconds from the first frame.
        image: [H, W, 3] uint8 RGB.
    """

    index: int
    time: float
    image: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class DetectedCut:
    """A cut in frames.

    Attributes:
        frame: The first frame of the new shot, 1 or more; of a gradual transition one inside it.
        kind: ``hard`` or ``gradual``.
        confidence: In [0, 1].
        start_frame: First frame of a gradual transition; None for ``frame``.
        end_frame: Last frame of a gradual transition; None for ``frame``.
    """

    frame: int
    kind: CutKind = "hard"
    confidence: float = 1.0
    start_frame: int | None = None
    end_frame: int | None = None

    def __post_init__(self) -> None:
        if self.frame < 1:
            raise InvalidArgumentError(f"a cut lies before frame 1 or later, given is {self.frame}")


@dataclass(frozen=True, slots=True, eq=False)
class DetectedCuts:
    """What a detector found in one video.

    Attributes:
        cuts: In the order of frames, each frame once.
        curve: What they were read from.
        critical: One score a shot (one more than cuts), in [0, 1]; None where the detector does not judge.
    """

    cuts: tuple[DetectedCut, ...]
    curve: Curve | None = None
    critical: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        frames = [cut.frame for cut in self.cuts]
        if frames != sorted(set(frames)):
            raise InvalidArgumentError(
                f"cuts must stand in the order of frames, each once; given are {frames}"
            )
        if self.critical is not None and len(self.critical) != len(self.cuts) + 1:
            raise InvalidArgumentError(
                f"{len(self.cuts)} cuts make {len(self.cuts) + 1} shots, given are {len(self.critical)} scores"
            )


@runtime_checkable
class ShotDetector(Protocol):
    """Takes the frames of one video in order, then says where it is cut. For one video only.

    Attributes:
        name: As `open_detector` takes it.
        short_side: Pixels at the shorter side of the frames that it wants; None for the size of the video.
    """

    name: str
    short_side: int | None

    def push(self, frame: RgbFrame) -> None:
        """Take the next frame."""
        ...

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        ...


@runtime_checkable
class PlanesDetector(Protocol):
    """A detector that looks at samples of the decoded planes: nothing is converted, so it costs little.

    Attributes:
        name: As `open_detector` takes it.
    """

    name: str

    def push_planes(self, planes: FramePlanes) -> None:
        """Take the next frames."""
        ...

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        ...

"""Run the transition network, which takes downscaled video frames and returns a row of predictions per frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin._base.values import read_json
from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import open_session, run_session
from vidkin.media import FramePlanes
from vidkin.shots.contract import Transition

Bytes = NDArray[np.uint8]

Answers = NDArray[np.floating]
"""[T, 10], one row of predictions per frame, with the columns below."""

SHIPPED = Path(__file__).with_name("data") / "shots.onnx"
"""The network included in the package; ``shots.json`` in the same folder contains its thresholds and provenance."""

GRID = (64, 128)
"""Number of rows and columns of luma sampled from a decoded frame."""

SMALL = (32, 64)
"""Number of rows and columns of luma in a downscaled frame; each value is the mean of four samples. Chroma has half as
many of each."""

CONTEXT = 110
"""Number of frames before and after a frame that its predictions depend on."""

HARD, JUMP, INSIDE, SINCE, UNTIL, CONTRAST, TIME = 0, 1, 2, 6, 7, 8, 9
"""Columns of a row: probability that the frame is the first of a new shot, that such a cut is a jump, and that the
frame is inside a gradual transition (for the kinds, see `KINDS`); number of frames since that transition's first frame
and until its last; contrast of the luma (0 to 255); and time in seconds."""

KINDS: Mapping[Transition, int] = {"dissolve": 3, "fade": 4, "wipe": 5}
"""Columns with the probability of each kind of gradual transition."""

# Frames per run of the network. Blocks always start at multiples of this number, so that predictions do not depend on
# how frames are pushed.
_BLOCK = 768


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Thresholds for converting predictions to transitions.

    Attributes:
        hard: Minimum probability of a cut, in (0, 1).
        gradual: Minimum mean probability of the frames in a gradual transition, in (0, 1).
        inside: Minimum probability of each frame in a gradual transition.
        plain: A frame is a plain background if the standard deviation of its luma (0 to 255) is below this.
        fade_gap: Maximum duration in seconds of plain background between two fades, or between a cut and a fade, that
            belong together.
        cut_gap: Maximum duration in seconds of plain background between a cut to it and a cut away from it.
    """

    hard: float
    gradual: float
    inside: float
    plain: float
    fade_gap: float
    cut_gap: float

    def __post_init__(self) -> None:
        for name in ("hard", "gradual"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name} must be above 0 and below 1, got {getattr(self, name):g}")

    @classmethod
    def load(cls, network: PathLike, **changes: float | None) -> Numbers:
        """Read the thresholds from the JSON file of a network; ``changes`` that are not None override them.

        Raises:
            InvalidArgumentError: The file cannot be read or is incomplete, or a threshold is out of range.
        """
        path = Path(network).with_suffix(".json")
        try:
            stored = {field.name: float(read_json(path)["numbers"][field.name]) for field in fields(cls)}
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{path}: the network's thresholds cannot be read: {error}") from error
        return cls(**stored | {name: value for name, value in changes.items() if value is not None})


class NetworkInput(NamedTuple):
    """Input of the network for consecutive frames.

    Attributes:
        luma: [T, 32, 64] uint8.
        chroma: [T, 2, 16, 32] uint8.
        times: [T] seconds.
    """

    luma: Bytes
    chroma: Bytes
    times: NDArray[np.float64]

    @classmethod
    def none(cls) -> NetworkInput:
        """Return an empty input."""
        height, width = SMALL
        luma, chroma = (0, height, width), (0, 2, height // 2, width // 2)
        return cls(np.zeros(luma, np.uint8), np.zeros(chroma, np.uint8), np.zeros(0))

    def append(self, frames: NetworkInput) -> NetworkInput:
        """Return these frames followed by ``frames``."""
        luma, chroma = np.concatenate([self.luma, frames.luma]), np.concatenate([self.chroma, frames.chroma])
        return NetworkInput(luma, chroma, np.concatenate([self.times, frames.times]))


def shrink_planes(planes: FramePlanes) -> NetworkInput:
    """Downscale frames sampled on `GRID` for the network."""
    return NetworkInput(_halve(planes.luma), _halve(planes.chroma), planes.timestamps)


def _halve(images: Bytes) -> Bytes:
    """Downscale [..., H, W] by two, to the rounded means of 2 x 2 samples."""
    total = images[..., ::2, ::2].astype(np.uint16)
    for down, across in ((0, 1), (1, 0), (1, 1)):
        total += images[..., down::2, across::2]
    return ((total + 2) >> 2).astype(np.uint8)


class NetworkReader:
    """Computes predictions for the frames of a video, as soon as the frames they depend on have been pushed.

    Args:
        network: ONNX file with the inputs ``luma`` and ``chroma`` [1, T, ...] of `NetworkInput` and the output
            ``answers`` [1, T, 8]. The output for a frame may depend on `CONTEXT` frames before and after it.
    """

    def __init__(self, network: PathLike = SHIPPED) -> None:
        self._session = _open(os.fspath(network), os.getpid())
        self._frames = NetworkInput.none()
        self._first = self._done = 0  # number of the first buffered frame, and of the first one without predictions

    def push(self, planes: FramePlanes) -> list[Answers]:
        """Process the next frames; return the blocks of predictions that are now available."""
        self._frames = self._frames.append(shrink_planes(planes))
        count = self._first + len(self._frames.times)
        return [self._answer(_BLOCK) for _ in range((count - CONTEXT - self._done) // _BLOCK)]

    def finish(self) -> list[Answers]:
        """Return the blocks of predictions for the remaining frames."""
        left = self._first + len(self._frames.times) - self._done
        return [self._answer(min(_BLOCK, left - start)) for start in range(0, left, _BLOCK)]

    def _answer(self, count: int) -> Answers:
        first = max(0, self._done - CONTEXT)
        own = slice(self._done - self._first, self._done - self._first + count)
        seen = slice(first - self._first, own.stop + CONTEXT)
        inputs = {"luma": self._frames.luma[None, seen], "chroma": self._frames.chroma[None, seen]}
        (answers,) = run_session(self._session, None, inputs)
        contrasts = self._frames.luma[own].std((1, 2))
        rows = np.column_stack([answers[0, own.start - seen.start :][:count], contrasts, self._frames.times[own]])
        self._done += count
        kept = max(0, self._done - CONTEXT - self._first)
        self._frames = NetworkInput(self._frames.luma[kept:], self._frames.chroma[kept:], self._frames.times[kept:])
        self._first += kept
        return rows


@lru_cache(maxsize=1)
def _open(network: str, process: int) -> Any:
    """Open a session shared by all videos in a process, because opening one takes as long as several hundred frames."""
    # Use one thread, because several would wait for each other while the decoder is busy.
    return open_session(network, threads=1)

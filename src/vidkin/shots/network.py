"""The network of transitions: small frames of a video in, a row of answers for each frame out."""

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
"""[T, 10], one row per frame, with the columns below."""

SHIPPED = Path(__file__).with_name("data") / "shots.onnx"
"""The network that ships with the package; ``shots.json`` next to it has its numbers and its origin."""

GRID = (64, 128)
"""Answers and columns of luma that are sampled from a decoded frame."""

SMALL = (32, 64)
"""Answers and columns of luma in a small frame, each the mean of four samples. Chroma has half as many."""

CONTEXT = 110
"""Frames before and after a frame that its answers depend on."""

HARD, JUMP, INSIDE, SINCE, UNTIL, CONTRAST, TIME = 0, 1, 2, 6, 7, 8, 9
"""Columns of rows: the network's answers for each frame, which are probabilities that it is the first one of a new
shot, that such a cut is a jump, that it lies in a gradual transition, and of which kind, then the frames since that
transition's first and until its last; next to them the contrast of luma, of 255, and the time in seconds."""

KINDS: Mapping[Transition, int] = {"dissolve": 3, "fade": 4, "wipe": 5}
"""Columns of the probabilities of kinds."""

# Frames answered at a time. Answers do not depend on how frames are pushed, because blocks always begin at multiples.
_BLOCK = 768


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """All numbers by which transitions are read from answers.

    Attributes:
        hard: Least probability of a cut, in (0, 1).
        gradual: Least mean probability of frames inside a gradual transition, in (0, 1).
        inside: Probability from which a frame can be inside one.
        plain: Contrast of luma (deviation, of 255) below which a frame shows a plain background.
        fade_gap: Seconds of such a background up to which two fades, or a cut and a fade, belong together.
        cut_gap: The same for a cut to it and a cut away from it.
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
        """The numbers in the JSON file next to a network, with the changes that are not None.

        Raises:
            InvalidArgumentError: The file cannot be read, lacks a number, or one is out of range.
        """
        path = Path(network).with_suffix(".json")
        try:
            stored = {field.name: float(read_json(path)["numbers"][field.name]) for field in fields(cls)}
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{path}: the numbers of the network cannot be read: {error}") from error
        return cls(**stored | {name: value for name, value in changes.items() if value is not None})


class NetworkInput(NamedTuple):
    """What the network sees of consecutive frames.

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
        """No frames."""
        height, width = SMALL
        luma, chroma = (0, height, width), (0, 2, height // 2, width // 2)
        return cls(np.zeros(luma, np.uint8), np.zeros(chroma, np.uint8), np.zeros(0))

    def append(self, frames: NetworkInput) -> NetworkInput:
        """These frames and the ones after them."""
        luma, chroma = np.concatenate([self.luma, frames.luma]), np.concatenate([self.chroma, frames.chroma])
        return NetworkInput(luma, chroma, np.concatenate([self.times, frames.times]))


def shrink_planes(planes: FramePlanes) -> NetworkInput:
    """Small frames of frames sampled on `GRID`."""
    return NetworkInput(_halve(planes.luma), _halve(planes.chroma), planes.timestamps)


def _halve(images: Bytes) -> Bytes:
    """[..., H, W] as rounded means of 2 x 2."""
    total = images[..., ::2, ::2].astype(np.uint16)
    for down, across in ((0, 1), (1, 0), (1, 1)):
        total += images[..., down::2, across::2]
    return ((total + 2) >> 2).astype(np.uint8)


class NetworkReader:
    """Answers of answers for the frames of one video, as soon as the frames that they depend on are known.

    Args:
        network: An ONNX file that takes ``luma`` and ``chroma`` [1, T, ...] of `NetworkInput` and gives ``answers``
            [1, T, 8]. Answers for a frame may depend on `CONTEXT` frames before and after it.
    """

    def __init__(self, network: PathLike = SHIPPED) -> None:
        self._session = _open(os.fspath(network), os.getpid())
        self._held = NetworkInput.none()
        self._first = self._done = 0  # number of the first frame held, and of the first one without answers

    def push(self, planes: FramePlanes) -> list[Answers]:
        """Take the next frames; blocks of rows that are known by them."""
        self._held = self._held.append(shrink_planes(planes))
        count = self._first + len(self._held.times)
        return [self._answer(_BLOCK) for _ in range((count - CONTEXT - self._done) // _BLOCK)]

    def finish(self) -> list[Answers]:
        """The blocks of rows of the last frames."""
        left = self._first + len(self._held.times) - self._done
        return [self._answer(min(_BLOCK, left - start)) for start in range(0, left, _BLOCK)]

    def _answer(self, count: int) -> Answers:
        first = max(0, self._done - CONTEXT)
        own = slice(self._done - self._first, self._done - self._first + count)
        seen = slice(first - self._first, own.stop + CONTEXT)
        inputs = {"luma": self._held.luma[None, seen], "chroma": self._held.chroma[None, seen]}
        (answers,) = run_session(self._session, None, inputs)
        contrasts = self._held.luma[own].std((1, 2))
        rows = np.column_stack([answers[0, own.start - seen.start :][:count], contrasts, self._held.times[own]])
        self._done += count
        kept = max(0, self._done - CONTEXT - self._first)
        self._held = NetworkInput(self._held.luma[kept:], self._held.chroma[kept:], self._held.times[kept:])
        self._first += kept
        return rows


@lru_cache(maxsize=1)
def _open(network: str, process: int) -> Any:
    """A session for all videos of this process, because opening one takes as long as a few hundred frames."""
    # One thread: with more, they wait for each other while the decoder is busy.
    return open_session(network, threads=1)

"""The network of transitions: small frames of a video in, answers for each frame out."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin.features.sessions import open_session, run_session
from vidkin.media import FramePlanes

Bytes = NDArray[np.uint8]

Rows = NDArray[np.float32]

SHIPPED = Path(__file__).with_name("data") / "shots.onnx"
"""The network that ships with the package; ``shots.json`` next to it has its numbers and its origin."""

GRID = (64, 128)
"""Rows and columns of luma that are sampled from a decoded frame."""

SMALL = (32, 64)
"""Rows and columns of luma in a small frame, each the mean of four samples. Chroma has half as many."""

CONTEXT = 110
"""Frames before and after a frame that its answers depend on."""

OUTPUTS = ("hard", "jump", "inside", "dissolve", "fade", "wipe", "start", "end")
"""Answers for each frame: probabilities that it is the first one of a new shot, that such a cut is a jump, that it lies
in a gradual transition and of which kind; then the frames since the transition's first and until its last."""

# Frames answered at a time. Answers do not depend on how frames are pushed, because blocks always begin at multiples.
_BLOCK = 512


class SmallFrames(NamedTuple):
    """What the network sees of consecutive frames.

    Attributes:
        luma: [T, 32, 64] uint8.
        chroma: [T, 2, 16, 32] uint8.
    """

    luma: Bytes
    chroma: Bytes


def shrink_planes(planes: FramePlanes) -> SmallFrames:
    """Small frames of frames sampled on `GRID`."""
    return SmallFrames(_halve(planes.luma), _halve(planes.chroma))


def _halve(images: Bytes) -> Bytes:
    """[..., H, W] as rounded means of 2 x 2."""
    total = images[..., ::2, ::2].astype(np.uint16)
    for down, across in ((0, 1), (1, 0), (1, 1)):
        total += images[..., down::2, across::2]
    return ((total + 2) >> 2).astype(np.uint8)


class NetworkReader:
    """Answers of a network for the frames of one video, as soon as the frames that they depend on are known.

    Args:
        network: An ONNX file that takes ``luma`` and ``chroma`` [1, T, ...] of `SmallFrames` and gives ``answers``
            [1, T, 8] in the order of `OUTPUTS`.
    """

    def __init__(self, network: PathLike = SHIPPED) -> None:
        # One thread: with more, they wait for each other while the decoder is busy.
        self._session = open_session(network, threads=1)
        self._held = SmallFrames(
            np.zeros((0, *SMALL), np.uint8), np.zeros((0, 2, SMALL[0] // 2, SMALL[1] // 2), np.uint8)
        )
        self._first = self._done = 0  # number of the first frame held, and of the first one without answers

    def push(self, frames: SmallFrames) -> list[Rows]:
        """Take the next frames; blocks of answers [T, 8] that are known by them."""
        self._held = SmallFrames(*(np.concatenate(pair) for pair in zip(self._held, frames, strict=True)))
        count = self._first + len(self._held.luma)
        return [self._answer(_BLOCK) for _ in range((count - CONTEXT - self._done) // _BLOCK)]

    def finish(self) -> list[Rows]:
        """The blocks of answers [T, 8] for the last frames, of which there is at least one."""
        left = self._first + len(self._held.luma) - self._done
        return [self._answer(min(_BLOCK, left - start)) for start in range(0, max(left, 1), _BLOCK)]

    def _answer(self, count: int) -> Rows:
        start, first = self._done, max(0, self._done - CONTEXT)
        seen = slice(first - self._first, start + count + CONTEXT - self._first)
        self._done += count
        if not count:
            return np.zeros((0, len(OUTPUTS)), np.float32)
        inputs = {name: rows[None, seen] for name, rows in self._held._asdict().items()}
        (answers,) = run_session(self._session, None, inputs)
        kept = max(0, self._done - CONTEXT - self._first)
        self._held = SmallFrames(*(rows[kept:] for rows in self._held))
        self._first += kept
        rows: Rows = answers[0, start - first : start - first + count]
        return rows

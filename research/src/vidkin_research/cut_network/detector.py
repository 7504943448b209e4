"""The network as a shot detector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.features.sessions import open_session, run_session
from vidkin.media import FramePlanes
from vidkin.shots import Curve, DetectedCut, DetectedCuts
from vidkin.shots.thinning import FrameThinner
from vidkin_research.cut_network.network import AHEAD, BEHIND, CutNetwork
from vidkin_research.cut_network.pieces import GRID, SMALL, Frames, shrink_planes
from vidkin_research.cut_network.reading import ReadingNumbers, read_transitions

__all__ = ["CutNetworkDetector", "finish_answers", "network_answers", "open_answers"]

Answers = Callable[[Frames, Frames], NDArray[np.float32]]
"""Answers [T, 8] for small frames."""

# Frames answered at a time.
_STEP = 256


def finish_answers(raw: torch.Tensor) -> torch.Tensor:
    """Probabilities, and frames since the first and until the last one of a transition, from logits [B, T, 8]."""
    return torch.cat([raw[..., :3].sigmoid(), raw[..., 3:6].softmax(-1), raw[..., 6:].clamp(0, 6).exp() - 1], -1)


def network_answers(network: CutNetwork) -> Answers:
    """Answers of a network in torch."""

    @torch.no_grad()
    def answer(luma: Frames, chroma: Frames) -> NDArray[np.float32]:
        raw = network(torch.from_numpy(luma)[None], torch.from_numpy(chroma)[None])
        rows: NDArray[np.float32] = finish_answers(raw)[0].numpy()
        return rows

    return answer


def open_answers(path: str) -> Answers:
    """Answers of an exported network."""
    session = open_session(path)

    def answer(luma: Frames, chroma: Frames) -> NDArray[np.float32]:
        (rows,) = run_session(session, None, {"luma": luma[None], "chroma": chroma[None]})
        values: NDArray[np.float32] = np.asarray(rows[0], np.float32)
        return values

    return answer


class CutNetworkDetector:
    """Reads all transitions from the answers of one network.

    Args:
        answers: The network.
        numbers: What they are read by.

    A frame's answers depend on 110 frames to each side.
    """

    grid = GRID

    def __init__(self, answers: Answers, numbers: ReadingNumbers | None = None) -> None:
        self.name = "cut-network"
        self._answer = answers
        self._numbers = numbers or ReadingNumbers()
        self._thinner = FrameThinner()
        self._luma = np.zeros((0, *SMALL), np.uint8)
        self._chroma = np.zeros((0, 2, SMALL[0] // 2, SMALL[1] // 2), np.uint8)
        self._first = 0  # number of the first frame in memory
        self._rows: list[NDArray[np.float32]] = []
        self._contrasts: list[NDArray[np.float32]] = []
        self._done = 0

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames."""
        for piece in self._thinner.push(planes):
            self._take(piece)

    def answers(self) -> NDArray[np.float32]:
        """Answers for all frames examined, after the last one."""
        for piece in self._thinner.release():
            self._take(piece)
        self._advance(self._first + len(self._luma))
        return np.concatenate([np.zeros((0, 8), np.float32), *self._rows])

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        answers = self.answers()
        contrasts = np.concatenate([np.zeros(0, np.float32), *self._contrasts])
        thinner = self._thinner
        found: tuple[DetectedCut, ...] = ()
        if len(answers):
            found = read_transitions(answers, contrasts, thinner.passed.tolist(), self._numbers)
        by_frame = {cut.frame: cut for cut in sorted(map(thinner.restore, found), key=lambda cut: cut.confidence)}
        curve = thinner.spread(answers[:, [0, 2]].max(1).astype(np.float64) if len(answers) else np.zeros(0))
        cuts = tuple(by_frame[frame] for frame in sorted(by_frame))
        return DetectedCuts(cuts, Curve(thinner.times, curve, "change"))

    def _take(self, planes: FramePlanes) -> None:
        luma, chroma = shrink_planes(planes)
        self._contrasts.append(luma.reshape(len(luma), -1).std(1, dtype=np.float32))
        self._luma, self._chroma = np.concatenate([self._luma, luma]), np.concatenate([self._chroma, chroma])
        ready = (self._first + len(self._luma) - AHEAD) // _STEP * _STEP
        if ready > self._done:
            self._advance(ready)

    def _advance(self, until: int) -> None:
        """Answer the frames up to ``until``."""
        for start in range(self._done, until, _STEP):
            end = min(until, start + _STEP)
            first = max(self._first, start - BEHIND)
            rows = slice(first - self._first, end + AHEAD - self._first)
            answers = self._answer(self._luma[rows], self._chroma[rows])
            self._rows.append(answers[start - first : end - first])
        self._done = until
        kept = max(0, until - BEHIND - self._first)
        self._luma, self._chroma = self._luma[kept:], self._chroma[kept:]
        self._first += kept

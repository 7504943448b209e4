"""Gradual transitions in the band of the self-similarity of windows: two sides that differ, without a sudden change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.fitted_rule import FittedRule
from vidkin.shots.learned.shot_windows import ShotWindows

__all__ = ["SIDE_NUMBERS", "GradualTransition", "find_gradual", "gradual_candidates", "gradual_examples"]

SIDE_NUMBERS = ("near", "far", "usual")
"""Numbers available to a rule for gradual transitions, see `gradual_candidates`."""

# The two sides are this many frames from the middle: dissolves of up to twice that length fit between them.
_NEAR, _FAR = 6, 14
# A transition covers these shares of the way from one side to the other.
_SHARES = (0.2, 0.8)


@dataclass(frozen=True, slots=True)
class GradualTransition:
    """A gradual transition: frames [first, last] between two shots.

    Attributes:
        first: First frame that is no longer only the old shot.
        last: Last frame that is not yet only the new shot.
        confidence: Confidence from the rule: 1/2 at its threshold, 1 certain.
    """

    first: int
    last: int
    confidence: float


def gradual_candidates(windows: ShotWindows, start: int, end: int) -> list[tuple[int, dict[str, float]]]:
    """(frame, numbers) at the peaks of the novelty in the frames [start, end), between two hard cuts.

    ``near``: distance of the window that ends 6 frames before the frame and the one that starts 6 frames after it;
    ``far``: the same with 14 frames; ``usual``: the median of ``near`` in this stretch, so that a stretch full of
    motion needs more. Peaks of the mean of near and far are 20 frames or more apart.
    """
    near, far = (_novelty(windows, start, end, reach) for reach in (_NEAR, _FAR))
    if len(near) == 0:
        return []
    novelty = (near + far) / 2
    usual = float(np.median(near))
    peaks: list[tuple[int, dict[str, float]]] = []
    apart = _NEAR + _FAR
    for place in np.argsort(-novelty, kind="stable").tolist():
        low, high = max(0, place - apart), place + apart + 1
        if novelty[place] >= novelty[low:high].max() and all(
            abs(place - other) > apart for other, _ in peaks
        ):
            peaks.append((place, {"near": float(near[place]), "far": float(far[place]), "usual": usual}))
    return sorted((start + place, numbers) for place, numbers in peaks)


def find_gradual(windows: ShotWindows, cuts: Sequence[int], rule: FittedRule) -> list[GradualTransition]:
    """Find gradual transitions between (and before and after) hard cuts at these frames, in order of time."""
    transitions = []
    for start, end in pairwise([0, *cuts, len(windows)]):
        for frame, numbers in gradual_candidates(windows, start, end):
            if rule.probability(numbers) >= rule.threshold:
                first, last = _interval(windows.features, frame, start, end)
                if (first + last) // 2 <= start:  # there already is a cut, or the video begins
                    continue
                transitions.append(GradualTransition(first, last, rule.confidence(numbers)))
    return transitions


def gradual_examples(
    windows: ShotWindows, cuts: Sequence[int], transitions: Sequence[tuple[int, int]]
) -> tuple[list[Mapping[str, float]], list[bool], int]:
    """Candidates with labels to fit a rule on, and how many transitions had no candidate.

    Args:
        windows: Windows of the video.
        cuts: The video's true hard cuts.
        transitions: The video's gradual transitions as [first, last] frame; a candidate within 3 frames of one is a
            positive.
    """
    examples: list[Mapping[str, float]] = []
    labels: list[bool] = []
    seen: set[int] = set()
    for start, end in pairwise([0, *cuts, len(windows)]):
        for frame, numbers in gradual_candidates(windows, start, end):
            inside = [n for n, (first, last) in enumerate(transitions) if first - 3 <= frame <= last + 3]
            examples.append(numbers)
            labels.append(bool(inside))
            seen.update(inside)
    return examples, labels, len(transitions) - len(seen)


def _novelty(windows: ShotWindows, start: int, end: int, reach: int) -> NDArray[np.float64]:
    """Distances [end - start] of the windows ``reach`` frames before and after each frame, within the stretch."""
    edge = windows.window - 1
    # A window that begins before the stretch, or ends after it, would see across a cut.
    low = 0 if start == 0 else start + edge
    high = len(windows) - 1 if end == len(windows) else end - windows.window
    if high <= low:
        return np.zeros(0)
    frames = np.arange(start, end)
    before = windows.embeddings[np.clip(frames - reach, low, high)]
    after = windows.embeddings[np.clip(frames + reach, low, high) + edge]
    distances: NDArray[np.float64] = np.linalg.norm((before - after).astype(np.float64), axis=1)
    return distances


def _interval(features: NDArray[np.float32], frame: int, start: int, end: int) -> tuple[int, int]:
    """First and last frame on the way from one side to the other."""
    left, right = max(start, frame - _FAR), min(end - 1, frame + _FAR)
    part = features[left : right + 1].astype(np.float64)
    part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-9)
    size = max(1, len(part) // 5)
    old, new = part[:size].mean(axis=0), part[-size:].mean(axis=0)
    to_old, to_new = np.linalg.norm(part - old, axis=1), np.linalg.norm(part - new, axis=1)
    share = to_old / np.maximum(to_old + to_new, 1e-9)
    middle = frame - left
    before = np.flatnonzero(share[: middle + 1] < _SHARES[0])
    after = np.flatnonzero(share[middle:] > _SHARES[1])
    first = left + (int(before[-1]) + 1 if len(before) else 0)
    last = frame + (int(after[0]) - 1 if len(after) else right - frame)
    return min(first, frame), max(last, frame)

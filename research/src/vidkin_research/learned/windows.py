"""Window embeddings of a video, their curve c(n) = ||f_1 - f_n||, and cut detection on it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import check_at_least
from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.fitted_rule import FittedRule

# Shapes: T frames, F features per frame, W frames per window, D embedding dimensions, B clips per batch.

FloatArray = NDArray[np.float32]

Encode = Callable[[FloatArray], FloatArray]

"""Function that maps clips of frame features [B, W, F] to embeddings [B, D]."""

# Number of preceding values that determine the local scale.
_SPAN = 16

# Minimum scale; changes of unit-length embeddings below this are decoding noise.
_FLOOR = 0.02

# Gaps in frames at which both sides are compared: after a flash, frames farther away show the same scene again.
_GAPS = (0, 3, 6)

_BATCH = 256


@dataclass(slots=True)
class ShotWindows:
    """Embeddings of all windows of W frames with stride 1, and of windows that start with a shot.

    The first and last frames of the video are repeated as padding, so that a window ends at every frame and another one
    starts at it. All windows are encoded in one pass.

    Attributes:
        features: [T, F] float32 frame features.
        window: W, at least 2.
        encode: Function that maps clips [B, W, F] to embeddings [B, D].
        embeddings: [T + W - 1, D]; row t is the window that ends at frame t, and row t + W - 1 the window that starts
            at frame t.
    """

    features: FloatArray
    window: int
    encode: Encode
    embeddings: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or len(self.features) == 0:
            raise InvalidArgumentError(
                f"features must be [T, F] with at least one frame, got {list(self.features.shape)}"
            )
        check_at_least(2, window=self.window)
        edge = self.window - 1
        self.embeddings = self._encode_windows(np.pad(self.features, ((edge, edge), (0, 0)), mode="edge"))

    def __len__(self) -> int:
        return len(self.features)

    def restart(self, start: int) -> FloatArray:
        """Return embeddings [min(W - 1, T - start), D] of windows that end at start, start + 1, ..., without earlier
        frames.

        They repeat the first frame of the shot as padding, so that a shot shorter than a window also has a curve. Later
        windows are full, so their embeddings are the same as without a cut.
        """
        edge = self.window - 1
        if start == 0:
            return self.embeddings[: min(edge, len(self))]
        return self._encode_windows(np.pad(self.features[start : start + edge], ((edge, 0), (0, 0)), mode="edge"))

    def curve(self, start: int, end: int) -> NDArray[np.float64]:
        """Return c, [max(0, end - start - W + 1)], for the full windows of a shot [start, end): distances to the first.

        ``c(n) = ||f_1 - f_n||_2`` in [0, 2]; window n covers the frames start + n ... start + n + W - 1.
        """
        own = self.embeddings[start + self.window - 1 : end]
        if len(own) == 0:
            return np.zeros(0)
        lengths: NDArray[np.float64] = np.sqrt(((own - own[0]).astype(np.float64) ** 2).sum(axis=-1))
        return lengths

    def numbers(self, start: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield (frame t, inputs of the cut rule at t) for t = start + 1, ... in a shot that starts at ``start``.

        ``jump``, as published, is computed from the slope of the curve, c(t) - c(t - 1); ``leap`` from the novelty, the
        distance between the windows that end at t - 1 and t; ``step`` from the distance between the features of these
        two frames. Each is log(1 + z), where z is the deviation from the median of the previous 16 values in robust
        standard deviations (1.4826 times the median absolute deviation), which are at least 0.02. Before the first full
        window of the shot, where f_1 does not exist yet, the novelty replaces the slope. ``slope``, ``novelty`` and
        ``change`` are the three values themselves (the slope without its sign). ``across`` is the distance between the
        window that ends before t and the window that starts at t, minimized over gaps of 0, 3 and 6 frames on both
        sides; it is small for a flash, after which the same scene continues.
        """
        restarted, edge = self.restart(start), self.window - 1
        origin = self.embeddings[start + edge]
        slopes, novelties, changes = _Recent(), _Recent(), _Recent()
        before = restarted[0]
        for frame in range(start + 1, len(self)):
            at = restarted[frame - start] if frame - start < edge else self.embeddings[frame]
            novelty = _length(at - before)
            full = frame - start > edge
            slope = _length(at - origin) - _length(before - origin) if full else novelty
            change = self.change(frame)
            yield (
                frame,
                {
                    "jump": slopes.surprise(slope),
                    "leap": novelties.surprise(novelty),
                    "step": changes.surprise(change),
                    "slope": abs(slope),
                    "novelty": novelty,
                    "change": change,
                    "across": self._across(frame, start, restarted),
                },
            )
            before = at

    def slopes(self, start: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield (frame t, ``jump``) for every full window that ends at t, from the second one of the shot at ``start``.

        As published, ``jump`` uses only the slope c(t) - c(t - 1): log(1 + z) as in `numbers`.
        """
        origin = self.embeddings[min(start + self.window - 1, len(self.embeddings) - 1)]
        slopes, before = _Recent(), 0.0
        for frame in range(start + self.window, len(self)):
            distance = _length(self.embeddings[frame] - origin)
            yield frame, {"jump": slopes.surprise(distance - before)}
            before = distance

    def change(self, frame: int) -> float:
        """Return the distance between the features of this frame and the previous one, as unit vectors."""
        pair = self.features[frame - 1 : frame + 1]
        pair = pair / np.maximum(np.linalg.norm(pair, axis=1, keepdims=True), 1e-12)
        return _length(pair[1] - pair[0])

    def _across(self, frame: int, start: int, restarted: FloatArray) -> float:
        """Return the distance between the two sides of ``frame`` in a shot that starts at ``start``."""
        distances = []
        for gap in _GAPS:
            ends = max(frame - 1 - gap, start)
            begins = min(frame + gap, len(self) - 1)
            before = restarted[ends - start] if ends - start < len(restarted) else self.embeddings[ends]
            distances.append(_length(before - self.embeddings[begins + self.window - 1]))
        return min(distances)

    def _encode_windows(self, frames: FloatArray) -> FloatArray:
        """Embed all windows of consecutive frames [N, F]: [N - W + 1, D]."""
        clips = np.lib.stride_tricks.sliding_window_view(frames, self.window, axis=0).transpose(0, 2, 1)
        parts = [self.encode(clips[first : first + _BATCH].copy()) for first in range(0, len(clips), _BATCH)]
        return np.concatenate(parts)


class _Recent:
    """The most recent values of a series, against which the next value is compared."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=_SPAN)

    def surprise(self, value: float) -> float:
        """Return log(1 + robust z-score) of a value, and add the value to the series."""
        middle = spread = 0.0
        if len(self._values) >= 3:
            values = np.array(self._values)
            middle = float(np.median(values))
            spread = 1.4826 * float(np.median(np.abs(values - middle)))
        self._values.append(value)
        return math.log1p(abs(value - middle) / (spread + _FLOOR))


def _length(row: FloatArray) -> float:
    return math.sqrt(float(np.dot(row, row)))


# Hard cuts: sudden changes in the slope of a shot's curve, with a new curve after each cut.


CUT_NUMBERS = ("jump", "leap", "step", "novelty", "across")

"""Inputs of the cut rule, see `ShotWindows.numbers`."""

# Number of frames within which a network responds to the first frame of a new shot.
_ANSWER = 2


@dataclass(frozen=True, slots=True)
class HardCut:
    """A cut between the frames ``frame - 1`` and ``frame``.

    Attributes:
        frame: First frame of the new shot.
        confidence: Confidence from the rule: 0.5 at its threshold, 1 if certain.
    """

    frame: int
    confidence: float


def find_cuts(windows: ShotWindows, rule: FittedRule) -> list[HardCut]:
    """Find hard cuts sequentially: each sudden change of slope is a cut and starts a new curve.

    Where the rule's threshold is exceeded, the cut lies between the last two frames of the window. Because networks may
    respond a frame late or early, the cut is then moved to the largest feature difference between neighboring frames,
    from the frame before to the two frames after.
    """
    cuts: list[HardCut] = []
    start = 0
    while (cut := _first_cut(windows, rule, start)) is not None:
        cuts.append(cut)
        start = cut.frame
    return cuts


def cut_examples(
    windows: ShotWindows, shots: Sequence[tuple[int, int]], *, keep: int = 1
) -> tuple[list[Mapping[str, float]], list[bool]]:
    """Return rule inputs per frame for fitting, and whether each frame is the first of the next shot.

    Each shot is followed from its true start, as in detection after a correct cut.

    Args:
        windows: Windows of the video.
        shots: [start, end) frames in order. If a shot ends where the next one starts, there is a hard cut. Frames
            between two shots are a gradual transition, through which the shot is followed without a positive. The end
            of the last shot is not a positive.
        keep: Use every ``keep``-th frame without a cut.
    """
    examples: list[Mapping[str, float]] = []
    labels: list[bool] = []
    for number, (start, end) in enumerate(shots):
        following = shots[number + 1][0] if number + 1 < len(shots) else None
        hard = following == end
        stop = end if following is None or hard else following + windows.window
        for frame, numbers in windows.numbers(start):
            if frame > stop or (frame == stop and not hard):
                break
            if frame == end and hard:
                examples.append(numbers)
                labels.append(True)
            elif (frame - start) % keep == 0:
                examples.append(numbers)
                labels.append(False)
    return examples, labels


def _first_cut(windows: ShotWindows, rule: FittedRule, start: int) -> HardCut | None:
    """Return the first cut after ``start``, or None."""
    passed: list[tuple[int, float]] = []
    for frame, numbers in windows.numbers(start):
        if passed and frame > passed[0][0] + _ANSWER:
            break
        if passed or rule.probability(numbers) >= rule.threshold:
            passed.append((frame, rule.confidence(numbers)))
    if not passed:
        return None
    frames = range(max(start + 1, passed[0][0] - 1), passed[-1][0] + 1)
    change = [windows.change(frame) for frame in frames]
    return HardCut(frames[int(np.argmax(change))], max(confidence for _, confidence in passed))


# The published cut rule: only a sudden change in the slope of the curve over full windows.


SLOPE_NUMBERS = ("jump",)

"""Inputs of the published rule, see `ShotWindows.slopes`."""


def find_slope_cuts(windows: ShotWindows, rule: FittedRule) -> list[HardCut]:
    """Find hard cuts with the published rule.

    If the slope of the curve c(n) = ||f_1 - f_n|| changes suddenly at n = N_o, the cut lies between the last two frames
    of window N_o, and the next curve begins at the cut. Cuts closer together than a window are missed, because the
    first window of a shot must be full. The paper does not define *suddenly*; here it means a fitted threshold on
    ``jump``.

    Source: Radial loss for learning fine-grained video similarity metric, section Testing.
    """
    cuts: list[HardCut] = []
    start = 0
    while True:
        for frame, numbers in windows.slopes(start):
            if rule.probability(numbers) >= rule.threshold:
                cuts.append(HardCut(frame, rule.confidence(numbers)))
                start = frame
                break
        else:
            return cuts


def slope_examples(
    windows: ShotWindows, shots: Sequence[tuple[int, int]]
) -> tuple[list[Mapping[str, float]], list[bool], int]:
    """Return rule inputs per window for fitting, their labels, and the number of hard cuts that no full window reaches.

    Each shot [start, end) is followed from its true start to the first frame of the next one.
    """
    examples: list[Mapping[str, float]] = []
    labels: list[bool] = []
    missed = 0
    for number, (start, end) in enumerate(shots):
        hard = number + 1 < len(shots) and shots[number + 1][0] == end
        reached = False
        for frame, numbers in windows.slopes(start):
            if frame > end or (frame == end and not hard):
                break
            examples.append(numbers)
            labels.append(frame == end)
            reached |= frame == end
        missed += hard and not reached
    return examples, labels, missed


# Gradual transitions: two sides that differ without a sudden change, near the diagonal of the windows' self-similarity.


SIDE_NUMBERS = ("near", "far", "usual")

"""Inputs of the rule for gradual transitions, see `gradual_candidates`."""

# Distances in frames from the middle to both sides; dissolves of up to twice this length fit in between.
_NEAR, _FAR = 6, 14

# A transition starts and ends at these fractions of the change from one side to the other.
_PROGRESS = (0.2, 0.8)


@dataclass(frozen=True, slots=True)
class GradualTransition:
    """A gradual transition between two shots, frames [first, last].

    Attributes:
        first: First frame that does not show only the old shot.
        last: Last frame that does not show only the new shot.
        confidence: Confidence from the rule: 0.5 at its threshold, 1 if certain.
    """

    first: int
    last: int
    confidence: float


def gradual_candidates(windows: ShotWindows, start: int, end: int) -> list[tuple[int, dict[str, float]]]:
    """Return (frame, rule inputs) at the novelty peaks in frames [start, end), between two hard cuts.

    ``near``: distance between the window that ends 6 frames before the frame and the window that starts 6 frames after
    it; ``far``: the same with 14 frames; ``usual``: the median of ``near`` in these frames, so that the threshold is
    higher where there is much motion. Peaks of the mean of ``near`` and ``far`` are at least 20 frames apart.
    """
    near, far = (_novelty(windows, start, end, reach) for reach in (_NEAR, _FAR))
    if len(near) == 0:
        return []
    novelty = (near + far) / 2
    usual = float(np.median(near))
    peaks: list[tuple[int, dict[str, float]]] = []
    apart = _NEAR + _FAR
    for position in np.argsort(-novelty, kind="stable").tolist():
        low, high = max(0, position - apart), position + apart + 1
        if novelty[position] >= novelty[low:high].max() and all(abs(position - other) > apart for other, _ in peaks):
            peaks.append((position, {"near": float(near[position]), "far": float(far[position]), "usual": usual}))
    return sorted((start + position, numbers) for position, numbers in peaks)


def find_gradual(windows: ShotWindows, cuts: Sequence[int], rule: FittedRule) -> list[GradualTransition]:
    """Find gradual transitions before, between and after hard cuts at these frames, in order of time."""
    transitions = []
    for start, end in pairwise([0, *cuts, len(windows)]):
        for frame, numbers in gradual_candidates(windows, start, end):
            if rule.probability(numbers) >= rule.threshold:
                first, last = _change_interval(windows.features, frame, start, end)
                if (first + last) // 2 <= start:  # there is a hard cut, or the video starts here
                    continue
                transitions.append(GradualTransition(first, last, rule.confidence(numbers)))
    return transitions


def gradual_examples(
    windows: ShotWindows, cuts: Sequence[int], transitions: Sequence[tuple[int, int]]
) -> tuple[list[Mapping[str, float]], list[bool], int]:
    """Return candidates for fitting the rule, their labels, and the number of transitions without a candidate.

    Args:
        windows: Windows of the video.
        cuts: The video's true hard cuts.
        transitions: The video's gradual transitions as [first, last] frames; a candidate within 3 frames of one is a
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
    """Return distances [end - start] between the windows ``reach`` frames before and after each frame."""
    edge = windows.window - 1
    # Windows must stay within [start, end), because others contain a cut.
    low = 0 if start == 0 else start + edge
    high = len(windows) - 1 if end == len(windows) else end - windows.window
    if high <= low:
        return np.zeros(0)
    frames = np.arange(start, end)
    before = windows.embeddings[np.clip(frames - reach, low, high)]
    after = windows.embeddings[np.clip(frames + reach, low, high) + edge]
    distances: NDArray[np.float64] = np.linalg.norm((before - after).astype(np.float64), axis=1)
    return distances


def _change_interval(features: NDArray[np.float32], frame: int, start: int, end: int) -> tuple[int, int]:
    """Return the first and last frame of the change from one side to the other."""
    left, right = max(start, frame - _FAR), min(end - 1, frame + _FAR)
    part = features[left : right + 1].astype(np.float64)
    part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-9)
    size = max(1, len(part) // 5)
    old, new = part[:size].mean(axis=0), part[-size:].mean(axis=0)
    to_old, to_new = np.linalg.norm(part - old, axis=1), np.linalg.norm(part - new, axis=1)
    share = to_old / np.maximum(to_old + to_new, 1e-9)
    middle = frame - left
    before = np.flatnonzero(share[: middle + 1] < _PROGRESS[0])
    after = np.flatnonzero(share[middle:] > _PROGRESS[1])
    first = left + (int(before[-1]) + 1 if len(before) else 0)
    last = frame + (int(after[0]) - 1 if len(after) else right - frame)
    return min(first, frame), max(last, frame)

"""Cuts where the curve of a shot changes its slope: c(n) = ||f_1 - f_n|| over windows, with reset after each cut."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.shots.fitted_rule import FittedRule

__all__ = ["CUT_NUMBERS", "Encode", "FoundCut", "ShotWindows", "cut_examples", "find_cuts"]

Array = NDArray[np.float32]
Encode = Callable[[Array], Array]
"""Clips of frame features [B, W, F] to embeddings [B, D]."""

CUT_NUMBERS = ("jump", "leap", "step", "novelty", "across")
"""What a rule for cuts can use, see `ShotWindows.numbers`."""

# The local scale is that of so many slopes before the one in question.
_SPAN = 16
# Slopes of embeddings of unit length below this are noise of decoding.
_FLOOR = 0.02
# A flash ends within so many frames: further apart the two sides show one scene again.
_GAPS = (0, 3, 6)
# A network answers to the first frame of a new shot within so many frames.
_ANSWER = 2
_BATCH = 256


@dataclass(frozen=True, slots=True)
class FoundCut:
    """A cut between the frames ``frame - 1`` and ``frame``.

    Attributes:
        frame: First frame of the new shot.
        confidence: From the rule: 1/2 at its threshold, 1 certain.
    """

    frame: int
    confidence: float


@dataclass(slots=True)
class ShotWindows:
    """Embeddings of all windows of W frames with stride 1, and those that start anew with a shot.

    Every frame of a video has a window that ends at it and one that starts at it: the first and the last frame are
    repeated outwards. Encoding them takes one pass; the features of a frame are made once.

    Attributes:
        features: [T, F] float32 features of the frames.
        window: W, frames a window.
        encode: Clips [B, W, F] to embeddings [B, D].
        embeddings: [T + W - 1, D]; row t is the window that ends at frame t, row t + W - 1 the one that starts at t.
    """

    features: Array
    window: int
    encode: Encode
    embeddings: Array = field(init=False)

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or len(self.features) == 0:
            raise InvalidArgumentError(
                f"features must be [T, F] of at least one frame, given is {list(self.features.shape)}"
            )
        if self.window < 2:
            raise InvalidArgumentError(f"window is {self.window} frames, allowed is 2 or more")
        edge = self.window - 1
        padded = np.pad(self.features, ((edge, edge), (0, 0)), mode="edge")
        self.embeddings = self._encoded(padded)

    def __len__(self) -> int:
        return len(self.features)

    def anew(self, start: int) -> Array:
        """[min(W - 1, T - start), D]: windows that end at start, start + 1, ... and see nothing from before it.

        They repeat the first frame of the shot, so that a shot shorter than a window has a curve too; the windows
        after these are full ones of the shot, the same as without a cut.
        """
        edge = self.window - 1
        if start == 0:
            return self.embeddings[: min(edge, len(self))]
        return self._encoded(np.pad(self.features[start : start + edge], ((edge, 0), (0, 0)), mode="edge"))

    def curve(self, start: int, end: int) -> NDArray[np.float64]:
        """c over the shot's own full windows, [max(0, end - start - W + 1)]: distances to the first of them.

        ``c(n) = ||f_1 - f_n||_2`` in [0, 2]; window n covers the frames start + n ... start + n + W - 1.
        """
        own = self.embeddings[start + self.window - 1 : end]
        if len(own) == 0:
            return np.zeros(0)
        return _lengths(own - own[0])

    def numbers(self, start: int) -> Iterator[tuple[int, dict[str, float]]]:
        """(frame t, numbers that tell whether t opens a new shot) for t = start + 1, ... in a shot from ``start``.

        ``jump``, the published one, is about the slope of the curve, c(t) - c(t - 1); ``leap`` about the novelty of the
        band, the distance of the windows that end at t - 1 and t; ``step`` about the distance of the features of these
        two frames. Each is log(1 + z), z how far it is from the median of the 16 before it in robust standard
        deviations (1.4826 times the median absolute deviation) that are at least .02. Before the first full window of
        the shot, where c has no f_1 yet, the novelty stands for the slope. ``slope``, ``novelty`` and ``change`` are
        the three themselves (the slope without its sign). ``across``: distance of the window that ends before t and the
        one that starts at t, the smallest when both move 0, 3 or 6 frames outwards: small for a flash, after which the
        same scene goes on.
        """
        anew, edge = self.anew(start), self.window - 1
        origin = self.embeddings[start + edge]
        slopes, novelties, changes = _Recent(), _Recent(), _Recent()
        before = anew[0]
        for frame in range(start + 1, len(self)):
            at = anew[frame - start] if frame - start < edge else self.embeddings[frame]
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
                    "across": self._across(frame, start, anew),
                },
            )
            before = at

    def change(self, frame: int) -> float:
        """Distance of the features of this frame and the one before, as unit vectors."""
        pair = self.features[frame - 1 : frame + 1]
        pair = pair / np.maximum(np.linalg.norm(pair, axis=1, keepdims=True), 1e-12)
        return _length(pair[1] - pair[0])

    def _across(self, frame: int, start: int, anew: Array) -> float:
        """Distance of what is before and what is after ``frame`` in a shot from ``start``."""
        found = []
        for gap in _GAPS:
            ends = max(frame - 1 - gap, start)
            begins = min(frame + gap, len(self) - 1)
            before = anew[ends - start] if ends - start < len(anew) else self.embeddings[ends]
            found.append(_length(before - self.embeddings[begins + self.window - 1]))
        return min(found)

    def _encoded(self, frames: Array) -> Array:
        """All windows of consecutive frames [N, F]: [N - W + 1, D]."""
        clips = np.lib.stride_tricks.sliding_window_view(frames, self.window, axis=0).transpose(0, 2, 1)
        parts = [self.encode(clips[first : first + _BATCH].copy()) for first in range(0, len(clips), _BATCH)]
        return np.concatenate(parts)


def find_cuts(windows: ShotWindows, rule: FittedRule) -> list[FoundCut]:
    """Walk through a video: at a sudden change of slope there is a cut, and the curve starts anew behind it.

    Where the rule's threshold is passed the cut lies between the last two frames of the window. Networks that answer
    a frame late, or to the first trace of it, are corrected by the frames themselves: of the frame before, this one
    and the two after it the cut is where the features of two neighbours differ most.
    """
    found: list[FoundCut] = []
    start = 0
    while True:
        cut = _first_cut(windows, rule, start)
        if cut is None:
            return found
        found.append(cut)
        start = cut.frame


def _first_cut(windows: ShotWindows, rule: FittedRule, start: int) -> FoundCut | None:
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
    return FoundCut(frames[int(np.argmax(change))], max(confidence for _, confidence in passed))


def cut_examples(
    windows: ShotWindows, shots: Sequence[tuple[int, int]], *, keep: int = 1
) -> tuple[list[Mapping[str, float]], list[bool]]:
    """Numbers of frames with labels, to fit a rule on: is this the first frame of the next shot?

    Each shot is followed from its own true start, as the walk does after a cut found in the right place.

    Args:
        windows: Of the video.
        shots: [start, end) frames in order. Where one ends at the start of the next there is a hard cut. Frames
            between two are a gradual transition: a shot is then followed through it, without a positive. The end of
            the last gives no positive.
        keep: Only every so manieth frame without a cut.
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


class _Recent:
    """The last values of a series, and how surprising the next one is."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=_SPAN)

    def surprise(self, value: float) -> float:
        """log(1 + robust z) of the value, which then joins the series."""
        middle = spread = 0.0
        if len(self._values) >= 3:
            values = np.array(self._values)
            middle = float(np.median(values))
            spread = 1.4826 * float(np.median(np.abs(values - middle)))
        self._values.append(value)
        return math.log1p(abs(value - middle) / (spread + _FLOOR))


def _length(row: Array) -> float:
    return math.sqrt(float(np.dot(row, row)))


def _lengths(rows: Array) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=-1))
    return lengths

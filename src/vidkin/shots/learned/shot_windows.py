"""Embeddings of the windows of a video, the curve c(n) = ||f_1 - f_n|| over them, and the numbers that reveal cuts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vidkin._base.checks import check_at_least
from vidkin.errors import InvalidArgumentError

__all__ = ["Encode", "ShotWindows"]

# T frames, F length of a frame's features, W frames per window, D length of an embedding, B clips in a batch.

Array = NDArray[np.float32]
Encode = Callable[[Array], Array]
"""Function from clips of frame features [B, W, F] to embeddings [B, D]."""

# Number of preceding slopes that set the local scale.
_SPAN = 16
# Slopes of embeddings of unit length below this are noise of decoding.
_FLOOR = 0.02
# Frames within which a flash ends: farther apart, both sides show the same scene again.
_GAPS = (0, 3, 6)
_BATCH = 256


@dataclass(slots=True)
class ShotWindows:
    """Embeddings of all windows of W frames with stride 1, and of windows that start with a shot.

    Every frame of a video has a window that ends at it and one that starts at it: the first and the last frame are
    repeated outwards. Encoding them takes one pass.

    Attributes:
        features: [T, F] float32 features of the frames.
        window: W, at least 2.
        encode: Function from clips [B, W, F] to embeddings [B, D].
        embeddings: [T + W - 1, D]; row t is the window that ends at frame t, row t + W - 1 the window that starts at
            t.
    """

    features: Array
    window: int
    encode: Encode
    embeddings: Array = field(init=False)

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

    def restart(self, start: int) -> Array:
        """Embeddings [min(W - 1, T - start), D] of windows that end at start, start + 1, ... and see nothing before
        ``start``.

        They repeat the first frame of the shot, so that a shot shorter than a window has a curve, too; the windows
        after these are full windows of the shot, the same as without a cut.
        """
        edge = self.window - 1
        if start == 0:
            return self.embeddings[: min(edge, len(self))]
        return self._encode_windows(
            np.pad(self.features[start : start + edge], ((edge, 0), (0, 0)), mode="edge")
        )

    def curve(self, start: int, end: int) -> NDArray[np.float64]:
        """c over the full windows of a shot [start, end), [max(0, end - start - W + 1)]: distances to the first.

        ``c(n) = ||f_1 - f_n||_2`` in [0, 2]; window n covers the frames start + n ... start + n + W - 1.
        """
        own = self.embeddings[start + self.window - 1 : end]
        if len(own) == 0:
            return np.zeros(0)
        lengths: NDArray[np.float64] = np.sqrt(((own - own[0]).astype(np.float64) ** 2).sum(axis=-1))
        return lengths

    def numbers(self, start: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield (frame t, numbers that show whether t opens a new shot) for t = start + 1, ... in a shot from
        ``start``.

        ``jump``, the published one, is about the slope of the curve, c(t) - c(t - 1); ``leap`` about the novelty of the
        band, the distance of the windows that end at t - 1 and t; ``step`` about the distance of the features of these
        two frames. Each is log(1 + z), z how far it is from the median of the 16 before it in robust standard
        deviations (1.4826 times the median absolute deviation) that are at least .02. Before the first full window of
        the shot, where c has no f_1 yet, the novelty stands for the slope. ``slope``, ``novelty`` and ``change`` are
        the three values themselves (the slope without its sign). ``across``: distance of the window that ends before t
        and the one that starts at t, the smallest as both move 0, 3 or 6 frames outwards: small for a flash, after
        which the same scene continues.
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
        """Yield (frame t, ``jump``) for the full windows of a shot from ``start`` that end at t, from the second one
        on.

        ``jump`` uses only the slope c(t) - c(t - 1), as published: log(1 + z) as in `numbers`.
        """
        origin = self.embeddings[min(start + self.window - 1, len(self.embeddings) - 1)]
        slopes, before = _Recent(), 0.0
        for frame in range(start + self.window, len(self)):
            distance = _length(self.embeddings[frame] - origin)
            yield frame, {"jump": slopes.surprise(distance - before)}
            before = distance

    def change(self, frame: int) -> float:
        """Distance of the features of this frame and the one before, as unit vectors."""
        pair = self.features[frame - 1 : frame + 1]
        pair = pair / np.maximum(np.linalg.norm(pair, axis=1, keepdims=True), 1e-12)
        return _length(pair[1] - pair[0])

    def _across(self, frame: int, start: int, restarted: Array) -> float:
        """Distance between both sides of ``frame`` in a shot from ``start``."""
        distances = []
        for gap in _GAPS:
            ends = max(frame - 1 - gap, start)
            begins = min(frame + gap, len(self) - 1)
            before = restarted[ends - start] if ends - start < len(restarted) else self.embeddings[ends]
            distances.append(_length(before - self.embeddings[begins + self.window - 1]))
        return min(distances)

    def _encode_windows(self, frames: Array) -> Array:
        """Embeddings [N - W + 1, D] of all windows of consecutive frames [N, F]."""
        clips = np.lib.stride_tricks.sliding_window_view(frames, self.window, axis=0).transpose(0, 2, 1)
        parts = [self.encode(clips[first : first + _BATCH].copy()) for first in range(0, len(clips), _BATCH)]
        return np.concatenate(parts)


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

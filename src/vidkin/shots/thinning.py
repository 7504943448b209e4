"""Drop frames of videos with very high frame rates, repeat frames at very low rates, and map cuts back to the original
frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.contract import DetectedCut

# Frame rate above which frames are dropped, and the approximate rate afterward; the network was trained on 24 to 60
# frames per second.
_HIGH_RATE, _USUAL_RATE = 75.0, 30.0

# Frame rate below which frames are repeated, and how often. At one or two frames per second, objects jump between
# frames; repeated frames are still, like frames within the shots that the network was trained on.
_LOW_RATE, _HOLD = 3.0, 4

# Number of frames used to measure the rate, and stride of the luma samples used to measure differences between frames.
_FIRST, _COARSE = 9, 8


class FrameThinner:
    """Passes on the frames of a video: every k-th frame above 75 frames per second (k = rate / 30, rounded), each frame
    several times below 3 frames per second, and every frame once otherwise.

    Attributes:
        step: k; 0 until it is known, after nine frames or at the end.
        hold: Number of times each frame is passed on; 0 until it is known.
    """

    def __init__(self) -> None:
        self.step = self.hold = 0
        self._waiting: list[FramePlanes] = []
        self._times: list[NDArray[np.float64]] = []
        self._count = 0  # number of frames that are no longer waiting
        self._before: NDArray[np.int16] | None = None
        self._changes: list[NDArray[np.float64]] = []

    @property
    def times(self) -> NDArray[np.float64]:
        """[T] times of all frames pushed in seconds."""
        return np.concatenate([np.zeros(0), *self._times])

    def push(self, planes: FramePlanes) -> list[FramePlanes]:
        """Process the next frames; return the batches of frames to analyze, in order."""
        self._times.append(planes.timestamps.copy())
        self._waiting.append(planes)
        return self.release() if self.step or sum(map(len, self._waiting)) >= _FIRST else []

    def release(self) -> list[FramePlanes]:
        """Return the frames buffered to measure the rate."""
        if not self.step:
            intervals = np.diff(self.times[:_FIRST])
            rate = 1 / float(np.median(intervals)) if len(intervals) else _USUAL_RATE
            self.step = round(rate / _USUAL_RATE) if rate > _HIGH_RATE else 1
            self.hold = _HOLD if rate < _LOW_RATE else 1
        waiting, self._waiting = self._waiting, []
        return [self._thin(planes) for planes in waiting]

    def restore(self, cut: DetectedCut) -> DetectedCut:
        """Convert a cut from numbers of frames passed on to numbers of original frames.

        A hard cut or jump is placed at the largest difference between consecutive frames among the k candidates.
        """
        step, hold, last = self.step, self.hold, self._count - 1
        if cut.start_frame is not None and cut.end_frame is not None:
            start = max(0, step * cut.start_frame - step // 2) // hold
            is_last = step * (cut.end_frame + 1) > last
            end = last if is_last and step > 1 else (step * cut.end_frame + step // 2) // hold
            return replace(cut, frame=max(1, (start + end + 1) // 2), start_frame=start, end_frame=end)
        # A cut between two copies of the same frame is moved to the next frame.
        frame = min(step * -(-cut.frame // hold), last)
        if step > 1:
            first = max(1, frame - step + 1)
            frame = first + int(np.concatenate(self._changes)[first : frame + 1].argmax())
        return replace(cut, frame=max(1, frame))

    def spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expand values to all original frames [T]: a dropped frame gets the value of the last frame passed on, and a
        repeated frame the maximum of its copies."""
        highest: NDArray[np.float64] = values.reshape(-1, max(1, self.hold)).max(1, initial=0)
        return highest.repeat(max(1, self.step))[: self._count]

    def _thin(self, planes: FramePlanes) -> FramePlanes:
        """Drop or repeat frames."""
        kept = slice(-self._count % self.step, None, self.step)
        self._count += len(planes)
        if self.step == 1:
            luma, chroma = planes.luma.repeat(self.hold, 0), planes.chroma.repeat(self.hold, 0)
            return FramePlanes(luma, chroma, planes.timestamps.repeat(self.hold))
        small = planes.luma[:, ::_COARSE, ::_COARSE].astype(np.int16)
        before = small[:1] if self._before is None else self._before
        self._changes.append(np.abs(np.diff(small, axis=0, prepend=before)).mean((1, 2)))
        self._before = small[-1:] if len(small) else before
        # Copy, because a view would keep the dropped frames in memory.
        return FramePlanes(planes.luma[kept].copy(), planes.chroma[kept].copy(), planes.timestamps[kept])

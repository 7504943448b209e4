"""Thin out videos with very high frame rates, repeat frames of very low ones, and map cuts back to the original
frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.contract import DetectedCut

# Rate above which frames are dropped, and the approximate rate that remains. The networks were trained on 24 to 60
# frames per second; at 120, a camera that moves over a photograph looks like a wipe.
_HIGH_RATE, _USUAL_RATE = 75.0, 30.0

# Rate below which frames are repeated, and how often. At one or two frames per second, moving things are somewhere else
# in every frame; repeated frames stand still, as within the shots that networks were trained on.
_LOW_RATE, _HOLD = 3.0, 4

# Frames from which the rate is measured, and the stride of luma samples with which changes of all frames are measured.
_FIRST, _COARSE = 9, 8


class FrameThinner:
    """Passes every frame on; above 75 frames per second only every k-th (k = rate / 30, rounded), below 3 each several
    times.

    Attributes:
        step: k, known after nine frames or at the end.
        hold: Number of times that each frame is passed on, known at the same time.
    """

    def __init__(self) -> None:
        self.step = self.hold = 1
        self._waiting: list[FramePlanes] = []
        self._is_open = False
        self._times: list[NDArray[np.float64]] = []
        self._count = 0
        self._before: NDArray[np.int16] | None = None
        self._changes: list[NDArray[np.float64]] = []

    @property
    def times(self) -> NDArray[np.float64]:
        """[T] times of all frames pushed, in seconds."""
        return np.concatenate([np.zeros(0), *self._times])

    @property
    def passed(self) -> NDArray[np.float64]:
        """Times of all frames passed on, in seconds; repeated frames divide the time to the next one."""
        times = self.times[:: self.step]
        return self._divide(times, times) if len(times) else times

    def push(self, planes: FramePlanes) -> list[FramePlanes]:
        """Take the next frames; return the batches of frames to examine, in order."""
        self._times.append(planes.timestamps.copy())
        self._count += len(planes)
        if self._is_open:
            return [self._thin(planes)]
        self._waiting.append(planes)
        return self.release() if self._count >= _FIRST else []

    def release(self) -> list[FramePlanes]:
        """Return the frames that are still waiting for the rate to be known."""
        if not self._is_open and self._count > 1:
            rate = 1 / float(np.median(np.diff(self.times[:_FIRST])))
            self.step = round(rate / _USUAL_RATE) if rate > _HIGH_RATE else 1
            self.hold = _HOLD if rate < _LOW_RATE else 1
        self._is_open = True
        waiting, self._waiting = self._waiting, []
        self._count -= sum(map(len, waiting))
        thinned = []
        for planes in waiting:
            self._count += len(planes)
            thinned.append(self._thin(planes))
        return thinned

    def restore(self, cut: DetectedCut) -> DetectedCut:
        """Convert a cut from frames passed on to frames of the video.

        A sudden cut goes to the largest difference of neighboring frames among the k possible ones.
        """
        step, count = self.step, self._count
        if self.hold > 1:
            # A cut between two repetitions of a frame is moved to the next frame.
            frame = min(max(1, -(-cut.frame // self.hold)), count - 1)
            start, end = (None if each is None else each // self.hold for each in (cut.start_frame, cut.end_frame))
            if start is None or end is None:
                return replace(cut, frame=frame)
            return replace(cut, frame=max(1, (start + end + 1) // 2), start_frame=start, end_frame=end)
        if step == 1:
            return cut
        if cut.start_frame is None or cut.end_frame is None:
            after = min(step * cut.frame, count - 1)
            first = max(1, step * (cut.frame - 1) + 1)
            changes = np.concatenate(self._changes)[first : after + 1]
            return replace(cut, frame=first + int(changes.argmax()))
        start = max(0, step * cut.start_frame - step // 2)
        is_last = step * (cut.end_frame + 1) >= count
        end = count - 1 if is_last else step * cut.end_frame + step // 2
        return replace(cut, frame=max(1, (start + end + 1) // 2), start_frame=start, end_frame=end)

    def spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values [T] of all frames: dropped frames get the value of the last frame passed on, repeated ones the
        largest."""
        if self.hold > 1:
            highest: NDArray[np.float64] = values.reshape(-1, self.hold).max(1) if len(values) else values
            return highest
        return values.repeat(self.step)[: self._count]

    def _thin(self, planes: FramePlanes) -> FramePlanes:
        """Thin or repeat a batch that ends with the last frame counted."""
        if self.hold > 1:
            times = self._divide(planes.timestamps, self.times)
            return FramePlanes(planes.luma.repeat(self.hold, 0), planes.chroma.repeat(self.hold, 0), times)
        if self.step == 1:
            return planes
        small = planes.luma[:, ::_COARSE, ::_COARSE].astype(np.int16)
        before = small[:1] if self._before is None else self._before
        self._changes.append(np.abs(np.diff(small, axis=0, prepend=before)).mean((1, 2)))
        self._before = small[-1:] if len(small) else before
        kept = slice(-(self._count - len(planes)) % self.step, None, self.step)
        # Copies, because a view would keep the dropped frames in memory.
        return FramePlanes(planes.luma[kept].copy(), planes.chroma[kept].copy(), planes.timestamps[kept])

    def _divide(self, times: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
        """The times of frames passed on; ``known`` are times from which their usual distance is measured."""
        usual = float(np.median(np.diff(known))) if len(known) > 1 else 1.0
        parts = np.arange(self.hold) * (usual / self.hold)
        divided: NDArray[np.float64] = np.maximum.accumulate((times[:, None] + parts).ravel())
        return divided

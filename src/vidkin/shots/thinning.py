"""Fewer frames of videos with very many frames a second, and the way back to the frames of the whole video."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.contract import DetectedCut

# Rate above which frames are left out, and the rate that is kept, about. Networks of transitions know 24 to 60 frames a
# second; at 120 a camera that moves over a photograph looks like a wipe.
_HIGH_RATE, _USUAL_RATE = 75.0, 30.0

# Frames from whose times the rate is told, and every how many samples of luma the changes of all frames are measured.
_FIRST, _COARSE = 9, 8


class FrameThinner:
    """Passes every frame on, or every k-th one of a video of more than 75 frames a second (k = rate / 30, rounded).

    Attributes:
        step: k, known after nine frames or at the end.
    """

    def __init__(self) -> None:
        self.step = 1
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

    def push(self, planes: FramePlanes) -> list[FramePlanes]:
        """Take the next frames; the pieces of frames to examine, in order."""
        self._times.append(planes.timestamps.copy())
        self._count += len(planes)
        if self._is_open:
            return [self._thin(planes)]
        self._waiting.append(planes)
        return self.release() if self._count >= _FIRST else []

    def release(self) -> list[FramePlanes]:
        """The frames that still wait for the rate to be known."""
        if not self._is_open and self._count > 1:
            rate = 1 / float(np.median(np.diff(self.times[:_FIRST])))
            self.step = round(rate / _USUAL_RATE) if rate > _HIGH_RATE else 1
        self._is_open = True
        waiting, self._waiting = self._waiting, []
        self._count -= sum(map(len, waiting))
        thinned = []
        for planes in waiting:
            self._count += len(planes)
            thinned.append(self._thin(planes))
        return thinned

    def restore(self, cut: DetectedCut) -> DetectedCut:
        """A cut among the frames passed on, in frames of the whole video.

        A sudden cut lies where neighboring frames differ most, of the k places that can be meant.
        """
        step, count = self.step, self._count
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
        """[T] values of all frames: each has that of the last frame passed on."""
        return values.repeat(self.step)[: self._count]

    def _thin(self, planes: FramePlanes) -> FramePlanes:
        """The k-th frames of a piece that ends with the last frame counted."""
        if self.step == 1:
            return planes
        small = planes.luma[:, ::_COARSE, ::_COARSE].astype(np.int16)
        before = small[:1] if self._before is None else self._before
        self._changes.append(np.abs(np.diff(small, axis=0, prepend=before)).mean((1, 2)))
        self._before = small[-1:] if len(small) else before
        kept = slice(-(self._count - len(planes)) % self.step, None, self.step)
        # Copies, because a view would keep the frames left out in memory.
        return FramePlanes(planes.luma[kept].copy(), planes.chroma[kept].copy(), planes.timestamps[kept])

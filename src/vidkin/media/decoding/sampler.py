"""Choose the pictures on screen at the sample times."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vidkin.media.time import SAME_TIME, is_before

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

Picture = tuple[int, "VideoFrame"]


class Sampler:
    """Receives pictures in order and returns the sampled ones, see `vidkin.media.iter_frames`.

    Args:
        rate: Samples per second; None samples every picture.
        start: Time of the first sample, in seconds from the first picture.
        end: Time in seconds before which samples are taken; None is the end of the video.
        tick: Seconds of one unit of time.
        base: Time of the first picture in units.
    """

    def __init__(
        self, rate: float | None, start: float, end: float | None, *, tick: float, base: int
    ) -> None:
        self._rate = rate
        self._start = start
        self._end = math.inf if end is None else end
        self._tick = tick
        self._base = base
        self._index = 0
        self._held: Picture | None = None
        self._given: int | None = None
        self.done = False

    @property
    def time(self) -> float:
        """Time of the next sample in seconds."""
        return self._time(self._index)

    @property
    def limit(self) -> int:
        """The latest time, in units, of a picture on screen at the next sample."""
        return self._limit(self._index)

    def limit_of(self, index: int) -> int | None:
        """The latest time, in units, of a picture on screen at a sample; None for samples at or after the end."""
        return self._limit(index) if self._time(index) < self._end else None

    def index_after(self, index: int, time: int) -> int:
        """Number of the first sample, at or after this one, at which a picture of this time may be on screen.

        The computation takes no longer for a picture that is years away.
        """
        if self._rate is None:
            return index
        passed = (time - self._base) * self._tick - SAME_TIME - self._start
        index = max(index, math.floor(passed * self._rate) - 1)
        while self._limit(index) < time:
            index += 1
        return index

    def push(self, picture: Picture) -> list[Picture]:
        """The sampled pictures that this one makes certain; after the last, ``done`` is set."""
        if self._rate is None:
            seconds = (picture[0] - self._base) * self._tick
            if is_before(seconds, self._start):
                self._held = picture
                return []
            if seconds >= self._end:
                self.done = True
                # No picture begins in the range: the one on screen at its start is the only one.
                return self._take() if self._given is None and self._held is not None else []
            self._held = picture
            return self._take()
        sampled: list[Picture] = []
        if self._held is not None and self.limit < picture[0]:
            sampled = self._take()
            self._index = self.index_after(self._index, picture[0])
            self.done = self.time >= self._end
        self._held = picture
        return sampled

    def finish(self, video_end: int) -> list[Picture]:
        """The last picture, if a sample falls on it before the video ends (in units)."""
        if self.done or self.limit >= video_end or self.time >= self._end:
            return []
        if self._rate is None and self._given is not None:
            return []
        return self._take()

    def _time(self, index: int) -> float:
        return self._start if self._rate is None else self._start + index / self._rate

    def _limit(self, index: int) -> int:
        return self._base + math.floor((self._time(index) + SAME_TIME) / self._tick)

    def _take(self) -> list[Picture]:
        if self._held is None or self._held[0] == self._given:
            return []
        self._given = self._held[0]
        return [self._held]


class ChosenSampler:
    """Receives pictures in order and returns those on screen at given times.

    Args:
        times: Times in seconds from the first picture, increasing.
        tick: Seconds of one unit of time.
        base: Time of the first picture in units.
    """

    def __init__(self, times: Sequence[float], *, tick: float, base: int) -> None:
        self._limits = [base + math.floor((time + SAME_TIME) / tick) for time in times]
        self._index = 0
        self._held: Picture | None = None
        self.done = False

    def limit_of(self, index: int) -> int | None:
        """The latest time, in units, of a picture on screen at a sample; None if there is no such sample."""
        return self._limits[index] if index < len(self._limits) else None

    def index_after(self, index: int, time: int) -> int:
        """Number of the first sample, at or after this one, at which a picture of this time may be on screen."""
        return max(index, bisect_left(self._limits, time))

    def push(self, picture: Picture) -> list[Picture]:
        """The sampled picture that this one makes certain; after the last, ``done`` is set."""
        before, self._held = self._held, picture
        if before is None or self.done or self._limits[self._index] >= picture[0]:
            return []
        self._index = self.index_after(self._index, picture[0])
        self.done = self._index >= len(self._limits)
        return [before]

    def finish(self, video_end: int) -> list[Picture]:
        """The last picture, if a sample falls on it before the video ends (in units)."""
        if self._held is None or self.done or self._limits[self._index] >= video_end:
            return []
        return [self._held]

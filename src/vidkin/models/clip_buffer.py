"""Cut frames, as they arrive, into the clips of a plan."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from vidkin.features import ClipPlan
from vidkin.media.time import SAME_TIME

__all__ = ["ClipBuffer", "PlannedClip"]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedClip:
    """One clip.

    Attributes:
        items: [n, ...], the items pushed for its frames.
        time: Middle of the clip in seconds.
        information: Mean information of its frames.
    """

    items: torch.Tensor
    time: float
    information: float


class ClipBuffer:
    """Takes frames in order, returns clips as they become complete, and drops frames that no later clip needs.

    Args:
        plan: Which clips to make. If it lists times, a clip holds the frame on screen at each of them. Otherwise a
            clip is ``frames`` consecutive frames, with one clip every ``plan.step`` seconds and the last at the end of
            the video; a video with fewer frames is one short clip. If the plan reads every frame, the result is one
            clip whose frames are spread evenly over the whole video.
        frames: Number of frames in a clip.
    """

    def __init__(self, plan: ClipPlan, frames: int) -> None:
        self._plan = plan
        self._frames = frames
        self._times: list[float] = []
        self._items: list[torch.Tensor] = []
        self._information: list[float] = []
        self._made = 0
        self._started = self._covered = float("-inf")

    def push(
        self, items: torch.Tensor, times: list[float], information: list[float]
    ) -> Iterator[PlannedClip]:
        """Add frames [n, ...] with their times and yield the clips that are complete now."""
        self._times += times
        self._items += list(items)
        self._information += information
        if self._plan.clips:
            return self._spread(last=False)
        return iter(()) if self._plan.rate is None else self._consecutive()

    def finish(self) -> Iterator[PlannedClip]:
        """The clips that end with the video."""
        if self._plan.clips:
            yield from self._spread(last=True)
        elif self._plan.rate is None and self._times:
            begin, end = self._times[0], self._times[-1]
            parts = [begin + (end - begin) * (index + 0.5) / self._frames for index in range(self._frames)]
            yield self._clip(self._rows(parts), (begin + end) / 2)
        elif self._times and (
            self._covered == float("-inf") or self._times[-1] - self._covered > self._plan.step / 2
        ):
            rows = range(max(0, len(self._times) - self._frames), len(self._times))
            yield self._clip(list(rows), (self._times[rows[0]] + self._times[-1]) / 2)

    def _consecutive(self) -> Iterator[PlannedClip]:
        while self._times:
            begin = self._plan.start + self._made * self._plan.step
            first = bisect.bisect_left(self._times, begin - SAME_TIME)
            if first + self._frames > len(self._times):
                # Frames before this clip are needed only if the video ends in the middle of it.
                self._drop(min(first, len(self._times) - self._frames))
                return
            if self._times[first] <= self._started:
                self._made += 1  # fewer frames than steps: this would be the previous clip again
                continue
            rows = list(range(first, first + self._frames))
            yield self._clip(rows, (self._times[rows[0]] + self._times[rows[-1]]) / 2)

    def _spread(self, *, last: bool) -> Iterator[PlannedClip]:
        while self._made < len(self._plan.clips):
            times = self._plan.clips[self._made]
            if not last and not (self._times and self._times[-1] > times[-1] + SAME_TIME):
                return
            rows = self._rows(times)
            yield self._clip(rows, (times[0] + times[-1]) / 2)
            self._drop(rows[-1])

    def _rows(self, times: Sequence[float]) -> list[int]:
        """The row of the frame that is on screen at each time."""
        return [max(0, bisect.bisect_right(self._times, time + SAME_TIME) - 1) for time in times]

    def _clip(self, rows: list[int], time: float) -> PlannedClip:
        self._made += 1
        self._started, self._covered = self._times[rows[0]], self._times[rows[-1]]
        information = sum(self._information[row] for row in rows) / len(rows)
        return PlannedClip(torch.stack([self._items[row] for row in rows]), time, information)

    def _drop(self, count: int) -> None:
        if count > 0:
            del self._times[:count], self._items[:count], self._information[:count]

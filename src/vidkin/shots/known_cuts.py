"""A detector with given cuts, for tests and for cuts known from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from vidkin.shots.contract import DetectedCut, DetectedCuts, RgbFrame

__all__ = ["KnownCutsDetector"]


class KnownCutsDetector:
    """Reports given cuts up to the end of the video without computing anything.

    Args:
        cuts: Transitions in order of frames.
        critical: One score for each shot of the whole video, one more than cuts; None reports no scores.
        name: Name shown in results.
        short_side: Length in pixels of the shorter side of the frames it receives.

    Attributes:
        frame_times: Times in seconds of all frames pushed so far.
    """

    def __init__(
        self,
        cuts: Sequence[DetectedCut] = (),
        *,
        critical: Sequence[float] | None = None,
        name: str = "known",
        short_side: int | None = 32,
    ) -> None:
        self.name = name
        self.short_side = short_side
        self.frame_times: list[float] = []
        self._all = DetectedCuts(tuple(cuts), critical=None if critical is None else tuple(critical))

    def push(self, frame: RgbFrame) -> None:
        """Record the time of the next frame."""
        self.frame_times.append(frame.time)

    def finish(self) -> DetectedCuts:
        """The cuts within the frames pushed."""
        length = len(self.frame_times)
        cuts = tuple(cut for cut in self._all.cuts if max(cut.frame, cut.end_frame or 0) < length)
        critical = self._all.critical
        return DetectedCuts(cuts, critical=None if critical is None else critical[: len(cuts) + 1])

"""The ends of files that are left out of a search for duplicates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vidkin._base.values import check_not_negative
from vidkin.similarity import FrameFeatures

__all__ = ["IgnoredEnds"]


@dataclass(frozen=True, slots=True)
class IgnoredEnds:
    """Seconds at the start and at the end of each file that are not compared."""

    start: float = 0.0
    end: float = 0.0

    def __post_init__(self) -> None:
        check_not_negative(ignore_start=self.start, ignore_end=self.end)

    def __bool__(self) -> bool:
        return self.start > 0 or self.end > 0

    def cut(self, features: FrameFeatures) -> FrameFeatures:
        """The features of the rest of a file, which may have no frames."""
        return features.once(self, lambda: self._cut(features)) if self and len(features) else features

    def _cut(self, features: FrameFeatures) -> FrameFeatures:
        times = features.timestamps
        end = (float(times[-1]) + features.period if features.end is None else features.end) - self.end
        return replace(features.frames((times >= self.start) & (times < end)), end=end)

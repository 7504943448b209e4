"""Where two videos match."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vidkin._base.plain_values import Result
from vidkin.errors import InvalidArgumentError

__all__ = ["WHOLE", "Box", "Segment"]

Box = tuple[float, float, float, float]
"""Left, top, right, bottom, as shares of a picture's sides."""

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
"""The box of the whole picture."""


@dataclass(frozen=True, slots=True)
class Segment(Result):
    """One stretch of the query that appears in the target.

    Attributes:
        query_start: Start in the query in seconds.
        query_end: End in the query in seconds, not before the start.
        target_start: Start in the target in seconds.
        target_end: End in the target in seconds, not before the start.
        score: Mean calibrated frame similarity along the segment, in [0, 1].
        speed: Seconds of target per second of query, ``(target_end - target_start) / (query_end -
            query_start)`` of the matched line: 2.0 means that the query runs through the target's material
            twice as fast as the target does.
        mirrored: The query matches after flipping it left to right.
        query_box: Left, top, right, bottom of the part of the query's picture that shows the target, shares of its
            sides without black bars.
        target_box: Left, top, right, bottom of the part of the target's picture that the query shows, in the same
            units.
    """

    query_start: float
    query_end: float
    target_start: float
    target_end: float
    score: float
    speed: float = 1.0
    mirrored: bool = False
    query_box: Box = WHOLE
    target_box: Box = WHOLE

    def __post_init__(self) -> None:
        if self.query_end < self.query_start or self.target_end < self.target_start:
            raise InvalidArgumentError(
                f"a segment must not end before it starts, got [{self.query_start}, {self.query_end}] s of the query "
                f"and [{self.target_start}, {self.target_end}] s of the target"
            )
        if not 0.0 <= self.score <= 1.0:
            raise InvalidArgumentError(f"score of a segment must be in [0, 1], got {self.score}")
        for name, (left, top, right, bottom) in (
            ("query_box", self.query_box),
            ("target_box", self.target_box),
        ):
            if not (0.0 <= left < right <= 1.0 and 0.0 <= top < bottom <= 1.0):
                raise InvalidArgumentError(
                    f"{name} must be left < right and top < bottom in [0, 1], got {(left, top, right, bottom)}"
                )
        if not self.speed > 0.0:
            raise InvalidArgumentError(f"speed of a segment must be above 0, got {self.speed}")

    def cut(self, query_end: float, target_end: float) -> Segment:
        """The segment clipped to the ends of the videos: the last frame counts for a whole period, which can extend
        beyond the end."""
        return replace(
            self,
            query_start=min(self.query_start, query_end),
            query_end=min(self.query_end, query_end),
            target_start=min(self.target_start, target_end),
            target_end=min(self.target_end, target_end),
        )

    def swapped(self) -> Segment:
        """The same stretch with query and target exchanged."""
        return replace(
            self,
            query_start=self.target_start,
            query_end=self.target_end,
            target_start=self.query_start,
            target_end=self.query_end,
            speed=1.0 / self.speed,
            query_box=self.target_box,
            target_box=self.query_box,
        )

"""Time map from a removed file to the kept file, as stretches of constant speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError


@check_constructor
@dataclass(frozen=True, slots=True)
class TimeStretch(Result):
    """A stretch of a removed file that the kept file also shows, at a constant speed.

    Times are in seconds from the first video frame of each file.

    Attributes:
        removed_start, removed_end: Start and end of the stretch in the removed file.
        kept_start: Start of the stretch in the kept file.
        speed: Seconds in the kept file per second in the removed file.
    """

    removed_start: float
    removed_end: float
    kept_start: float
    speed: float = 1.0

    def __post_init__(self) -> None:
        if not self.removed_start < self.removed_end:
            raise InvalidArgumentError(
                f"removed_start must be before removed_end, got {self.removed_start} and {self.removed_end}"
            )
        if not self.speed > 0.0:
            raise InvalidArgumentError(f"speed must be above 0, got {self.speed}")

    def kept_time(self, time: float) -> float:
        """Convert a time in the removed file to a time in the kept file, extrapolating outside the stretch."""
        return self.kept_start + self.speed * (time - self.removed_start)


def extend_stretches(time_map: Sequence[TimeStretch]) -> Iterator[tuple[float, float, TimeStretch]]:
    """Divide the whole time axis among the stretches of a removed file, ordered by start.

    Each stretch extends to the start of the next one. The first and the last extend to infinity, because audio and
    subtitles can start before the first frame and end after the last.

    Yields:
        Start, end and stretch; the first start is negative infinity, the last end is infinity.

    Raises:
        InvalidArgumentError: `time_map` is empty.
    """
    if not time_map:
        raise InvalidArgumentError("time_map must have at least one stretch, got none")
    ordered = sorted(time_map, key=lambda stretch: stretch.removed_start)
    starts = [float("-inf"), *(stretch.removed_start for stretch in ordered[1:]), float("inf")]
    for number, stretch in enumerate(ordered):
        yield starts[number], starts[number + 1], stretch


def describe_range(start: float, end: float) -> str:
    """Format a time range for findings.

    >>> describe_range(9, 14.04), describe_range(59.96, 3725)
    ('0:09.0-0:14.0', '1:00.0-1:02:05.0')
    """
    return f"{_format_time(start)}-{_format_time(end)}"


def _format_time(seconds: float) -> str:
    tenths = int(max(seconds, 0.0) * 10 + 0.5)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    front = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{front}:{rest // 10:02d}.{rest % 10}"

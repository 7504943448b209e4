"""Time code as used in editing: format it, parse it, read it from files, and find its frame rate."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_not_negative, check_positive
from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.stream import VideoStream

STANDARD_RATES = (
    *(Fraction(rate) for rate in (12, 15, 24, 25, 30, 48, 50, 60, 100, 120)),
    *(Fraction(rate * 1000, 1001) for rate in (24, 30, 48, 60, 120)),
)
"""Frame rates that editing systems support, integer rates first."""

_SMPTE_RATES = (
    *(Fraction(rate) for rate in (24, 25, 30, 48, 50, 60)),
    *(Fraction(rate * 1000, 1001) for rate in (24, 30, 48, 60)),
)
# Hours, minutes, seconds, the separator that marks drop-frame time code, and frames.
_TIME_CODE = re.compile(r"(\d{1,2}):([0-5]\d):([0-5]\d)([:;.,])(\d{1,3})")

# Maximum deviation of any frame, in frames, for a file to run at a rate.
_MAX_FRAME_ERROR = 0.2
# A rate is tried only if the median interval between frames differs from its period by at most this fraction.
_MAX_DEVIATION = 0.05
# A number within this fraction of a standard rate stands for that rate: 29.97 is 30000/1001, but 24 is not 24000/1001.
_SAME_RATE = 1e-4
# Frames by which a later rate must fit better to be preferred; if 24 fits, 48 fits equally well.
_MIN_IMPROVEMENT = 1e-6


@check_arguments
def timeline_rate(times: NDArray[np.float64]) -> Fraction:
    """Find the timeline frame rate for a video.

    This is the standard rate (24, 25, 30000/1001...) whose frames at k / rate best fit all times, with increasing k and
    no time off by more than 0.2 frames; frames may be missing. A video with another constant rate, or with a variable
    rate, gets its average rate, rounded to a whole number of at least 1; positions are rounded to frames of that
    timeline.

    Args:
        times: [T] times of all frames in seconds, increasing.

    Raises:
        InvalidArgumentError: The array is not one-dimensional.
    """
    if times.ndim != 1:
        raise InvalidArgumentError(f"times must be [T] seconds, got an array {list(times.shape)}")
    if len(times) < 2 or times[-1] <= times[0]:
        return Fraction(24)
    relative = times - times[0]
    median = 1.0 / float(np.median(np.diff(relative)))
    best: tuple[float, Fraction] | None = None
    for rate in STANDARD_RATES:
        if abs(median / float(rate) - 1.0) > _MAX_DEVIATION:
            continue
        positions = relative * float(rate)
        off = float(np.abs(positions - np.round(positions)).max())
        if off <= _MAX_FRAME_ERROR and (best is None or off < best[0] - _MIN_IMPROVEMENT):
            best = off, rate
    if best is not None:
        return best[1]
    return Fraction(max(1, round(float((len(times) - 1) / relative[-1]))))


def frame_at(time: float, rate: Fraction) -> int:
    """Return the timeline frame closest to a time in seconds."""
    return round(time * float(rate))


@check_arguments
def timecode(frame: int, rate: float | Fraction, *, drop_frame: bool = False) -> str:
    """Format a frame number as hours, minutes, seconds and frames: ``01:02:03:04``, or drop-frame ``01:02:03;04``.

    Plain (non-drop) time code counts frames at the rounded rate: at 30000/1001, an hour of time code takes 3.6 s longer
    than an hour. Drop-frame time code follows the clock: it skips the *numbers* 00 and 01 (at 59.94: 00 to 03) at the
    start of every minute that is not a multiple of ten. Neither drops any frame of the video. After 24 hours, time code
    restarts at zero.

    >>> timecode(1800, Fraction(30000, 1001)), timecode(1800, Fraction(30000, 1001), drop_frame=True)
    ('00:01:00:00', '00:01:00;02')

    Args:
        frame: Frame number, counting from 0, such as ``shot.start_frame``.
        rate: Frames per second, such as ``shots.detection.frame_rate``; 29.97 stands for 30000/1001.
        drop_frame: Whether to write drop-frame time code; only for 30000/1001 and 60000/1001.

    Raises:
        InvalidArgumentError: The frame number is negative or not a whole number, the rate is not above 0, or drop-frame
            time code does not exist at this rate.
    """
    check_not_negative(frame=frame)
    check_positive(rate=float(rate))
    rate = _find_exact_rate(rate)
    base = max(1, round(rate))
    if drop_frame:
        require_drop_frame(rate)
        dropped = base // 15
        minute = base * 60 - dropped
        tens, rest = divmod(frame, minute * 10 + dropped)
        frame += dropped * 9 * tens
        if rest >= dropped:
            frame += dropped * ((rest - dropped) // minute)
    seconds, frames = divmod(frame, base)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    width = max(2, len(str(base - 1)))
    return f"{hours % 24:02d}:{minutes:02d}:{seconds:02d}{';' if drop_frame else ':'}{frames:0{width}d}"


def _find_exact_rate(rate: float | Fraction) -> Fraction:
    """Find the exact rate that a rounded number stands for."""
    if isinstance(rate, Fraction):
        return rate
    standard = next((each for each in STANDARD_RATES if abs(rate / float(each) - 1.0) < _SAME_RATE), None)
    return standard or Fraction(rate).limit_denominator(1001)


def has_drop_frame(rate: Fraction) -> bool:
    """Whether drop-frame time code exists for this rate."""
    return rate in (Fraction(30000, 1001), Fraction(60000, 1001))


def require_drop_frame(rate: Fraction) -> None:
    """Raise `InvalidArgumentError` unless drop-frame time code exists for this rate."""
    if not has_drop_frame(rate):
        raise InvalidArgumentError(
            f"rate must be 29.97 or 59.94 frames per second for drop-frame time code, got {float(rate):g}; "
            "omit drop-frame"
        )


def smpte_rate(rate: Fraction) -> Fraction:
    """Find the time code rate for a timeline of this rate.

    This is the same rate if the standard (SMPTE ST 12) includes it, else its lowest multiple in the standard, so that
    every frame has its own number, else the next higher rate.

    >>> smpte_rate(Fraction(15)), smpte_rate(Fraction(25)), smpte_rate(Fraction(120))
    (Fraction(30, 1), Fraction(25, 1), Fraction(60, 1))
    """
    multiples = [known for known in _SMPTE_RATES if (known / rate).denominator == 1]
    whole = [known for known in _SMPTE_RATES if known.denominator == 1]
    return min(multiples or [known for known in whole if known >= rate] or whole[-1:])


def count_frames(text: str, rate: Fraction) -> int | None:
    """Parse time code to a frame number, the inverse of `timecode`; None if the text is invalid at this rate."""
    match = _TIME_CODE.fullmatch(text.strip())
    if match is None:
        return None
    hours, minutes, seconds = (int(part) for part in match.group(1, 2, 3))
    frames, base = int(match[5]), max(1, round(rate))
    if hours >= 24 or frames >= base:
        return None
    minute = 60 * hours + minutes
    number = (60 * minute + seconds) * base + frames
    return number - base // 15 * (minute - minute // 10) if is_drop_frame(text) else number


def is_drop_frame(text: str) -> bool:
    """Whether a time code is drop-frame: its frames are not preceded by a colon."""
    match = _TIME_CODE.fullmatch(text.strip())
    return match is not None and match[4] != ":"


def read_time_code(container: InputContainer, video: VideoStream) -> str:
    """Read the time code of the first frame of a video from a time code track (``tmcd``), the MXF or AVI header, or a
    ``timecode`` tag; "" if there is no valid time code."""
    others = [stream for stream in container.streams if stream.type == "data"]
    for tags in (video.metadata, *(stream.metadata for stream in others), container.metadata):
        for name, text in tags.items():
            if name.lower() == "timecode" and (match := _TIME_CODE.fullmatch(text.strip())) is not None:
                return f"{match[1]:0>2}:{match[2]}:{match[3]}{match[4]}{match[5]:0>2}"
    return ""


@dataclass(frozen=True, slots=True)
class SourceClock:
    """Times of a video as counted by editing systems: in timeline frames from the start of the file, or from the time
    code of the first frame.

    Attributes:
        rate: Frames per second of the timeline.
        first: Number of the first frame.
        begin: Number at the start of the file: `first`, or 0 if there is no time code.
        drop_frame: Whether the time code is drop-frame.
    """

    rate: Fraction
    first: int = 0
    begin: int = 0
    drop_frame: bool = False

    @classmethod
    def of(cls, rate: Fraction, *, time_code: str = "", offset: float = 0.0) -> Self:
        """Create the clock of a video.

        Args:
            rate: Frames per second of the timeline.
            time_code: Time code of the first frame; "" to count from the start of the file.
            offset: Seconds from the start of the file to its first frame.
        """
        first = count_frames(time_code, rate) if time_code else None
        if first is None:
            return cls(rate, frame_at(offset, rate))
        return cls(rate, first, first, is_drop_frame(time_code) and has_drop_frame(rate))

    def at(self, rate: Fraction) -> Self:
        """Convert to a timeline with another rate."""
        first, begin = (count * round(rate) // max(1, round(self.rate)) for count in (self.first, self.begin))
        return replace(self, rate=rate, first=first, begin=begin)

    def frame(self, seconds: float) -> int:
        """Return the number of the frame at this time in seconds from the first frame."""
        return self.first + frame_at(seconds, self.rate)

    def code(self, frame: int) -> str:
        """Return the time code of a frame."""
        return timecode(frame, self.rate, drop_frame=self.drop_frame)

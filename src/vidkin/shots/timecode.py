"""Time code as used by editing systems, and its frame rate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import check_not_negative
from vidkin.errors import InvalidArgumentError

STANDARD_RATES = (
    *(Fraction(rate) for rate in (12, 15, 24, 25, 30, 48, 50, 60, 100, 120)),
    *(Fraction(rate * 1000, 1001) for rate in (24, 30, 48, 60, 120)),
)
"""Frame rates known to editing systems, integer rates first."""

# A file with a frame farther than this many frames from those of a rate does not run at that rate.
_OFF = 0.2
# A rate is tried if the median distance of two frames differs from its period by at most this share.
_NEAR = 0.05
# Frames by which a later rate must be closer: 24 fits a whole second as well as 48.
_CLOSER = 1e-6


def timeline_rate(times: NDArray[np.float64]) -> Fraction:
    """The frame rate at which a timeline shows this video.

    It is the standard rate (24, 25, 30000/1001...) whose frames k / rate are closest to all times, where k increases
    by one or, if frames are missing, by more; no time can be off by more than 0.2 frames. A video with another
    constant rate or a variable rate gets its average rate, rounded to a whole number of at least 1: positions are then
    rounded to the frames of that timeline.

    Args:
        times: [T] times of all frames in seconds, increasing.
    """
    if len(times) < 2:
        return Fraction(24)
    relative = times - times[0]
    median = 1.0 / float(np.median(np.diff(relative)))
    best: tuple[float, Fraction] | None = None
    for rate in STANDARD_RATES:
        if abs(median / float(rate) - 1.0) > _NEAR:
            continue
        places = relative * float(rate)
        off = float(np.abs(places - np.round(places)).max())
        if off <= _OFF and (best is None or off < best[0] - _CLOSER):
            best = off, rate
    if best is not None:
        return best[1]
    return Fraction(max(1, round(float((len(times) - 1) / relative[-1]))))


def frame_at(time: float, rate: Fraction) -> int:
    """The frame of a timeline nearest to a time in seconds."""
    return round(time * float(rate))


def timecode(frame: int, rate: Fraction, *, drop_frame: bool = False) -> str:
    """Hours, minutes, seconds and frames: ``01:02:03:04``, with drop-frame ``01:02:03;04``.

    Plain (non-drop) time code counts frames, with the rounded rate as the number per second: at 30000/1001 an hour of
    time code takes 3.6 s longer than an hour. Drop-frame time code follows the clock instead: it skips the *numbers*
    00 and 01 (at 59.94: 00 to 03) at the start of every minute that is not a multiple of ten. Neither drops a frame of
    the video. After 24 hours it starts again at zero.

    >>> timecode(1800, Fraction(30000, 1001)), timecode(1800, Fraction(30000, 1001), drop_frame=True)
    ('00:01:00:00', '00:01:00;02')

    Args:
        frame: Number of the frame, counting from 0.
        rate: Frames per second.
        drop_frame: Whether to follow the clock; only for 30000/1001 and 60000/1001.

    Raises:
        InvalidArgumentError: The frame is negative, or drop-frame time code does not exist at this rate.
    """
    check_not_negative(frame=frame)
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


def require_drop_frame(rate: Fraction) -> None:
    """Raise InvalidArgumentError unless drop-frame time code exists for this rate."""
    if rate not in (Fraction(30000, 1001), Fraction(60000, 1001)):
        raise InvalidArgumentError(
            f"rate must be 29.97 or 59.94 frames a second for drop-frame time code, got {float(rate):g}; "
            "omit drop-frame"
        )

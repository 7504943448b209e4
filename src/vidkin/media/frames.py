"""Decoded frames, square images, and times in a video: seconds, frame numbers, ticks, and their text formats."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.values import check_not_negative, check_positive
from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from PIL import Image

LUMINANCE = (0.299, 0.587, 0.114)

"""Weights of red, green and blue in the luminance (ITU-R BT.601), as used by codecs and image tools."""

SAME_TIME = 1e-6
"""Times within this many seconds count as equal, because sums of thirds are not exact.

Only the functions below use it: :func:`is_before`, :func:`is_same_time`, :func:`earliest`, :func:`latest`,
:func:`first_at` and :func:`shown_at`.
"""

DEFAULT_TIME_BASE = Fraction(1, 90_000)
"""Seconds per tick in files that do not state it; the value used in MPEG streams."""

# A frame number, as in 250f; numbers beyond the length of any video are rejected before any computation.
_FRAME_NUMBER = re.compile(r"(\d{1,12}) ?f(?:rames?)?", re.IGNORECASE)
_SECONDS = re.compile(r"\+?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?")


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of one video, in order of time.

    Attributes:
        images: [T, H, W, 3] uint8 RGB, upright and with square pixels.
        timestamps: [T] float64, presentation time of each frame in seconds, strictly increasing. Times count from the
            start of the file's video, so the first frame is at 0.0 or later.
    """

    images: NDArray[np.uint8]
    timestamps: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, given in (("images", self.images), ("timestamps", self.timestamps)):
            if not isinstance(given, np.ndarray):
                raise InvalidArgumentError(f"{name} must be an array, got {type(given).__name__}")
        if self.images.ndim != 4 or self.images.shape[-1] != 3 or self.images.dtype != np.uint8:
            raise InvalidArgumentError(
                f"images must be [T, H, W, 3] uint8, got {list(self.images.shape)} {self.images.dtype}"
            )
        if self.timestamps.shape != self.images.shape[:1]:
            raise InvalidArgumentError(
                f"timestamps must be one per image, [{len(self.images)}], got {list(self.timestamps.shape)}"
            )
        if len(self.timestamps) > 1 and not bool(np.all(np.diff(self.timestamps) > 0)):
            raise InvalidArgumentError("timestamps must be strictly increasing")

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        span = f"{self.timestamps[0]:.3f}..{self.timestamps[-1]:.3f} s" if len(self) else "empty"
        return f"Frames(images={list(self.images.shape)}, timestamps={span})"

    def __getitem__(self, item: Any) -> Frames:
        """Select frames by a slice, or by an array of increasing indices."""
        return Frames(self.images[item], self.timestamps[item])


def join_frames(parts: Sequence[Frames]) -> Frames:
    """Join one or more consecutive batches of a video; a single batch is not copied."""
    if len(parts) == 1:
        return parts[0]
    return Frames(np.concatenate([part.images for part in parts]), np.concatenate([part.timestamps for part in parts]))


class EvenFrames:
    """Keeps an evenly spaced subset of a stream of frames of unknown length.

    Args:
        limit: The subset always has fewer frames than this, and at least half as many once this many were added.

    Attributes:
        kept: The subset, as `Frames` with one frame each.
    """

    def __init__(self, limit: int) -> None:
        self.kept: list[Frames] = []
        self._limit, self._stride, self._passed = limit, 1, 0

    def add(self, frames: Frames) -> None:
        """Add frames, keeping every n-th; whenever the limit is reached, drop every other kept frame and double n."""
        for image, time in zip(frames.images, frames.timestamps, strict=True):
            if self._passed % self._stride == 0:
                self.kept.append(Frames(image[None].copy(), np.array([time])))
            if len(self.kept) == self._limit:
                self.kept, self._stride = self.kept[::2], 2 * self._stride
            self._passed += 1


Fit = Literal["letterbox", "crop", "stretch"]


def fit_to_square(image: Image.Image | NDArray[np.uint8], size: int, fit: Fit) -> NDArray[np.uint8]:
    """Fit an RGB image into a square [size, size, 3] by adding black bars, cropping the center or stretching.

    Training and search both use this function, so that they see the same images.

    Args:
        image: RGB image of any shape; an array that already has the target size is returned unchanged.
        size: Side of the square in pixels.
        fit: ``letterbox``, ``crop`` or ``stretch``.
    """
    from PIL import Image

    if not isinstance(image, Image.Image):
        if image.shape[:2] == (size, size):
            return image
        image = Image.fromarray(np.ascontiguousarray(image))
    width, height = image.size
    if fit == "crop" and width != height:
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        image = image.crop((left, top, left + side, top + side))
    inner = (size, size)
    if fit == "letterbox":
        scale = size / max(width, height)
        inner = (max(1, round(width * scale)), max(1, round(height * scale)))
    if image.size != inner:
        image = image.resize(inner, Image.Resampling.BILINEAR)
    if inner != (size, size):
        square = Image.new("RGB", (size, size))
        square.paste(image, ((size - inner[0]) // 2, (size - inner[1]) // 2))
        image = square
    return np.asarray(image)


_Seconds: TypeAlias = float | NDArray[np.floating]
_Times = TypeVar("_Times", float, NDArray[np.floating])


@overload
def is_before(time: float, other: float) -> bool: ...


@overload
def is_before(time: NDArray[np.floating], other: float) -> NDArray[np.bool_]: ...


def is_before(time: _Seconds, other: float) -> bool | NDArray[np.bool_]:
    """Whether a time in seconds is earlier than another by more than a rounding error."""
    return time < earliest(other)


@overload
def is_same_time(time: float, other: float) -> bool: ...


@overload
def is_same_time(time: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]: ...


def is_same_time(time: _Seconds, other: _Seconds) -> bool | NDArray[np.bool_]:
    """Whether two times in seconds are equal up to rounding errors."""
    difference: Any = time - other
    is_same: bool | NDArray[np.bool_] = abs(difference) <= SAME_TIME
    return is_same


def earliest(time: _Times) -> _Times:
    """Return the earliest time in seconds that counts as equal to this one."""
    return time - SAME_TIME


def latest(time: _Times) -> _Times:
    """Return the latest time in seconds that counts as equal to this one."""
    return time + SAME_TIME


@overload
def first_at(times: NDArray[np.floating], time: float) -> int: ...


@overload
def first_at(times: NDArray[np.floating], time: NDArray[np.floating]) -> NDArray[np.int64]: ...


def first_at(times: NDArray[np.floating], time: _Seconds) -> int | NDArray[np.int64]:
    """Return the index of the first frame at or after a time; the number of frames if there is none.

    Args:
        times: [T] times of frames in seconds, increasing.
        time: Time in seconds; for an array of times, the result is an array.
    """
    return np.searchsorted(times, np.asarray(time) - SAME_TIME)


@overload
def shown_at(times: NDArray[np.floating], time: float) -> int: ...


@overload
def shown_at(times: NDArray[np.floating], time: NDArray[np.floating]) -> NDArray[np.int64]: ...


def shown_at(times: NDArray[np.floating], time: _Seconds) -> int | NDArray[np.int64]:
    """Return the index of the frame on screen at a time; -1 before the first frame.

    Args:
        times: [T] times of frames in seconds, increasing.
        time: Time in seconds; for an array of times, the result is an array.
    """
    return np.searchsorted(times, np.asarray(time) + SAME_TIME, side="right") - 1


def is_frame_number(text: str) -> bool:
    """Whether a time is given as a frame number (``250f``), whose meaning depends on the frame rate of the video."""
    return _FRAME_NUMBER.fullmatch(text.strip()) is not None


@dataclass(frozen=True, slots=True)
class Ticks:
    """Conversion between timestamps of a video, in whole ticks, and seconds from its first frame.

    Every frame is converted, so this uses fast floating-point arithmetic; `Time.of_ticks` is exact.

    >>> ticks = Ticks(1 / 90_000, first=3_000)
    >>> ticks.seconds(93_000), ticks.latest(1.0)
    (1.0, 93000)

    Attributes:
        length: Seconds per tick.
        first: Timestamp of the first frame.
    """

    length: float
    first: int = 0

    def seconds(self, timestamp: int) -> float:
        """Convert a timestamp to seconds from the first frame; the result is negative before that frame."""
        return (timestamp - self.first) * self.length

    def latest(self, seconds: float) -> int:
        """Return the latest timestamp that is not after a time, up to rounding errors."""
        return self.first + math.floor(latest(seconds) / self.length)


@check_constructor
@dataclass(frozen=True, slots=True, order=True)
class Time:
    """Exact time in a video; thirds of a second and ticks of a file have no rounding error.

    >>> Time.parse("1:30.5").seconds, float(Time.of_frame(45, 30)), Time.parse("250f", rate=25).frame(50)
    (Fraction(181, 2), 1.5, 500)

    Attributes:
        seconds: Seconds from the first frame, at least 0.
    """

    seconds: Fraction

    def __post_init__(self) -> None:
        check_not_negative(time=float(self.seconds))

    @classmethod
    def of_frame(cls, number: int, rate: float | Fraction) -> Time:
        """Return the time of a frame at a constant rate.

        Args:
            number: Frame number, counting from 0.
            rate: Frames per second; rounded rates stand for the exact ones, for example 29.97 for 30000/1001.

        Raises:
            InvalidArgumentError: The number is negative, or the rate is not above 0.
        """
        return cls(number / _to_exact_rate(rate))

    @classmethod
    def of_ticks(cls, ticks: int, time_base: Fraction) -> Time:
        """Return the time of a stored timestamp: a whole number of ticks of ``time_base`` seconds."""
        return cls(ticks * time_base)

    @classmethod
    def parse(cls, text: str | float, *, rate: float | Fraction | None = None) -> Time:
        """Parse user input: ``90.5``, ``1:30.5``, ``0:01:30.500`` or, if the frame rate is known, ``2250f``.

        Args:
            text: Seconds, M:SS or H:MM:SS, with or without decimals, or a frame number followed by ``f``.
            rate: Frames per second of the video; required for frame numbers.

        Raises:
            InvalidArgumentError: The text is not a valid time.
        """
        written = str(text).strip()
        frame = _FRAME_NUMBER.fullmatch(written)
        if frame and rate is not None:
            return cls.of_frame(int(frame[1]), rate)
        *larger, last = written.split(":")
        is_valid = len(larger) <= 2 and all(re.fullmatch(r"\d{1,9}", part) for part in larger)
        parts = [Fraction(part) for part in larger] if is_valid else []
        if is_valid and _SECONDS.fullmatch(last):
            parts.append(Fraction(last))
            if all(part < 60 for part in parts[1:]):
                return cls(sum((part * 60**power for power, part in enumerate(reversed(parts))), Fraction()))
        frames = "" if rate is None else ", or a frame number (250f)"
        raise InvalidArgumentError(
            f"invalid time {text!r}; use seconds (90.5), M:SS (1:30.5) or H:MM:SS (1:02:03){frames}"
        )

    def frame(self, rate: float | Fraction) -> int:
        """Return the number of the frame closest to this time at a constant rate."""
        return round(self.seconds * _to_exact_rate(rate))

    def __float__(self) -> float:
        """Convert to seconds, so that every function that takes seconds accepts a `Time`."""
        return float(self.seconds)

    def __str__(self) -> str:
        """Format as ``HH:MM:SS.mmm``, rounded to milliseconds: ``00:01:30.500``."""
        milliseconds = math.floor(self.seconds * 1000 + Fraction(1, 2))
        minutes, rest = divmod(milliseconds, 60_000)
        hours, minutes = divmod(minutes, 60)
        return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}"


def _to_exact_rate(rate: float | Fraction) -> Fraction:
    """Convert a rate to a fraction; 29.97 becomes 30000/1001, which is what it means in files."""
    check_positive(rate=float(rate))
    if isinstance(rate, float):
        for exact in (Fraction(round(rate)), Fraction(round(rate * 1.001) * 1000, 1001)):
            if exact and abs(exact / Fraction(rate) - 1) < 1e-5:
                return exact
    return Fraction(rate)

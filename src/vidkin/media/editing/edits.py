"""Edits that make copies of a video as people make them, with the exact times of what was copied.

Benchmarks, the demo and tests use them: the segments that `apply_edit` returns are ground truth by construction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import vidkin.media.editing.pictures as pictures
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.decode import iter_frames
from vidkin.media.editing.pictures import EditSetting, Transform
from vidkin.media.encode import write_video
from vidkin.media.probe import probe

__all__ = ["EDITS", "Edit", "EditPlan", "EditResult", "EditSetting", "EditedSegment", "TimeMap", "apply_edit"]

Image = NDArray[np.uint8]

# Copies have at most this many frames a second.
HIGHEST_RATE = 30.0


@dataclass(frozen=True, slots=True)
class TimeMap:
    """Where a moment of the source is in the copy: edited = edited_start + (source - source_start) / speed.

    Attributes:
        source_start: Seconds in the source.
        edited_start: Seconds in the copy at which that moment is shown.
        speed: Seconds of the source that pass in a second of the copy.
    """

    source_start: float
    edited_start: float
    speed: float

    def to_edited(self, time: float) -> float:
        """Seconds in the copy of a moment of the source."""
        return self.edited_start + (time - self.source_start) / self.speed

    def to_source(self, time: float) -> float:
        """Seconds in the source of a moment of the copy."""
        return self.source_start + (time - self.edited_start) * self.speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A way to change a video.

    Attributes:
        name: What it is called in `EDITS`.
        description: One line for people.
        transform: From frames [H, W, 3] and an `EditSetting` to frames; pure, one frame at a time.
        speed: Seconds of the source that pass in a second of the copy.
        mirrored: Whether left and right change places.
        crf: Constant quality at which the copy is encoded, from 0 (best) to 51.
        excerpt: Only so many seconds of the source are taken, from a random place; None takes all.
        surround: Seconds of unrelated footage around it, split at a random place.
        needs_filler: Whether unrelated footage must be given.
    """

    name: str
    description: str
    transform: Transform
    speed: float = 1.0
    mirrored: bool = False
    crf: int = 23
    excerpt: float | None = None
    surround: float = 0.0
    needs_filler: bool = False

    def plan(self, rate: float, start: float, end: float, seed: int) -> EditPlan:
        """Which frames are taken and where they go, for a source between start and end at this frame rate."""
        random = np.random.default_rng([seed, 1])
        if self.excerpt is not None and end - start > self.excerpt:
            start = float(random.uniform(start, end - self.excerpt))
            end = start + self.excerpt
        count = max(1, round((end - start) / self.speed * rate))
        around = round(self.surround * rate)
        # Some footage on either side, at least a tenth of it.
        lead = round(float(random.uniform(0.1, 0.9)) * around)
        time_map = TimeMap(source_start=start, edited_start=lead / rate, speed=self.speed)
        return EditPlan(time_map=time_map, rate=rate, count=count, lead=lead, trail=around - lead)


@dataclass(frozen=True, slots=True)
class EditPlan:
    """What `Edit.plan` decided: the time map, and numbers of frames of the source, before and after it."""

    time_map: TimeMap
    rate: float
    count: int
    lead: int
    trail: int

    @property
    def segment(self) -> EditedSegment:
        """The times that the source and the copy share."""
        start, length = self.time_map.edited_start, self.count / self.rate
        return EditedSegment(
            self.time_map.source_start, self.time_map.to_source(start + length), start, start + length
        )


class EditedSegment(NamedTuple):
    """A stretch of the source and the stretch of the copy that shows it, in seconds."""

    source_start: float
    source_end: float
    edited_start: float
    edited_end: float


@dataclass(frozen=True, slots=True)
class EditResult:
    """A copy that was made.

    Attributes:
        path: The file.
        segments: What of the source is where in it.
        mirrored: Whether left and right changed places.
        time_map: The same as a function of time.
    """

    path: str
    segments: tuple[EditedSegment, ...]
    mirrored: bool
    time_map: TimeMap


def apply_edit(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    name: str,
    *,
    seed: int = 0,
    start: float | None = None,
    end: float | None = None,
    filler: str | os.PathLike[str] | None = None,
    short_side: int | None = None,
    threads: int = 0,
) -> EditResult:
    """Make an edited copy of a video; frame by frame, so its length does not matter for the memory.

    The copy has the source's average frame rate, at most 30 a second, evenly spaced. Sound is not kept.

    Args:
        source: The video.
        target: Where to write the copy, as ``"copy.mp4"``.
        name: One of `EDITS`.
        seed: Places, texts and noise follow from it.
        start: Take the source from here on, in seconds; None is its start.
        end: Take the source up to here, in seconds; None is its end.
        filler: Unrelated footage for the edits that need it (``Edit.needs_filler``); repeated if it is too short.
        short_side: Scale the source down to this many pixels at the shorter side first; None keeps its size.
        threads: Threads of decoder and encoder, 0 is as they like.

    Returns:
        The times that source and copy share, exact to a frame.

    Raises:
        InvalidArgumentError: There is no such edit, no filler where one is needed, or the range is empty.
        MediaError: A video cannot be read, or the copy not written.
    """
    edit = EDITS.get(name)
    if edit is None:
        raise InvalidArgumentError(f"there is no edit {name!r}; there are {', '.join(EDITS)}")
    if edit.needs_filler and filler is None:
        raise InvalidArgumentError(f"the edit {name!r} needs unrelated footage: give a video as filler")
    info = probe(source)
    first, last = start or 0.0, min(info.duration, info.duration if end is None else end)
    if first < 0 or (end is not None and end <= first):
        raise InvalidArgumentError(f"start and end must be 0 <= start < end, given are {start} and {end}")
    if first >= info.duration:
        raise MediaError(source, f"start {first:.1f} s is beyond the end ({info.duration:.1f} s)")
    rate = Fraction(min(info.frame_rate, HIGHEST_RATE)).limit_denominator(1001)
    plan = edit.plan(float(rate), first, last, seed)
    setting = EditSetting(
        rate=float(rate),
        count=plan.count,
        seed=seed,
        lead=plan.lead,
        trail=plan.trail,
        filler=None if filler is None else partial(_footage, filler, float(rate), threads),
    )
    step = edit.speed / float(rate)
    frames = _steady(source, plan.time_map.source_start, step, plan.count, short_side, threads)
    write_video(target, edit.transform(frames, setting), rate=rate, crf=edit.crf, threads=threads)
    return EditResult(
        path=os.fspath(target), segments=(plan.segment,), mirrored=edit.mirrored, time_map=plan.time_map
    )


def _steady(
    path: str | os.PathLike[str], start: float, step: float, count: int, short_side: int | None, threads: int
) -> Iterator[Image]:
    """Exactly ``count`` frames: those on screen at start + k step seconds, repeated where none is new."""
    index = 0
    shown: Image | None = None
    end = start + (count - 0.5) * step
    for piece in iter_frames(
        path, rate=1 / step, start=start, end=end, short_side=short_side, batch=8, threads=threads
    ):
        for image, time in zip(piece.images, piece.timestamps, strict=True):
            while shown is not None and start + index * step < time - 1e-6:
                yield shown
                index += 1
            shown = image
    while shown is not None and index < count:
        yield shown
        index += 1


def _footage(
    path: str | os.PathLike[str], rate: float, threads: int, width: int, height: int
) -> Iterator[Image]:
    """Frames of a video at this rate, filling this size, from the start again when it ends."""
    count = max(1, round(probe(path).duration * rate))
    while True:
        for image in _steady(path, 0.0, 1 / rate, count, None, threads):
            yield pictures.covering(image, width, height)


def _edit(name: str, description: str, transform: Transform, **more: object) -> Edit:
    return Edit(name=name, description=description, transform=transform, **more)  # type: ignore[arg-type]


EDITS: dict[str, Edit] = {
    edit.name: edit
    for edit in (
        _edit("reencode", "encoded anew at a very low bit rate", pictures.unchanged, crf=39),
        _edit("resize", "360 pixels at the shorter side, or half the size", pictures.each(pictures.smaller)),
        _edit("crop", "70 % of the area, off the centre", pictures.cropped),
        _edit(
            "letterbox", "black bars above and below", pictures.each(partial(pictures.barred, across=True))
        ),
        _edit(
            "pillarbox", "black bars left and right", pictures.each(partial(pictures.barred, across=False))
        ),
        _edit("logo", "a large opaque logo and text", pictures.branded),
        _edit("caption", "two lines of text on a band", pictures.captioned),
        _edit("grey", "without colour", pictures.each(pictures.grey)),
        _edit("sepia", "tinted brown", pictures.each(pictures.sepia)),
        _edit("brighter", "brighter by a fifth of the range", pictures.values(lambda v: v + 50)),
        _edit("darker", "at 60 % of the brightness", pictures.values(lambda v: 0.6 * v)),
        _edit("contrast", "contrast raised by 60 %", pictures.values(lambda v: 1.6 * (v - 128) + 128)),
        _edit("blur", "out of focus", pictures.each(pictures.blurred)),
        _edit("noise", "with strong noise", pictures.noisy),
        _edit("mirror", "left and right changed", pictures.each(pictures.mirrored), mirrored=True),
        _edit("faster", "1.25 times as fast", pictures.unchanged, speed=1.25),
        _edit("slower", "at 0.8 of the speed", pictures.unchanged, speed=0.8),
        _edit("rotate5", "turned by 5 degrees", pictures.rotated),
        _edit("fade", "faded in and out", pictures.faded),
        _edit("aspect", "squeezed to 4:3", pictures.each(pictures.squeezed)),
        _edit(
            "picture_in_picture",
            "small in a corner of unrelated footage",
            pictures.picture_in_picture,
            needs_filler=True,
        ),
        _edit(
            "excerpt",
            "5 seconds inside 20 seconds of unrelated footage",
            pictures.surrounded,
            excerpt=5.0,
            surround=20.0,
            needs_filler=True,
        ),
    )
}

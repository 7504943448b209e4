"""Edits, their plans for a video, and the ground truth about the resulting copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from vidkin.media.editing.layouts import WHOLE, Box, BoxPair, whole_boxes
from vidkin.media.editing.picture_edits import Transform

__all__ = ["Edit", "EditFamily", "EditPlan", "EditResult", "EditedSegment", "TimeMap"]

# What an edit changes: the values of the pixels; which part of the picture is shown, or where; when it is shown; or
# the source is shown small inside other footage.
EditFamily = Literal["pixels", "geometry", "time", "inset"]


@dataclass(frozen=True, slots=True)
class TimeMap:
    """Where a moment of the source is in the copy: edited = edited_start + (source - source_start) / speed.

    Attributes:
        source_start: Time in the source in seconds.
        edited_start: Time in the copy, in seconds, at which that moment is shown.
        speed: Seconds of the source per second of the copy.
    """

    source_start: float
    edited_start: float
    speed: float

    def to_edited(self, time: float) -> float:
        """Time in the copy of a moment in the source, in seconds."""
        return self.edited_start + (time - self.source_start) / self.speed

    def to_source(self, time: float) -> float:
        """Time in the source of a moment in the copy, in seconds."""
        return self.source_start + (time - self.edited_start) * self.speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A way to change a video.

    Attributes:
        name: Name in `EDITS`.
        description: One-line description for users.
        family: What the edit changes.
        transform: Pure function from frames [H, W, 3] and an `EditSetting` to frames, one at a time.
        boxes: Function that returns which box of the source's picture is shown in which box of the copy's.
        speed: Seconds of the source per second of the copy.
        mirrored: Whether left and right are exchanged.
        crf: Constant quality at which the copy is encoded, from 0 (best) to 51.
        excerpt: Seconds taken from a random place of the source; None takes the whole source.
        surround: Seconds of unrelated footage around the source, split at random between before and after.
        reordered: Whether the source is cut into three or four pieces that are shown in another order.
        needs_filler: Whether the edit needs unrelated footage.
    """

    name: str
    description: str
    family: EditFamily
    transform: Transform
    boxes: BoxPair = whole_boxes
    speed: float = 1.0
    mirrored: bool = False
    crf: int = 23
    excerpt: float | None = None
    surround: float = 0.0
    reordered: bool = False
    needs_filler: bool = False

    def plan(self, rate: float, start: float, end: float, seed: int) -> EditPlan:
        """Plan which frames are taken and where they go, for a source between start and end at this frame rate."""
        random = np.random.default_rng([seed, 1])
        if self.excerpt is not None and end - start > self.excerpt:
            start = float(random.uniform(start, end - self.excerpt))
            end = start + self.excerpt
        count = max(1, round((end - start) / self.speed * rate))
        around = round(self.surround * rate)
        # Some footage on either side, at least a tenth of it.
        lead = round(float(random.uniform(0.1, 0.9)) * around)
        pieces = _other_order(count, random) if self.reordered else [(0, count)]
        stretches = []
        shown = lead
        for first, length in pieces:
            time_map = TimeMap(start + first * self.speed / rate, shown / rate, self.speed)
            stretches.append(Stretch(time_map, length))
            shown += length
        return EditPlan(stretches=tuple(stretches), rate=rate, lead=lead, trail=around - lead)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive frames of the source in the copy: where they go, and how many there are."""

    time_map: TimeMap
    count: int


@dataclass(frozen=True, slots=True)
class EditPlan:
    """The result of `Edit.plan`: stretches in the order of the copy, and frames of filler before and after them."""

    stretches: tuple[Stretch, ...]
    rate: float
    lead: int
    trail: int

    @property
    def count(self) -> int:
        """Number of source frames shown."""
        return sum(stretch.count for stretch in self.stretches)

    def segments(self, source_box: Box = WHOLE, edited_box: Box = WHOLE) -> tuple[EditedSegment, ...]:
        """The times shared by the source and the copy, in the order of the copy, with these boxes."""
        result = []
        for stretch in self.stretches:
            time_map = stretch.time_map
            end = time_map.edited_start + stretch.count / self.rate
            times = (time_map.source_start, time_map.to_source(end), time_map.edited_start, end)
            result.append(EditedSegment(*times, source_box, edited_box))
        return tuple(result)


class EditedSegment(NamedTuple):
    """A stretch of the source and the stretch of the copy that shows it, in seconds, with the parts of the pictures.

    The boxes are (left, top, right, bottom) in shares of the picture: the part of the source in `source_box` is shown
    in `edited_box` of the copy. For a moving window they are the mean.
    """

    source_start: float
    source_end: float
    edited_start: float
    edited_end: float
    source_box: Box = WHOLE
    edited_box: Box = WHOLE


@dataclass(frozen=True, slots=True)
class EditResult:
    """A finished copy.

    Attributes:
        path: File of the copy.
        segments: Which part of the source is where in the copy, in the order of the copy.
        mirrored: Whether left and right are exchanged.
        time_map: The times of the first segment as a function.
    """

    path: str
    segments: tuple[EditedSegment, ...]
    mirrored: bool
    time_map: TimeMap


def _other_order(count: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """(first frame, number of frames) of three or four pieces, none of which follows the piece that it followed."""
    number = min(count, int(random.integers(3, 5)))
    # Each cut is up to a fifth of a piece away from an even division.
    shifts = random.uniform(-0.2, 0.2, number - 1)
    cuts = [0, *(round(count * (k + 1 + shift) / number) for k, shift in enumerate(shifts)), count]
    order = list(range(number))
    while any(after == before + 1 for before, after in zip([-1, *order], order, strict=False)) and number > 1:
        order = [int(piece) for piece in random.permutation(number)]
    return [(cuts[piece], cuts[piece + 1] - cuts[piece]) for piece in order]

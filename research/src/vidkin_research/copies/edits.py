"""Video edits, how they apply to a given video, and the ground truth of the resulting copies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from vidkin.media.picture_edits import PICTURE_EDITS, add_caption, edit_each, keep_frames, mirror, to_gray
from vidkin_research.copies.filming import film_screen, screen_boxes
from vidkin_research.copies.hard_edits import (
    add_sticker,
    black,
    blend,
    cover,
    crop_half,
    distort_colors,
    film_at_night,
    rotate_quarters,
    shift_out,
    side_boxes,
    tilt,
    view_from_side,
)
from vidkin_research.copies.layouts import (
    WHOLE,
    Arrangement,
    Background,
    Box,
    BoxPair,
    arrange_frames,
    barred_boxes,
    blurred_copy,
    boxes_of,
    corner_inset,
    inset,
    off_center,
    one_color,
    other_footage,
    other_parts,
    part_of,
    rotated_boxes,
    square_borders,
    turned_borders,
    turned_center,
    turned_pan,
    whole_boxes,
)
from vidkin_research.copies.transforms import (
    Transform,
    by_seed,
    combine,
    fade,
    repeat_frames,
    surround,
)

# What an edit changes: pixel values; which part of the frame is visible, or where; timing; or the source becomes an
# inset in other footage. The rest hide most of the source: rotated by 90, 180 or 270 degrees, seen from the side or
# tilted, cropped to a quarter of the area, covered by or blended with other footage, or almost without light.
EditFamily = Literal[
    "pixels", "geometry", "time", "inset", "turned", "perspective", "halves", "covered", "blended", "low information"
]


@dataclass(frozen=True, slots=True)
class TimeMap:
    """Maps times of the source to the copy: edited = edited_start + (source - source_start) / speed.

    Attributes:
        source_start: Time in the source, in seconds.
        edited_start: Time in the copy, in seconds, at which the copy shows `source_start`.
        speed: Seconds of the source per second of the copy.
    """

    source_start: float
    edited_start: float
    speed: float

    def to_edited(self, time: float) -> float:
        """Convert a time in the source to a time in the copy, in seconds."""
        return self.edited_start + (time - self.source_start) / self.speed

    def to_source(self, time: float) -> float:
        """Convert a time in the copy to a time in the source, in seconds."""
        return self.source_start + (time - self.edited_start) * self.speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A way to change a video.

    Attributes:
        name: Name in `EDITS`.
        description: One-line description for users.
        family: What the edit changes.
        transform: Pure function that maps an iterator of frames [H, W, 3] and an `EditSetting` to edited frames.
        boxes: Function that returns the visible box in the source frame and its box in the copy's frame.
        speed: Seconds of the source per second of the copy.
        mirrored: Whether the copy is mirrored horizontally.
        turned: Clockwise rotation of the frame in degrees.
        crf: Constant rate factor of the encoder, from 0 (best) to 51.
        excerpt: Length in seconds of an excerpt from a random position in the source; None uses the whole source.
        surround: Seconds of unrelated footage around the source, split at random between before and after.
        reordered: Whether the source is cut into three or four pieces that are shown in a different order.
        needs_filler: Whether the edit needs unrelated footage.
    """

    name: str
    description: str
    family: EditFamily
    transform: Transform
    boxes: BoxPair = whole_boxes
    speed: float = 1.0
    mirrored: bool = False
    turned: int = 0
    crf: int = 23
    excerpt: float | None = None
    surround: float = 0.0
    reordered: bool = False
    needs_filler: bool = False

    def plan(self, rate: float, start: float, end: float, seed: int) -> EditPlan:
        """Plan the frames of a copy of the source from ``start`` to ``end`` seconds, at this frame rate."""
        random = np.random.default_rng([seed, 1])
        if self.excerpt is not None and end - start > self.excerpt:
            start = float(random.uniform(start, end - self.excerpt))
            end = start + self.excerpt
        count = max(1, round((end - start) / self.speed * rate))
        around = round(self.surround * rate)
        # Each side gets at least a tenth of the unrelated footage.
        lead = round(float(random.uniform(0.1, 0.9)) * around)
        pieces = _reorder_pieces(count, random) if self.reordered else [(0, count)]
        stretches = []
        shown = lead
        for first, length in pieces:
            time_map = TimeMap(start + first * self.speed / rate, shown / rate, self.speed)
            stretches.append(Stretch(time_map, length))
            shown += length
        return EditPlan(stretches=tuple(stretches), rate=rate, lead=lead, trail=around - lead)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A run of consecutive source frames in the copy: its times and number of frames."""

    time_map: TimeMap
    count: int


@dataclass(frozen=True, slots=True)
class EditPlan:
    """Result of `Edit.plan`: the segments in the order of the copy, and the filler frames before and after them."""

    stretches: tuple[Stretch, ...]
    rate: float
    lead: int
    trail: int

    @property
    def count(self) -> int:
        """Number of source frames shown."""
        return sum(stretch.count for stretch in self.stretches)

    def segments(self, source_box: Box = WHOLE, edited_box: Box = WHOLE) -> tuple[EditedSegment, ...]:
        """Return the segments that source and copy share, in the order of the copy, with these boxes."""
        result = []
        for stretch in self.stretches:
            time_map = stretch.time_map
            end = time_map.edited_start + stretch.count / self.rate
            times = (time_map.source_start, time_map.to_source(end), time_map.edited_start, end)
            result.append(EditedSegment(*times, source_box, edited_box))
        return tuple(result)


class EditedSegment(NamedTuple):
    """A segment of the source and the segment of the copy that shows it, in seconds, each with its box.

    Boxes are (left, top, right, bottom) as fractions of the frame size: what `source_box` shows in the source is in
    `edited_box` in the copy. For a moving window, both are means over time.
    """

    source_start: float
    source_end: float
    edited_start: float
    edited_end: float
    source_box: Box = WHOLE
    edited_box: Box = WHOLE


def _reorder_pieces(count: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """Return (first frame, number of frames) of three or four pieces, in an order that separates all neighbors."""
    number = min(count, int(random.integers(3, 5)))
    # Each cut deviates from an even split by up to a fifth of a piece.
    shifts = random.uniform(-0.2, 0.2, number - 1)
    cuts = [0, *(round(count * (k + 1 + shift) / number) for k, shift in enumerate(shifts)), count]
    order = list(range(number))
    while any(after == before + 1 for before, after in zip([-1, *order], order, strict=False)) and number > 1:
        order = [int(piece) for piece in random.permutation(number)]
    return [(cuts[piece], cuts[piece + 1] - cuts[piece]) for piece in order]


_SAME = by_seed(keep_frames)


def _edit(family: EditFamily, name: str, description: str, transform: Transform, **more: object) -> Edit:
    return Edit(name=name, description=description, family=family, transform=transform, **more)  # type: ignore[arg-type]


def _arrange(
    family: EditFamily,
    name: str,
    description: str,
    arrange: Arrangement,
    background: Background | None = None,
    *,
    before: Transform = _SAME,
    after: Transform = _SAME,
    **more: object,
) -> Edit:
    """Create an edit from an arrangement, with optional transforms before and after it."""
    filled = background in (other_footage, other_parts)
    transform = combine(before, arrange_frames(arrange, background), after)
    boxes = boxes_of(arrange)
    return _edit(family, name, description, transform, boxes=boxes, needs_filler=filled, **more)


def _plain(family: EditFamily, name: str, description: str, **more: object) -> Edit:
    """Create an edit of single frames from vidkin's image edit with the same name."""
    return _edit(family, name, description, by_seed(PICTURE_EDITS[name]), **more)


_geometry = partial(_edit, "geometry")


_time = partial(_edit, "time")


_placed = partial(_arrange, "geometry")


_split = partial(_placed, background=other_parts)


EDITS: dict[str, Edit] = {
    edit.name: edit
    for edit in (
        _plain("pixels", "reencode", "re-encoded at a very low bit rate", crf=39),
        _plain("pixels", "resize", "shorter side of 360 pixels, or half the size"),
        _placed("crop", "cropped to 70 % of the area, off center", partial(off_center, share=math.sqrt(0.7))),
        _plain(
            "geometry",
            "letterbox",
            "black bars at the top and bottom",
            boxes=partial(barred_boxes, across=True),
        ),
        _plain(
            "geometry",
            "pillarbox",
            "black bars at the left and right",
            boxes=partial(barred_boxes, across=False),
        ),
        _plain("pixels", "logo", "a large opaque logo and text"),
        _plain("pixels", "caption", "two lines of text on a band"),
        _plain("pixels", "grey", "grayscale"),
        _plain("pixels", "sepia", "sepia tone"),
        _plain("pixels", "brighter", "brightened by a fifth of the range"),
        _plain("pixels", "darker", "60 % of the brightness"),
        _plain("pixels", "contrast", "contrast raised by 60 %"),
        _plain("pixels", "blur", "out of focus"),
        _plain("pixels", "noise", "strong noise"),
        _plain("geometry", "mirror", "mirrored horizontally", mirrored=True),
        _time("faster", "played at 1.25x", _SAME, speed=1.25),
        _time("slower", "played at 0.8x", _SAME, speed=0.8),
        _plain("geometry", "rotate5", "rotated by 5 degrees", boxes=rotated_boxes),
        _edit("pixels", "fade", "fade-in and fade-out", fade),
        _plain("geometry", "aspect", "squeezed to 4:3"),
        _arrange(
            "inset",
            "picture_in_picture",
            "small inset in a corner of unrelated footage",
            corner_inset,
            other_footage,
        ),
        _time(
            "excerpt",
            "5 seconds inside 20 seconds of unrelated footage",
            surround,
            excerpt=5.0,
            surround=20.0,
            needs_filler=True,
        ),
        _placed("vertical_crop", "9:16 crop of the center", turned_center),
        _placed("vertical_pan", "9:16 crop that pans across", turned_pan),
        _placed(
            "blurred_borders",
            "9:16 frame with an enlarged, blurred copy behind the video",
            turned_borders,
            blurred_copy,
        ),
        _placed("colored_borders", "centered in a square of one color", square_borders, one_color),
        _split(
            "split_upper_lower",
            "one half of a split screen, above or below other footage",
            partial(part_of, columns=1, rows=2),
        ),
        _split(
            "split_left_right",
            "one half of a split screen, next to other footage",
            partial(part_of, columns=2, rows=1),
        ),
        _split("split_four", "one quarter of a split screen", partial(part_of, columns=2, rows=2)),
        *(
            _arrange(
                "inset",
                f"inset_{size}",
                f"inset at {size} % of the width and height, anywhere in other footage",
                partial(inset, share=size / 100),
                other_footage,
            )
            for size in (30, 45, 60)
        ),
        _geometry("filmed_screen", "filmed from a screen", film_screen, boxes=screen_boxes),
        _placed(
            "combined",
            "cropped, captioned, grayscale, 8 frames per second",
            partial(off_center, share=0.8),
            after=combine(by_seed(add_caption), by_seed(edit_each(to_gray)), repeat_frames),
        ),
        _placed(
            "mirror_crop",
            "mirrored and cropped to 80 % of each side, off center",
            partial(off_center, share=0.8),
            after=by_seed(edit_each(mirror)),
            mirrored=True,
        ),
        _placed("tight_crop", "cropped to 70 % of each side, off center", partial(off_center, share=0.7)),
        _time("double_speed", "played at 2x", _SAME, speed=2.0),
        _time("reordered", "three or four pieces in a different order", _SAME, reordered=True),
        *(
            _edit(
                "turned",
                f"turn_{90 * quarters}",
                f"rotated by {90 * quarters} degrees",
                by_seed(edit_each(partial(rotate_quarters, quarters=quarters))),
                turned=90 * quarters,
            )
            for quarters in (1, 2, 3)
        ),
        _edit("perspective", "rotate15", "rotated by 15 degrees, black corners", partial(tilt, degrees=15.0)),
        _edit(
            "perspective",
            "perspective",
            "seen from the side",
            partial(view_from_side, shaking=False),
            boxes=side_boxes,
        ),
        _edit(
            "perspective",
            "perspective_shaken",
            "seen from the side by a shaking camera",
            partial(view_from_side, shaking=True),
            boxes=side_boxes,
        ),
        _arrange(
            "halves", "half_center", "cropped to half of each side, at the center", partial(crop_half, corner=False)
        ),
        _arrange("halves", "half_corner", "cropped to half of each side, in a corner", partial(crop_half, corner=True)),
        _arrange("halves", "shifted", "shifted by a third of each side, black fills the rest", shift_out, black),
        _edit("covered", "covered_60", "60 % covered by other footage", cover, needs_filler=True),
        _edit("covered", "sticker_45", "45 % covered by a sticker", add_sticker),
        *(
            _edit(
                "blended",
                f"blend_{name}",
                f"other footage blended over it (one {name})",
                partial(blend, share=share),
                needs_filler=True,
            )
            for name, share in (("third", 1 / 3), ("half", 1 / 2))
        ),
        _edit(
            "low information",
            "far_off_colors",
            "dark, strong contrast, garish colors",
            by_seed(edit_each(distort_colors)),
        ),
        _edit("low information", "night", "grayscale, almost dark, noise", film_at_night),
    )
}

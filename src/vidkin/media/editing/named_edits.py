"""All edits by name."""

from __future__ import annotations

import math
from functools import partial

from vidkin.media.editing.edits import Edit, EditFamily
from vidkin.media.editing.filming import filmed, screen_boxes
from vidkin.media.editing.layouts import (
    Arrangement,
    Background,
    arranged,
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
)
from vidkin.media.editing.picture_edits import (
    Transform,
    barred,
    blurred,
    branded,
    captioned,
    combine,
    each,
    faded,
    gray,
    held,
    mirrored,
    noisy,
    rotated,
    sepia,
    smaller,
    squeezed,
    surrounded,
    unchanged,
    values,
)

__all__ = ["EDITS"]


def _edit(family: EditFamily, name: str, description: str, transform: Transform, **more: object) -> Edit:
    return Edit(name=name, description=description, family=family, transform=transform, **more)  # type: ignore[arg-type]


def _arranged(
    family: EditFamily,
    name: str,
    description: str,
    arrange: Arrangement,
    background: Background | None = None,
    *,
    before: Transform = unchanged,
    after: Transform = unchanged,
    **more: object,
) -> Edit:
    """An edit whose transform and boxes come from an arrangement, with optional transforms before and after."""
    filled = background in (other_footage, other_parts)
    transform = combine(before, arranged(arrange, background), after)
    boxes = boxes_of(arrange)
    return _edit(family, name, description, transform, boxes=boxes, needs_filler=filled, **more)


_pixels = partial(_edit, "pixels")
_geometry = partial(_edit, "geometry")
_time = partial(_edit, "time")
_split = partial(_arranged, "geometry", background=other_parts)

EDITS: dict[str, Edit] = {
    edit.name: edit
    for edit in (
        _pixels("reencode", "re-encoded at a very low bit rate", unchanged, crf=39),
        _pixels(
            "resize",
            "360 pixels at the shorter side, or half the size",
            each(smaller),
        ),
        _arranged(
            "geometry",
            "crop",
            "70 % of the area, off the center",
            partial(off_center, share=math.sqrt(0.7)),
        ),
        _geometry(
            "letterbox",
            "black bars above and below",
            each(partial(barred, across=True)),
            boxes=partial(barred_boxes, across=True),
        ),
        _geometry(
            "pillarbox",
            "black bars left and right",
            each(partial(barred, across=False)),
            boxes=partial(barred_boxes, across=False),
        ),
        _pixels("logo", "a large opaque logo and text", branded),
        _pixels("caption", "two lines of text on a band", captioned),
        _pixels("grey", "without color", each(gray)),
        _pixels("sepia", "tinted brown", each(sepia)),
        _pixels("brighter", "brighter by a fifth of the range", values(lambda v: v + 50)),
        _pixels("darker", "at 60 % of the brightness", values(lambda v: 0.6 * v)),
        _pixels("contrast", "contrast raised by 60 %", values(lambda v: 1.6 * (v - 128) + 128)),
        _pixels("blur", "out of focus", each(blurred)),
        _pixels("noise", "with strong noise", noisy),
        _geometry("mirror", "left and right changed", each(mirrored), mirrored=True),
        _time("faster", "1.25 times as fast", unchanged, speed=1.25),
        _time("slower", "at 0.8 of the speed", unchanged, speed=0.8),
        _geometry("rotate5", "turned by 5 degrees", rotated, boxes=rotated_boxes),
        _pixels("fade", "faded in and out", faded),
        _geometry("aspect", "squeezed to 4:3", each(squeezed)),
        _arranged(
            "inset",
            "picture_in_picture",
            "small in a corner of unrelated footage",
            corner_inset,
            other_footage,
        ),
        _time(
            "excerpt",
            "5 seconds inside 20 seconds of unrelated footage",
            surrounded,
            excerpt=5.0,
            surround=20.0,
            needs_filler=True,
        ),
        _arranged("geometry", "vertical_crop", "9:16 out of the center", turned_center),
        _arranged("geometry", "vertical_pan", "a 9:16 window that moves across", turned_pan),
        _arranged(
            "geometry",
            "blurred_borders",
            "inside 9:16, an enlarged blurred copy around it",
            turned_borders,
            blurred_copy,
        ),
        _arranged(
            "geometry",
            "colored_borders",
            "inside a square of one color",
            square_borders,
            one_color,
        ),
        _split(
            "split_upper_lower",
            "one half of a split screen, above or below other footage",
            partial(part_of, columns=1, rows=2),
        ),
        _split(
            "split_left_right",
            "one half of a split screen, beside other footage",
            partial(part_of, columns=2, rows=1),
        ),
        _split(
            "split_four",
            "one quarter of a split screen",
            partial(part_of, columns=2, rows=2),
        ),
        *(
            _arranged(
                "inset",
                f"inset_{size}",
                f"at {size} % of the sides anywhere in other footage",
                partial(inset, share=size / 100),
                other_footage,
            )
            for size in (30, 45, 60)
        ),
        _geometry("filmed_screen", "filmed from a screen", filmed, boxes=screen_boxes),
        _arranged(
            "geometry",
            "combined",
            "cropped, with a caption, without color, at 8 frames a second",
            partial(off_center, share=0.8),
            after=combine(captioned, each(gray), held),
        ),
        _arranged(
            "geometry",
            "mirror_crop",
            "left and right changed and 80 % of each side, off the center",
            partial(off_center, share=0.8),
            after=each(mirrored),
            mirrored=True,
        ),
        _arranged(
            "geometry",
            "tight_crop",
            "70 % of each side, off the center",
            partial(off_center, share=0.7),
        ),
        _time("double_speed", "twice as fast", unchanged, speed=2.0),
        _time("reordered", "three or four pieces in another order", unchanged, reordered=True),
    )
}

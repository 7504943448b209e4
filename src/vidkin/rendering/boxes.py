"""Boxes of a picture in words: which part of it matched."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vidkin.similarity import Box, Segment

__all__ = ["describe_box", "describe_parts"]

# A box with at least this share of a side has all of it; one with at least this share of the picture is the whole.
_FULL, _WHOLE = 0.9, 0.8
# Maximum distance of a half's edge from the middle.
_HALF = 0.05
_ACROSS, _DOWN = ("left", "middle", "right"), ("upper", "middle", "lower")


def describe_box(box: Box) -> str:
    """Say where a box is and, unless it is a half, how large; empty if it is about the whole picture.

    >>> describe_box((0.5, 0.0, 1.0, 1.0)), describe_box((0.4, 0.4, 0.97, 0.97))
    ('right half', 'lower right 57 %')
    >>> describe_box((0.05, 0.05, 0.95, 0.97))
    ''
    """
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    if width * height >= _WHOLE:
        return ""
    across, down = _ACROSS[_third(left, right)], _DOWN[_third(top, bottom)]
    if height >= _FULL:
        return f"{across} half" if _is_half(left, right) else f"{across} {width:.0%}".replace("%", " %")
    if width >= _FULL:
        return f"{down} half" if _is_half(top, bottom) else f"{down} {height:.0%}".replace("%", " %")
    where = "middle" if across == down == "middle" else f"{down} {across}"
    return f"{where} {math.sqrt(width * height):.0%}".replace("%", " %")


def describe_parts(segment: Segment) -> str:
    """Say which part of the file and of the query matched; empty if both are whole."""
    sides = (describe_box(segment.target_box), "file"), (describe_box(segment.query_box), "query")
    return ", ".join(f"{words} of {side}" for words, side in sides if words)


def _third(start: float, end: float) -> int:
    """0, 1 or 2: near the start, the middle or the end."""
    before, after = start, 1 - end
    if abs(before - after) <= 0.1:
        return 1
    return 0 if before < after else 2


def _is_half(start: float, end: float) -> bool:
    return min(abs(start - 0.5), abs(end - 0.5)) <= _HALF and abs(end - start - 0.5) <= 2 * _HALF

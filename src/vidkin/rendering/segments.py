"""Segments of matches as text and table cells, fitted to the terminal width."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vidkin.rendering.text import clock, clock_range, describe_parts

if TYPE_CHECKING:
    from vidkin.similarity import Segment

SEGMENT_COLUMNS = (("query", "right"), ("in file", "right"), ("speed", "right"), ("edits", "left"))
"""Heading and alignment of each column of :func:`segment_cells`."""

# Minimum width for describing edits in words, and for showing hours and tenths of a second of both videos.
_ROOMY, _NARROW = 100, 70

# The speed is shown only if it deviates from 1 by at least this much.
_USUAL_SPEED = 0.03

# Times of at least this many seconds are shown with hours.
_HOUR = 3600.0

# Symbols for edits, used if there is no room for words.
_MIRRORED, _TURNED, _BACKWARDS = "↔", "↻", "◀"


def segment_cells(segment: Segment, *, width: int | None) -> list[str]:
    """Format a segment's times in both videos, speed and edits; below 100 columns, edits become symbols."""
    times = ((segment.query_start, segment.query_end), (segment.target_start, segment.target_end))
    speed = "" if _is_usual(segment) else f"{segment.speed:.2f}x"
    if width is None or width >= _ROOMY:
        turned = f"turned {segment.turned} degrees" if segment.turned else ""
        backwards = "backwards" if segment.backwards else ""
        edits = (backwards, turned, "mirrored" if segment.mirrored else "", describe_parts(segment))
        return [*(clock_range(*each) for each in times), speed, ", ".join(filter(None, edits))]
    signs = (
        _BACKWARDS if segment.backwards else "",
        _MIRRORED if segment.mirrored else "",
        f"{_TURNED}{segment.turned}" if segment.turned else "",
    )
    return [*(_short_range(*each, width) for each in times), " ".join(filter(None, (speed, *signs))), ""]


def explain_segments(segments: Sequence[Segment], *, width: int | None) -> Iterator[str]:
    """Yield an explanation of the first changed speed, and a legend for the symbols in a narrow table."""
    speed = next((segment.speed for segment in segments if not _is_usual(segment)), None)
    if speed is not None:
        yield f"Speed {speed:.2f}x: the query runs {speed:.2f} times as fast as the matching part of the file."
    if width is not None and width < _ROOMY:
        if any(segment.mirrored for segment in segments):
            yield f"{_MIRRORED}: mirrored"
        if any(segment.turned for segment in segments):
            yield f"{_TURNED}90: turned 90 degrees clockwise"
        if any(segment.backwards for segment in segments):
            yield f"{_BACKWARDS}: backwards"


def _is_usual(segment: Segment) -> bool:
    return abs(segment.speed - 1.0) < _USUAL_SPEED


def _short_range(start: float, end: float, width: int) -> str:
    """Format start and end without spaces, to a tenth of a second if there is room."""
    if end <= start:
        return ""
    if width >= _NARROW or end < _HOUR:
        return f"{clock(start)}-{clock(end)}"
    # Remove the decimal written by clock().
    return f"{clock(math.floor(start))[:-2]}-{clock(math.ceil(end))[:-2]}"

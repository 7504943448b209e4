"""Show a match, a group or shots in a notebook, in more detail than a cell's result, or as a page for a browser."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass, field
from typing import Any

from vidkin._base.arguments import check_arguments
from vidkin._base.files import write_text
from vidkin.errors import InvalidArgumentError
from vidkin.index import Match
from vidkin.media.notebook import picture_html, shown_name
from vidkin.rendering.text import clock
from vidkin.similarity import Segment

# Maximum number of segments, number of frames per segment, and frame height in pixels.
_MAX_SEGMENTS, _MOMENTS, _SIDE = 4, 4, 120


@dataclass(frozen=True, slots=True)
class Shown:
    """Result of :func:`show`, displayed by notebooks.

    Attributes:
        html: Self-contained HTML with embedded images.
    """

    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the HTML as a page for a browser."""
        write_text(path, f"<!doctype html><meta charset=utf-8><title>vidkin</title>{self.html}\n")

    def _repr_html_(self) -> str:
        return self.html


@check_arguments
def show(result: Any, *, query: str | os.PathLike[str] | None = None) -> Shown:
    """Show a match moment by moment, with the query above the matching video, or any other result with images.

    Args:
        result: A :class:`vidkin.Match`, a group, shots, or a list of these.
        query: The query video; if None, only the matching video is shown.

    Returns:
        An object that notebooks display; its ``save`` method writes a page.

    Raises:
        InvalidArgumentError: Results of this type cannot be shown.
    """
    if isinstance(result, Match) and result.segments:
        return Shown(_match_html(result, None if query is None else os.fspath(query)))
    as_html = getattr(result, "_repr_html_", None)
    if as_html is None:
        raise InvalidArgumentError(
            f"result must be a match, a group, shots or a list of them, got {type(result).__name__}"
        )
    return Shown(as_html())


def _match_html(match: Match, query: str | None) -> str:
    title = f"{shown_name(match.path)}: score {match.score:.2f}"
    parts = [f"<p><strong>{html.escape(title)}</strong></p>"]
    parts += [_segment_html(match.path, segment, query) for segment in match.segments[:_MAX_SEGMENTS]]
    if len(match.segments) > _MAX_SEGMENTS:
        parts.append(f"<p>and {len(match.segments) - _MAX_SEGMENTS} more segments</p>")
    return "".join(parts)


def _segment_html(path: str, segment: Segment, query: str | None) -> str:
    words = [
        f"{clock(segment.query_start)} - {clock(segment.query_end)} of the query at "
        f"{clock(segment.target_start)} - {clock(segment.target_end)}",
        f"score {segment.score:.2f}",
    ]
    if not 0.95 <= segment.speed <= 1.05:
        words.append(f"speed {segment.speed:.2f}")
    words += [word for word, is_so in (("mirrored", segment.mirrored), ("backwards", segment.backwards)) if is_so]
    length = segment.query_end - segment.query_start
    times = [segment.query_start + (index + 0.5) / _MOMENTS * length for index in range(_MOMENTS)]
    rows = [(path, [segment.target_time(time) for time in times])]
    if query is not None:
        rows.insert(0, (query, times))
    table = "".join(
        f"<tr><th style='text-align:left'>{html.escape(shown_name(name))}</th>"
        + "".join(f"<td>{picture_html(name, time, side=_SIDE)}{clock(time)}</td>" for time in times)
        + "</tr>"
        for name, times in rows
    )
    return f"<p>{html.escape(', '.join(words))}</p><table>{table}</table>"

"""Results as tables: matches, segments, and facts by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from vidkin._base.plain_values import as_json
from vidkin.cli.console import path_text, table
from vidkin.rendering.text import clock, clock_range, file_size, printable

if TYPE_CHECKING:
    from vidkin.index import Match
    from vidkin.similarity import Segment

__all__ = ["UNRELATED", "print_facts", "print_matches", "print_segments"]

UNRELATED = 0.2
"""99 of 100 pairs of unrelated videos score below this."""

_LABELS = {
    "bytes": "size on disk",
    "missing": "files that are gone",
    "seconds": "length of all videos",
    "sampling_rate": "frames per second of video",
}
_SEGMENT_COLUMNS = (("query", "right"), ("in the file", "right"), ("speed", "right"), ("", "left"))
# Speeds this close to 1 are not shown.
_USUAL_SPEED = 0.03


def print_matches(matches: Sequence[Match], *, first_rank: int = 1) -> None:
    """Rank, score, file, and where it matches; further segments of a file on lines of their own."""
    rows: list[list[str | Text]] = []
    for rank, match in enumerate(matches, start=first_rank):
        style = "dim" if match.score < UNRELATED else ""
        name = path_text(match.path, style=style)
        if match.missing:
            name.append(" (missing)", style="red")
        cells: list[str | Text] = [str(rank), f"{match.score:.2f}", name]
        first = _segment_cells(match.segments[0]) if match.segments else [""] * len(_SEGMENT_COLUMNS)
        rows.append([*cells, *first])
        rows += [["", "", "", *_segment_cells(segment)] for segment in match.segments[1:]]
    table(None, [("#", "right"), ("score", "right"), ("file", "left"), *_SEGMENT_COLUMNS], rows)


def print_segments(segments: Sequence[Segment]) -> None:
    """One line for each segment."""
    columns = [*_SEGMENT_COLUMNS, ("score", "right")]
    table(None, columns, [[*_segment_cells(segment), f"{segment.score:.2f}"] for segment in segments])


def print_facts(facts: object, *, title: str | None = None) -> None:
    """The fields of a result in two columns, names and values in words; fields that are empty are left out."""
    rows: list[list[str | Text]] = [
        [_LABELS.get(name, name.replace("_", " ")), Text(_in_words(name, value), overflow="fold")]
        for name, value in as_json(facts).items()
        if value is not None and value != ""
    ]
    table(title, [("", "left"), ("", "left")], rows)


def _in_words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name == "bytes":
        return file_size(value)
    if isinstance(value, float) and name == "seconds":
        return clock(value)
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,g}"
    return printable(str(value))


def _segment_cells(segment: Segment) -> list[str | Text]:
    usual = abs(segment.speed - 1.0) < _USUAL_SPEED
    return [
        clock_range(segment.query_start, segment.query_end),
        clock_range(segment.target_start, segment.target_end),
        "" if usual else f"{segment.speed:.2f}x",
        "mirrored" if segment.mirrored else "",
    ]

"""How results look: matches and segments as tables, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from vidkin.cli.console import path_text, table
from vidkin.rendering.json_values import as_json
from vidkin.rendering.text import clock, file_size, printable

if TYPE_CHECKING:
    from vidkin.index import Match
    from vidkin.similarity import Segment

UNRELATED = 0.2
"""Pairs of unrelated videos score below this, all but one in a hundred."""

__all__ = ["UNRELATED", "matches_as_json", "print_facts", "print_matches", "print_segments"]


def print_matches(matches: Sequence[Match], *, title: str | None = None) -> None:
    """Rank, score, file, and where it matches; further segments of a file on lines of their own."""
    rows: list[list[str | Text]] = []
    for rank, match in enumerate(matches, start=1):
        style = "dim" if match.score < UNRELATED else ""
        cells: list[str | Text] = [str(rank), f"{match.score:.2f}", path_text(match.path, style=style)]
        rows.append([*cells, *_segment_cells(match.segments[0] if match.segments else None)])
        rows += [["", "", "", *_segment_cells(segment)] for segment in match.segments[1:]]
    table(title, [("#", "right"), ("score", "right"), ("file", "left"), *_SEGMENT_COLUMNS], rows)


def print_segments(segments: Sequence[Segment], *, title: str | None = None) -> None:
    """One line a segment."""
    columns = [*_SEGMENT_COLUMNS, ("score", "right")]
    table(title, columns, [[*_segment_cells(segment), f"{segment.score:.2f}"] for segment in segments])


def print_facts(facts: object, *, title: str | None = None) -> None:
    """A result of plain fields as two columns: what it is called, and its value in words."""
    rows: list[list[str | Text]] = []
    for name, value in as_json(facts).items():
        if value is not None and value != "":
            rows.append(
                [_LABELS.get(name, name.replace("_", " ")), Text(_words(name, value), overflow="fold")]
            )
    table(title, [("", "left"), ("", "left")], rows)


def matches_as_json(matches: Sequence[Match]) -> list[dict[str, Any]]:
    """Matches as objects of rank, path, score, mirrored and segments."""
    return [
        {
            "rank": rank,
            "path": match.path,
            "score": match.score,
            "mirrored": match.mirrored,
            "segments": as_json(match.segments),
        }
        for rank, match in enumerate(matches, start=1)
    ]


_LABELS = {
    "bytes": "size on disk",
    "seconds": "length of all videos",
    "sampling_rate": "frames per second of video",
}
_SEGMENT_COLUMNS = (("query", "right"), ("in the file", "right"), ("speed", "right"), ("", "left"))


def _words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name == "bytes":
        return file_size(value)
    if isinstance(value, float) and name == "seconds":
        return clock(value)
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,g}"
    return printable(str(value))


def _segment_cells(segment: Segment | None) -> list[str | Text]:
    if segment is None:
        return ["", "", "", ""]
    return [
        f"{clock(segment.query_start)} - {clock(segment.query_end)}",
        f"{clock(segment.target_start)} - {clock(segment.target_end)}",
        _speed(segment),
        "mirrored" if segment.mirrored else "",
    ]


def _speed(segment: Segment) -> str:
    """How fast the query runs through the file's material; nothing for the usual speed."""
    return "" if abs(segment.speed - 1.0) < 0.03 else f"{segment.speed:.2f}x"

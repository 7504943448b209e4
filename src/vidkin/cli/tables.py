"""The formats of results: a table, plain lines, tab-separated values or JSON; and matches as lines."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from vidkin._base.values import as_json, table_cell
from vidkin.cli.console import is_roomy, note, path_text, say, table, terminal_width
from vidkin.rendering.text import clock, clock_range, file_size, printable

if TYPE_CHECKING:
    from vidkin.index import Match
    from vidkin.similarity import Segment


class OutputFormat(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    PLAIN = "plain"
    TSV = "tsv"
    JSON = "json"


FormatOption = Annotated[
    OutputFormat,
    typer.Option("--format", "-f", help="A table; plain lines without a frame; tsv: tab-separated values; JSON."),
]


def choose_format(form: OutputFormat, *, json: bool) -> OutputFormat:
    """The format of ``--format`` and ``--json``, which is short for one of them.

    Raises:
        typer.BadParameter: They contradict each other.
    """
    if json and form not in (OutputFormat.TABLE, OutputFormat.JSON):
        raise typer.BadParameter(f"--json and --format {form.value} contradict each other; use one of them")
    return OutputFormat.JSON if json else form


_COLUMNS = (
    *("query", "rank", "score", "path", "missing"),
    *("query_start", "query_end", "target_start", "target_end", "speed", "mirrored", "turned"),
)


def print_plain(matches: Sequence[Match]) -> None:
    """One line a match: score, time in the file, name."""
    for match in matches:
        best = match.segments[0] if match.segments else None
        times = "" if best is None else clock_range(best.target_start, best.target_end)
        say(Text(f"{match.score:.2f}  {times:<19}  ").append_text(path_text(match.path)))


def print_tsv_header() -> None:
    """Names of the columns of :func:`print_tsv`."""
    write_tsv(_COLUMNS)


def print_tsv(query: Path, matches: Sequence[Match], *, first_rank: int) -> None:
    """One line for each segment, one for a match without any; columns are separated by tabs, times are seconds."""
    for rank, match in enumerate(matches, start=first_rank):
        facts = (os.fspath(query), str(rank), f"{match.score:.4f}", match.path, yes_no(match.missing))
        for segment in match.segments:
            seconds = (
                segment.query_start,
                segment.query_end,
                segment.target_start,
                segment.target_end,
                segment.speed,
            )
            edits = yes_no(segment.mirrored), str(segment.turned)
            write_tsv((*facts, *(f"{value:.3f}" for value in seconds), *edits))
        if not match.segments:
            write_tsv((*facts, *[""] * (len(_COLUMNS) - len(facts))))


def yes_no(value: bool) -> str:
    """A Boolean as table text."""
    return "yes" if value else "no"


def write_tsv(cells: Sequence[str]) -> None:
    """Write one line of tab-separated values to standard output.

    Names that are not valid Unicode keep their bytes, except in a terminal; control characters (tabs, too) do not. No
    cell is a formula: see :func:`~vidkin._base.values.table_cell`.
    """
    sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write("\t".join(printable(table_cell(cell)) for cell in cells) + "\n")
        return
    line = "\t".join(map(table_cell, cells)) + "\n"
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(line)
    else:
        buffer.write(os.fsencode(line))
        buffer.flush()


# Results as tables: matches, segments, and facts by name.


_LABELS = {
    "bytes": "size on disk",
    "missing": "files that are gone",
    "seconds": "length of all videos",
    "sampling_rate": "frames per second of video",
}

_SEGMENT_COLUMNS = (("query", "right"), ("in file", "right"), ("speed", "right"), ("", "left"))

# Speeds this close to 1 are not shown.
_USUAL_SPEED = 0.03

# Columns of a terminal from which times have tenths.
_NARROW = 70

# In a narrow terminal.
_MIRRORED, _TURNED = "↔", "↻"


def print_matches(matches: Sequence[Match], *, first_rank: int = 1) -> None:
    """Rank, score, where it matches, and the file; further segments of a file on lines of their own."""
    from vidkin.similarity import UNRELATED

    rows: list[list[str | Text]] = []
    for rank, match in enumerate(matches, start=first_rank):
        style = "dim" if match.score < UNRELATED else ""
        name = path_text(match.path, style=style)
        if match.missing:
            name.append(" (missing)", style="red")
        first = _segment_cells(match.segments[0]) if match.segments else [""] * len(_SEGMENT_COLUMNS)
        rows.append([str(rank), f"{match.score:.2f}", *first, name])
        rows += [["", "", *_segment_cells(segment), ""] for segment in match.segments[1:]]
    table(None, [("#", "right"), ("score", "right"), *_SEGMENT_COLUMNS, ("file", "left")], rows)
    _explain([segment for match in matches for segment in match.segments])


def _explain(segments: Sequence[Segment]) -> None:
    """Say in words what the first unusual speed in the table means, and the sign for mirrored ones."""
    for segment in segments:
        if not _is_usual(segment):
            rate = f"{segment.speed:.2f}"
            note(f"Speed {rate}x: the query runs {rate} times as fast as the same part of the file.")
            break
    if not is_roomy() and any(segment.mirrored for segment in segments):
        note(f"{_MIRRORED}: mirrored")
    if not is_roomy() and any(segment.turned for segment in segments):
        note(f"{_TURNED}90: turned 90 degrees clockwise")


def print_segments(segments: Sequence[Segment]) -> None:
    """One line for each segment."""
    columns = [*_SEGMENT_COLUMNS, ("score", "right")]
    table(None, columns, [[*_segment_cells(segment), f"{segment.score:.2f}"] for segment in segments])
    _explain(segments)


def print_facts(facts: object, *, title: str | None = None) -> None:
    """The fields of a result in two columns, names and values in words; empty fields are dropped."""
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
    speed = "" if _is_usual(segment) else f"{segment.speed:.2f}x"
    ranges = [
        _range(segment.query_start, segment.query_end),
        _range(segment.target_start, segment.target_end),
    ]
    if is_roomy():
        from vidkin.rendering.matches import describe_parts

        remarks = [
            f"turned {segment.turned} degrees" if segment.turned else "",
            "mirrored" if segment.mirrored else "",
            describe_parts(segment),
        ]
        return [*ranges, speed, ", ".join(remark for remark in remarks if remark)]
    signs = [_MIRRORED if segment.mirrored else "", f"{_TURNED}{segment.turned}" if segment.turned else ""]
    return [*ranges, " ".join(part for part in (speed, *signs) if part), ""]


def _is_usual(segment: Segment) -> bool:
    return abs(segment.speed - 1.0) < _USUAL_SPEED


def _range(start: float, end: float) -> str:
    """From when to when; in a narrow terminal without spaces, in a very narrow one in whole seconds."""
    if is_roomy() or end <= start:
        return clock_range(start, end)
    if (terminal_width() or 0) >= _NARROW:
        return f"{clock(start)}-{clock(end)}"
    # clock() has one decimal.
    return f"{clock(math.floor(start))[:-2]}-{clock(math.ceil(end))[:-2]}"

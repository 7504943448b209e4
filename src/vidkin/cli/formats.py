"""The formats of results: a table, plain lines, tab-separated values or JSON; and matches as lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from vidkin._base.plain_values import replace_controls
from vidkin.cli.console import path_text, say
from vidkin.rendering.text import clock_range, printable

if TYPE_CHECKING:
    from vidkin.index import Match

__all__ = [
    "FormatOption",
    "OutputFormat",
    "choose_format",
    "print_plain",
    "print_tsv",
    "print_tsv_header",
    "write_tsv",
    "yes_no",
]


class OutputFormat(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    PLAIN = "plain"
    TSV = "tsv"
    JSON = "json"


FormatOption = Annotated[
    OutputFormat,
    typer.Option(
        "--format", "-f", help="A table; plain lines without a frame; tsv: tab-separated values; JSON."
    ),
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
    *("query_start", "query_end", "target_start", "target_end", "speed", "mirrored"),
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
            write_tsv((*facts, *(f"{value:.3f}" for value in seconds), yes_no(segment.mirrored)))
        if not match.segments:
            write_tsv((*facts, *[""] * (len(_COLUMNS) - len(facts))))


def yes_no(value: bool) -> str:
    """A Boolean as table text."""
    return "yes" if value else "no"


def write_tsv(cells: Sequence[str]) -> None:
    """Write one line of tab-separated values to standard output.

    Names that are not valid Unicode keep their bytes, except in a terminal; control characters (tabs, too) do not.
    """
    sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write("\t".join(map(printable, cells)) + "\n")
        return
    line = "\t".join(map(replace_controls, cells)) + "\n"
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(line)
    else:
        buffer.write(os.fsencode(line))
        buffer.flush()

"""Matches as lines: for people without a frame, and for other programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from vidkin._base.controls import replace_controls
from vidkin.cli.console import path_text, say
from vidkin.rendering.text import clock_range

if TYPE_CHECKING:
    from vidkin.index import Match

__all__ = ["print_plain", "print_tsv", "print_tsv_header"]

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
    _write(_COLUMNS)


def print_tsv(query: Path, matches: Sequence[Match], *, first_rank: int) -> None:
    """One line for each segment, one for a match without any; columns are separated by tabs, times are seconds."""
    for rank, match in enumerate(matches, start=first_rank):
        facts = (os.fspath(query), str(rank), f"{match.score:.4f}", match.path, _yes_no(match.missing))
        for segment in match.segments:
            seconds = (
                segment.query_start,
                segment.query_end,
                segment.target_start,
                segment.target_end,
                segment.speed,
            )
            _write((*facts, *(f"{value:.3f}" for value in seconds), _yes_no(segment.mirrored)))
        if not match.segments:
            _write((*facts, *[""] * (len(_COLUMNS) - len(facts))))


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _write(cells: Sequence[str]) -> None:
    """One line; names that are not valid Unicode keep their bytes, control characters (tabs, too) do not."""
    line = "\t".join(map(replace_controls, cells)) + "\n"
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(line)
    else:
        buffer.write(os.fsencode(line))
        buffer.flush()

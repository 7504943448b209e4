"""What commands print with: results, messages, tables, file names, progress."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from vidkin.rendering.text import printable

__all__ = [
    "Meter",
    "error_line",
    "meter",
    "note",
    "path_text",
    "say",
    "stderr",
    "stdout",
    "table",
]

# Columns where the output is not a terminal: wide enough that no name is ever cut or folded.
_UNLIMITED = 100_000


def stdout() -> Console:
    """The console for results. A new one each time, because callers may replace ``sys.stdout``."""
    return _console(stderr=False)


def stderr() -> Console:
    """The console for messages and progress."""
    return _console(stderr=True)


def say(message: str | Text, *, style: str | None = None) -> None:
    """Print one line of results on standard output; square brackets are not markup."""
    stdout().print(message, style=style, markup=False, highlight=False, soft_wrap=True)


def note(message: str | Text, *, style: str | None = "dim") -> None:
    """Print one line of information on standard error."""
    stderr().print(message, style=style, markup=False, highlight=False, soft_wrap=True)


def error_line(message: str) -> None:
    """Print an error as one red line on standard error."""
    line = " ".join(printable(part.strip()) for part in message.splitlines() if part.strip())
    note(f"Error: {line}", style="bold red")


def path_text(path: str | os.PathLike[str], *, style: str | None = None) -> Text:
    """The name of a file for tables: relative to the current folder if it lies below it."""
    name = os.fspath(path)
    if os.path.isabs(name):
        here = os.getcwd()
        if name.startswith(here.rstrip(os.sep) + os.sep):
            name = os.path.relpath(name, here)
    return Text(printable(name), style=style or "", overflow="fold")


def table(
    title: str | None, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str | Text]]
) -> None:
    """Print a table on standard output; columns that are empty in every row are left out.

    Args:
        title: Line above the table; None for none.
        columns: Heading, and ``left`` or ``right``, of each column.
        rows: Cells of each row; text in them is not markup.
    """
    filled = [place for place in range(len(columns)) if not rows or any(len(row[place]) for row in rows)]
    grid = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        show_header=any(columns[place][0] for place in filled),
    )
    for heading, side in (columns[place] for place in filled):
        right = side == "right"
        grid.add_column(heading, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in rows:
        cells = (row[place] for place in filled)
        grid.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells))
    stdout().print(grid)


class Meter:
    """A progress bar; silent without a terminal."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def update(self, done: float, total: float | None, *, detail: str = "") -> None:
        """Show that ``done`` of ``total`` steps are done; ``detail`` is a short text such as a rate."""
        self._progress.update(self._task, completed=done, total=total, detail=printable(detail))


@contextmanager
def meter(title: str) -> Iterator[Meter]:
    """A progress bar on standard error with steps, elapsed and remaining time."""
    console = stderr()
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        TextColumn(
            "{task.fields[detail]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
        ),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as progress:
        yield Meter(progress, progress.add_task(title, total=None, detail=""))


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=_UNLIMITED, no_color=True)
    return console

"""What commands print with: results, messages, tables, file names, progress."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from vidkin.cli.terminal.layout import ROOMY, PathText, break_after_names, break_lines, lay_out
from vidkin.cli.terminal.progress import Meter, progress_line
from vidkin.cli.terminal.verbosity import is_quiet
from vidkin.rendering.text import printable

__all__ = [
    "Meter",
    "error_line",
    "is_roomy",
    "meter",
    "note",
    "path_text",
    "say",
    "stderr",
    "stdout",
    "table",
    "terminal_width",
]

# Columns where the output is not a terminal: wide enough that no name is ever cut or folded.
_UNLIMITED = 100_000
# Consoles with a line of progress on the screen: only they can take it away before something else is printed.
_with_progress: list[Console] = []


def stdout() -> Console:
    """The console for results. A new one each time, because callers may replace ``sys.stdout``."""
    console = _console(stderr=False)
    return _with_progress[-1] if _with_progress and console.is_terminal else console


def stderr() -> Console:
    """The console for messages."""
    return _with_progress[-1] if _with_progress else _console(stderr=True)


def say(message: str | Text, *, style: str | None = None) -> None:
    """Print one line of results on standard output; square brackets are not markup.

    In a terminal a string is broken between words; a Text with names of files only behind them, at its last colon.
    """
    _print(stdout(), message, style)


def note(message: str | Text, *, style: str | None = "dim") -> None:
    """Print one line of information on standard error, as :func:`say`. Dim ones are dropped with --quiet."""
    if not (is_quiet() and style == "dim"):
        _print(stderr(), message, style)


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
    return PathText(printable(name), style=style or "", overflow="fold")


def table(
    title: str | None, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str | Text]]
) -> None:
    """Print a table on standard output; columns that are empty in every row are dropped.

    In a terminal it has the width of the terminal: names of files (`path_text`) are shortened.

    Args:
        title: Line above the table; None for none.
        columns: Heading, and ``left`` or ``right``, of each column.
        rows: Cells of each row; text in them is not markup.
    """
    filled = [
        position for position in range(len(columns)) if not rows or any(len(row[position]) for row in rows)
    ]
    cells = [
        [cell if isinstance(cell, Text) else Text(cell) for cell in (row[position] for position in filled)]
        for row in rows
    ]
    stdout().print(lay_out(title, [columns[position] for position in filled], cells, width=terminal_width()))


def is_roomy() -> bool:
    """Whether there is room for all columns of a table: 100 characters in a terminal, or no terminal."""
    width = terminal_width()
    return width is None or width >= ROOMY


def terminal_width() -> int | None:
    """Columns of the terminal that results go to; None where they go to a file or a pipe."""
    console = stdout()
    return console.width if console.is_terminal else None


@contextmanager
def meter(title: str) -> Iterator[Meter]:
    """A line of progress on standard error: steps, rate and remaining time; silent without a terminal."""
    console = _console(stderr=True)
    with progress_line(title, console, shown=not is_quiet()) as bar:
        if console.is_terminal and not is_quiet():
            _with_progress.append(console)
        try:
            yield bar
        finally:
            if console in _with_progress:
                _with_progress.remove(console)


def _print(console: Console, message: str | Text, style: str | None) -> None:
    if isinstance(message, Text):
        message = break_after_names(message, console.width)
    elif "\n" not in message:
        message = break_lines(message, console.width)
    console.print(message, style=style, markup=False, highlight=False, soft_wrap=True)


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=_UNLIMITED, no_color=True)
    return console

"""Terminal output of commands: messages, tables, names of files, progress, and results for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import typer

from vidkin._base.values import table_cell
from vidkin.cli.commands import Status, is_quiet
from vidkin.rendering.text import print_json, printable

# Rich is imported only for drawing; a command that prints JSON or shows no progress runs without it.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from vidkin.cli.progress import ProgressLine

# Tables in narrower terminals omit columns that are not essential.
_ROOMY = 100

# Columns where the output is not a terminal: no name is shortened or folded.
_UNLIMITED = 100_000

# Variables that make Rich draw where there is no terminal.
_TERMINAL = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}


class Meter:
    """A progress line; does nothing without a terminal."""

    def __init__(self, line: ProgressLine | None = None) -> None:
        self._line = line

    @property
    def is_shown(self) -> bool:
        """Whether a terminal shows the line; otherwise, callers can skip computing its content."""
        return self._line is not None

    def update(self, done: float, total: float | None, *, detail: str = "") -> None:
        """Show that ``done`` of ``total`` steps are done; ``detail`` is a short text such as a rate."""
        if self._line is not None:
            self._line.update(done, total, detail)


# Consoles with a line of progress: only they can erase it before something else is printed.
_with_progress: list[Console] = []


@contextmanager
def meter(title: str) -> Iterator[Meter]:
    """A line of progress on standard error: steps, rate and remaining time; silent without a terminal."""
    console = _console(stderr=True) if _may_draw(sys.stderr) and not is_quiet() else None
    if console is None or not console.is_terminal:
        yield Meter()
        return
    from vidkin.cli.progress import ProgressLine, new_progress

    with new_progress(console) as progress:
        _with_progress.append(console)
        try:
            yield Meter(ProgressLine(progress, title))
        finally:
            _with_progress.remove(console)


def _may_draw(stream: TextIO) -> bool:
    """Whether Rich may draw on a stream; where it may not, it need not be imported to find out."""
    return stream.isatty() or not _TERMINAL.isdisjoint(os.environ)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    # A new one each time, because callers may replace the streams.
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=_UNLIMITED, no_color=True)
    return console


def _stdout() -> Console:
    console = _console(stderr=False)
    return _with_progress[-1] if _with_progress and console.is_terminal else console


def say(*parts: str | Text, style: str | None = None) -> None:
    """Print one line of results on standard output; square brackets are not markup.

    In a terminal it is broken between words; names of files (`path_text`) and commands in backticks stay whole.
    """
    _print(_stdout(), parts, style)


def note(*parts: str | Text, style: str | None = "dim") -> None:
    """Print one line of information on standard error, as :func:`say`. Dim ones are dropped with --quiet."""
    if not (is_quiet() and style == "dim"):
        _print(_with_progress[-1] if _with_progress else _console(stderr=True), parts, style)


def _print(console: Console, parts: Sequence[str | Text], style: str | None) -> None:
    from vidkin.cli.layout import fit_line

    console.print(fit_line(parts, console.width), style=style, soft_wrap=True)


def wrote(path: str | os.PathLike[str], what: str = "") -> None:
    """Report on standard error that a file or a folder of files was written, and its content."""
    note("Wrote ", path_text(path), f": {what}" if what else "", style=None)


def error_line(message: str) -> None:
    """Print an error as one red line on standard error."""
    line = " ".join(printable(part.strip()) for part in message.splitlines() if part.strip())
    note(f"Error: {line}", style="bold red")


def end_with_failures(failures: Iterable[object], *, some_usable: bool = True) -> None:
    """Print each failure as an error; if there are any, end the command with the exit status for that.

    Args:
        failures: Errors, or their messages.
        some_usable: Whether anything else could be used.
    """
    messages = [str(failure) for failure in failures]
    for message in messages:
        error_line(message)
    if messages:
        raise typer.Exit(Status.SOME_FAILED if some_usable else Status.NOTHING_USABLE)


def plain_text(text: str, *, style: str = "") -> Text:
    """Text in a style, in which nothing is markup."""
    from rich.text import Text

    return Text(text, style=style)


def path_text(path: str | os.PathLike[str], *, style: str = "") -> Text:
    """The name of a file for lines and tables: relative to the current folder if it lies below it."""
    from vidkin.cli.layout import PathText

    name, here = os.fspath(path), os.getcwd()
    if os.path.isabs(name) and name.startswith(here.rstrip(os.sep) + os.sep):
        name = os.path.relpath(name, here)
    return PathText(printable(name), style=style, overflow="fold")


def table(title: str | None, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str | Text]]) -> None:
    """Print a table on standard output; columns that are empty in every row are dropped.

    In a terminal it has at most the width of the terminal: names of files (`path_text`) are shortened.

    Args:
        title: Line above the table; None for none.
        columns: Heading, and ``left`` or ``right``, of each column.
        rows: Cells of each row; text in them is not markup.
    """
    from vidkin.cli.layout import lay_out

    rows = list(rows)
    filled = [position for position in range(len(columns)) if not rows or any(len(row[position]) for row in rows)]
    cells = [[row[position] for position in filled] for row in rows]
    console = _stdout()
    console.print(lay_out(title, [columns[position] for position in filled], cells, console))


def terminal_width() -> int | None:
    """Columns of the terminal that results go to; None where they go to a file or a pipe."""
    console = _stdout()
    return console.width if console.is_terminal else None


def is_roomy() -> bool:
    """Whether there is room for all columns of a table: 100 characters in a terminal, or no terminal."""
    width = terminal_width()
    return width is None or width >= _ROOMY


def print_data(form: str, document: object, cells: Iterable[Sequence[str]] = (), *, indent: int | None = 2) -> bool:
    """Print a result for programs, and return whether that was asked for.

    Args:
        form: The format.
        document: The result as JSON.
        cells: Lines of the result as tab-separated values.
        indent: Of the document; None prints it on one line.
    """
    if form == "json":
        print_json(document, indent=indent)
    elif form == "tsv":
        write_tsv(cells)
    return form in ("json", "tsv")


def write_tsv(lines: Iterable[Sequence[str]]) -> None:
    """Write lines of tab-separated values to standard output.

    Names that are not valid Unicode keep their bytes, except in a terminal; control characters (tabs, too) do not. No
    cell is a formula: see :func:`~vidkin._base.values.table_cell`.
    """
    buffer = getattr(sys.stdout, "buffer", None)
    for line in lines:
        cells = [table_cell(cell) for cell in line]
        if sys.stdout.isatty() or buffer is None:
            sys.stdout.write("\t".join(map(printable, cells)) + "\n")
        else:
            sys.stdout.flush()
            buffer.write(os.fsencode("\t".join(cells) + "\n"))
            buffer.flush()

"""Terminal output of commands: messages, tables, file names, progress, matches, segments, and output formats."""

from __future__ import annotations

import math
import os
import re
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from vidkin._base.values import table_cell
from vidkin.cli.commands import Status, is_quiet
from vidkin.rendering.text import clock, clock_range, describe_parts, printable
from vidkin.similarity.scale import UNRELATED

# Rich is imported by what draws: a command that prints JSON, or whose progress nobody sees, does without.
if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, OverflowMethod, RenderResult
    from rich.measure import Measurement
    from rich.progress import Progress, ProgressColumn, Task, TaskID
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    from vidkin.index import Match
    from vidkin.similarity import Segment

# Terminals below this have tables without lines between the columns, and below the second with one space there.
ROOMY, _NARROW = 100, 70

_WORDS = re.compile(r"(?:`[^`]*`|[^\s`]|`)+")

# Columns of text up to this width are never folded.
_WORD = 14

# How much more room a name gets than text that can be folded.
_TIMES_TEXT = 2

# What a name keeps at least, and what it must keep in a table with lines.
_LEAST, _COMFORTABLE = 8, 32


@cache
def _path_text() -> type[Text]:
    from rich.text import Text

    class PathText(Text):
        """The name of a file in a table; where there is no room it is shortened in its middle."""

    return PathText


def shorten(name: str, width: int) -> str:
    """The name in at most ``width`` columns of a terminal: folders go first, then the middle of the file's own name.

    >>> shorten("holidays/2024/beach.mp4", 16), shorten("holidays/2024/at the beach.mp4", 12)
    ('…/2024/beach.mp4', 'at …each.mp4')
    """
    from rich.cells import cell_len

    if cell_len(name) <= width:
        return name
    if width < 2:
        return "…"[:width]
    _, slash, own = name.rpartition("/")
    if slash and cell_len(own) + 2 > width:
        return shorten(own, width)
    head, tail = "", ""
    start = 0 if slash else (width - 1) // 3
    for char in name:
        if cell_len(head + char) > start:
            break
        head += char
    for char in reversed(name):
        if cell_len(char + tail) > width - 1 - cell_len(head):
            break
        tail = char + tail
    if slash:  # whole folders, as far as there is one
        tail = tail[tail.index("/") :]
    return f"{head}…{tail}"


def break_lines(message: str, width: int) -> str:
    """The message in lines of at most this many columns, broken between words.

    A word or a command in backticks that is longer stays in one piece, so that it can be copied.

    >>> print(break_lines("Run `vidkin apply plan.json` to go on.", 20))
    Run
    `vidkin apply plan.json`
    to go on.
    """
    from rich.cells import cell_len

    if cell_len(message) <= width:
        return message
    lines: list[str] = []
    for word in _WORDS.findall(message):
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def break_after_names(message: Text, width: int) -> Text:
    """A message such as ``a.mp4 and b.mp4: score 1.00`` with what is behind its last colon on a line of its own.

    Only if the terminal would otherwise break inside of it. Names of files stay in one piece, so that they can be
    copied.
    """
    from rich.cells import cell_len

    names, colon, rest = message.plain.rpartition(": ")
    begins = cell_len(names + colon) % width
    if not colon or cell_len(rest) > width or begins + cell_len(rest) <= width:
        return message
    first, _, last = message.divide([len(names) + 1, len(names) + 2])
    return plain_text("\n").join((first, last))


def lay_out(
    title: str | None,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Text]],
    *,
    width: int | None,
) -> Table:
    """A table of this width.

    Args:
        title: Line above the table; None for none.
        columns: Heading, and ``left`` or ``right``, of each column. Right ones, and left ones of short words, keep
            their width; long text is folded, and a column of `path_text` is shortened.
        rows: Cells.
        width: Columns of the terminal; None for no limit.
    """
    from rich.cells import cell_len
    from rich.table import Table

    count = len(columns)
    naturals = [
        max([cell_len(heading), *(cell_len(line) for row in rows for line in row[column].plain.split("\n"))])
        for column, (heading, _) in enumerate(columns)
    ]
    paths = {column for column in range(count) if any(isinstance(row[column], _path_text()) for row in rows)}
    widths: list[int | None] = [None] * count
    lines, gap = True, 2
    if width is not None:
        overhead = 3 * count + 1
        needed = sum(
            min(natural, _COMFORTABLE) if column in paths else natural for column, natural in enumerate(naturals)
        )
        lines = sum(naturals) + overhead <= width or (width >= ROOMY and needed + overhead <= width)
        gap = 1 if width < _NARROW else 2
        room = width - (overhead if lines else gap * (count - 1))
        widths = list(_share(naturals, paths, [side for _, side in columns], room))
    grid = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        show_header=any(heading for heading, _ in columns),
        **({} if lines else {"box": None, "padding": (0, gap, 0, 0), "pad_edge": False}),  # type: ignore[arg-type]
    )
    for (heading, side), limit in zip(columns, widths, strict=True):
        right = side == "right"
        grid.add_column(heading, justify="right" if right else "left", no_wrap=right, overflow="fold", max_width=limit)
    for row in rows:
        grid.add_row(*(_fitted(cell, limit) for cell, limit in zip(row, widths, strict=True)))
    return grid


def _share(naturals: Sequence[int], paths: set[int], sides: Sequence[str], room: int) -> list[int]:
    """A width for each column that together are at most ``room``, if the fixed ones leave that much."""
    texts = [
        column
        for column, natural in enumerate(naturals)
        if column not in paths and sides[column] == "left" and natural > _WORD
    ]
    flexible = sorted(paths) + texts
    widths = list(naturals)
    left = room - sum(natural for column, natural in enumerate(naturals) if column not in flexible)
    parts = {column: _TIMES_TEXT if column in paths else 1 for column in flexible}
    # The narrow ones first: what they do not need is there for the others.
    for column in sorted(flexible, key=lambda column: naturals[column] / parts[column]):
        share = left * parts[column] // sum(parts.values())
        widths[column] = min(naturals[column], max(_LEAST, share))
        left -= widths[column]
        del parts[column]
    return widths


def _fitted(cell: Text, width: int | None) -> Text:
    if width is None or not isinstance(cell, _path_text()):
        return cell
    lines = (shorten(line, width) for line in cell.plain.split("\n"))
    return plain_text("\n".join(lines), style=str(cell.style), overflow="fold")


_BAR = 20

# A detail has this much room before there is a bar; with less than the second it would only be dots.
_DETAIL, _LEAST_DETAIL = 24, 8

# Columns for what the terminal shows of Ctrl-C.
_INTERRUPT = 3

# Steps may take minutes: rates are measured over this many seconds, up to now, and not shown before the first second.
PERIOD = 300.0

_EARLIEST = 1.0

# Rates below one per second are shown per minute.
_SLOW = 1.0


class Meter:
    """A progress bar, or nothing where no terminal shows one."""

    def __init__(self, progress: Progress | None = None, task: TaskID | None = None) -> None:
        self._progress = progress
        self._task = task
        self._steps: deque[tuple[float, float]] = deque()
        self._latest = (0.0, -1.0)

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal that shows it; what only a bar needs need not be computed otherwise."""
        return self._progress is not None

    def update(self, done: float, total: float | None, *, detail: str = "") -> None:
        """Show that ``done`` of ``total`` steps are done; ``detail`` is a short text such as a rate."""
        if self._progress is None or self._task is None:
            return
        now = self._progress.get_time()
        if done != self._latest[1]:
            self._latest = now, done
        self._steps.append((now, done))
        while len(self._steps) > 1 and self._steps[1][0] < now - PERIOD:
            self._steps.popleft()
        self._progress.update(
            self._task,
            completed=done,
            total=total,
            detail=printable(detail),
            since=self._steps[0],
            latest=self._latest[0],
        )


@contextmanager
def progress_line(title: str, console: Console, *, shown: bool = True) -> Iterator[Meter]:
    """A line of progress on this console that is gone when the work is done; silent without a terminal."""
    if not (shown and console.is_terminal):
        yield Meter()
        return
    # A command whose results go to a file or a pipe does not wait for it.
    from rich.progress import Progress

    with Progress(_new_column(), console=console, transient=True) as progress:
        yield Meter(progress, progress.add_task(printable(title), total=None, detail=""))


def describe_task(task: Task) -> str:
    """Count, rate and time left, as far as they are known: ``12/310  2.1/s  2:22 left``.

    The rate is that of the steps after the first, until now: it falls while nothing is done. A step that takes longer
    than the steps before it may take as long again.
    """
    if task.total is None:
        passed = task.elapsed or 0.0
        return _clock(passed) if passed >= 1 else ""
    parts = [f"{task.completed:,.0f}/{task.total:,.0f}"]
    began, first = task.fields.get("since", (task.get_time(), 0.0))
    passed = task.get_time() - began
    speed = (task.completed - first) / passed if passed >= _EARLIEST else 0.0
    if speed > 0:
        parts.append(f"{speed:,.1f}/s" if speed >= _SLOW else f"{60 * speed:,.1f}/min")
        if task.completed < task.total:
            waited = task.get_time() - task.fields.get("latest", began)
            parts.append(f"{_clock(max((task.total - task.completed) / speed, waited))} left")
    return "  ".join(parts)


def _new_column() -> ProgressColumn:
    """The only column of a line of progress: the whole line, laid out for the width that there is."""
    from rich.progress import ProgressColumn
    from rich.spinner import Spinner

    class Line(ProgressColumn):
        def __init__(self) -> None:
            super().__init__()
            self._spinner = Spinner("dots")

        def render(self, task: Task) -> _Laid:
            return _Laid(task, self._spinner)

    return Line()


class _Laid:
    """A task drawn into the width of its console: the bar and the detail give way first."""

    def __init__(self, task: Task, spinner: Spinner) -> None:
        self._task, self._spinner = task, spinner

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        # The terminal writes ^C behind the line: it must not begin another one, as then nobody takes this one away.
        width = max(1, options.max_width - _INTERRUPT)
        return Measurement(width, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        task = self._task
        counts = describe_task(task)
        room = options.max_width - 2 - cell_len(counts) - 2
        title = shorten(task.description, max(room, 4))
        room -= cell_len(title) + 2
        cells = [self._spinner.render(task.get_time()), Text(f"{title}  {counts}", no_wrap=True)]
        detail = str(task.fields.get("detail", ""))
        if task.total is not None and room >= _BAR + 2 + (_DETAIL if detail else 0):
            from rich.progress_bar import ProgressBar

            cells.append(ProgressBar(total=task.total, completed=task.completed, width=_BAR))
            room -= _BAR + 2
        if detail and room >= _LEAST_DETAIL:
            shown = Text(detail, style="dim", no_wrap=True)
            shown.truncate(room, overflow="ellipsis")
            cells.append(shown)
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(*cells)
        yield grid


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# Columns where the output is not a terminal: wide enough that no name is ever cut or folded.
_UNLIMITED = 100_000

# With these, Rich takes for a terminal what is none.
_TERMINAL = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}

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


def wrote(path: str | os.PathLike[str], what: str = "") -> None:
    """Say on standard error that a file, or a folder of files, was written, and what is in it."""
    note(plain_text("Wrote ").append_text(path_text(path)).append(f": {what}" if what else ""), style=None)


def error_line(message: str) -> None:
    """Print an error as one red line on standard error."""
    line = " ".join(printable(part.strip()) for part in message.splitlines() if part.strip())
    note(f"Error: {line}", style="bold red")


def end_with_failures(failures: Sequence[object], *, some_usable: bool = True) -> None:
    """Print each failure as an error; if there are any, end the command with the exit status for that.

    Args:
        failures: Errors, or their messages.
        some_usable: Whether anything else could be used.
    """
    for failure in failures:
        error_line(str(failure))
    if failures:
        raise typer.Exit(Status.SOME_FAILED if some_usable else Status.NOTHING_USABLE)


def plain_text(text: str, *, style: str = "", overflow: OverflowMethod | None = None) -> Text:
    """Text in which nothing is markup, for a line that goes on with names of files, or for a cell of a table."""
    from rich.text import Text

    return Text(text, style=style, overflow=overflow)


def path_text(path: str | os.PathLike[str], *, style: str | None = None) -> Text:
    """The name of a file for tables: relative to the current folder if it lies below it."""
    name = os.fspath(path)
    if os.path.isabs(name):
        here = os.getcwd()
        if name.startswith(here.rstrip(os.sep) + os.sep):
            name = os.path.relpath(name, here)
    return _path_text()(printable(name), style=style or "", overflow="fold")


def table(title: str | None, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str | Text]]) -> None:
    """Print a table on standard output; columns that are empty in every row are dropped.

    In a terminal it has the width of the terminal: names of files (`path_text`) are shortened.

    Args:
        title: Line above the table; None for none.
        columns: Heading, and ``left`` or ``right``, of each column.
        rows: Cells of each row; text in them is not markup.
    """
    filled = [position for position in range(len(columns)) if not rows or any(len(row[position]) for row in rows)]
    cells = [
        [plain_text(cell) if isinstance(cell, str) else cell for cell in (row[position] for position in filled)]
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
    if not _may_draw(sys.stderr):
        yield Meter()
        return
    console = _console(stderr=True)
    with progress_line(title, console, shown=not is_quiet()) as bar:
        if console.is_terminal and not is_quiet():
            _with_progress.append(console)
        try:
            yield bar
        finally:
            if console in _with_progress:
                _with_progress.remove(console)


def _may_draw(stream: TextIO) -> bool:
    """Whether Rich may take a stream for a terminal, which it asks and which variables of the environment overrule."""
    return stream.isatty() or not _TERMINAL.isdisjoint(os.environ) or "ipykernel" in sys.modules


def _print(console: Console, message: str | Text, style: str | None) -> None:
    if not isinstance(message, str):
        message = break_after_names(message, console.width)
    elif "\n" not in message:
        message = break_lines(message, console.width)
    console.print(message, style=style, markup=False, highlight=False, soft_wrap=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=_UNLIMITED, no_color=True)
    return console


class OutputFormat(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    PLAIN = "plain"
    TSV = "tsv"
    JSON = "json"


FormatOption = Annotated[
    OutputFormat,
    typer.Option(
        "--format",
        "-f",
        metavar="table|plain|tsv|json",
        help="A table; plain lines without a frame; tab-separated values; JSON.",
    ),
]


_COLUMNS = (
    "query",
    "rank",
    "score",
    "path",
    "missing",
    "query_start",
    "query_end",
    "target_start",
    "target_end",
    "speed",
    "mirrored",
    "turned",
    "picture",
    "sound",
)


def print_plain(matches: Sequence[Match]) -> None:
    """One line a match: score, time in the file, name."""
    for match in matches:
        best = next(iter(match.segments or match.sound_segments), None)
        times = "" if best is None else clock_range(best.target_start, best.target_end)
        say(plain_text(f"{match.score:.2f}  {times:<19}  ").append_text(path_text(match.path)))


def print_tsv_header() -> None:
    """Names of the columns of :func:`print_tsv`."""
    write_tsv(_COLUMNS)


def print_tsv(query: Path, matches: Sequence[Match], *, first_rank: int) -> None:
    """One line for each segment, one for a match without any; columns are separated by tabs, times are seconds. Where
    the picture has no segments, they are those of the sound."""
    for rank, match in enumerate(matches, start=first_rank):
        facts = (os.fspath(query), str(rank), f"{match.score:.4f}", match.path, yes_no(match.missing))
        witnesses = ["" if value is None else f"{value:.4f}" for value in (match.picture, match.sound)]
        segments = match.segments or match.sound_segments
        for segment in segments:
            seconds = (
                segment.query_start,
                segment.query_end,
                segment.target_start,
                segment.target_end,
                segment.speed,
            )
            edits = yes_no(segment.mirrored), str(segment.turned)
            write_tsv((*facts, *(f"{value:.3f}" for value in seconds), *edits, *witnesses))
        if not segments:
            write_tsv((*facts, *[""] * (len(_COLUMNS) - len(facts) - 2), *witnesses))


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


_SEGMENT_COLUMNS = (("query", "right"), ("in file", "right"), ("speed", "right"), ("edits", "left"))

# Speeds this close to 1 are not shown.
_USUAL_SPEED = 0.03

# From this many seconds on times have hours.
_HOUR = 3600.0

# In a narrow terminal.
_MIRRORED, _TURNED = "↔", "↻"


def print_matches(matches: Sequence[Match], *, first_rank: int = 1) -> None:
    """Rank, score, where it matches, and the file; further segments of a file on lines of their own."""
    rows: list[list[str | Text]] = []
    # The score is that of the picture unless the sound decides.
    witnesses = [
        name
        for name in ("picture", "sound")
        if any(getattr(match, name) is not None for match in matches if match.sound is not None)
        and any(getattr(match, name) != match.score for match in matches)
    ]
    for rank, match in enumerate(matches, start=first_rank):
        style = "dim" if match.score < UNRELATED else ""
        name = path_text(match.path, style=style)
        if match.missing:
            name.append(" (missing)", style="red")
        # Where the picture says nothing, the sound says where.
        is_heard = match.sound is not None and (match.picture or 0.0) < UNRELATED <= match.score
        segments = match.sound_segments if is_heard else match.segments
        first = _segment_cells(segments[0]) if segments else [""] * len(_SEGMENT_COLUMNS)
        said = ("" if (value := getattr(match, name)) is None else f"{value:.2f}" for name in witnesses)
        scores = [f"{match.score:.2f}", *said]
        rows.append([str(rank), *scores, *first, name])
        rows += [["", *[""] * len(scores), *_segment_cells(segment), ""] for segment in segments[1:]]
    numbers = [(name, "right") for name in ("#", "score", *witnesses)]
    table(None, [*numbers, *_SEGMENT_COLUMNS, ("file", "left")], rows)
    _explain([segment for match in matches for segment in match.segments])
    if any(": same sound" in match.witnesses for match in matches):
        note("High sound and low picture: the same sound over another picture, which is no copy of the video.")


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


def _segment_cells(segment: Segment) -> list[str | Text]:
    speed = "" if _is_usual(segment) else f"{segment.speed:.2f}x"
    ranges = [
        _range(segment.query_start, segment.query_end),
        _range(segment.target_start, segment.target_end),
    ]
    if is_roomy():
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
    """From when to when, to a tenth of a second; in a narrow terminal without spaces."""
    if is_roomy() or end <= start:
        return clock_range(start, end)
    if (terminal_width() or 0) >= _NARROW or end < _HOUR:
        return f"{clock(start)}-{clock(end)}"
    # No place for hours and tenths of both videos and the name; clock() has one decimal.
    return f"{clock(math.floor(start))[:-2]}-{clock(math.ceil(end))[:-2]}"

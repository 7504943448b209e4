"""One line of progress that fits any terminal: current task, count, rate, time left, then a bar and details."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.progress import Progress, ProgressColumn, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from vidkin.cli.terminal.layout import shorten
from vidkin.rendering.text import printable

__all__ = ["Meter", "progress_line"]

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
    """A progress bar; silent without a terminal."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._steps: deque[tuple[float, float]] = deque()
        self._latest = (0.0, -1.0)

    def update(self, done: float, total: float | None, *, detail: str = "") -> None:
        """Show that ``done`` of ``total`` steps are done; ``detail`` is a short text such as a rate."""
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
    with Progress(
        _Line(),
        console=console,
        disable=not (shown and console.is_terminal),
        transient=True,
    ) as progress:
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


class _Line(ProgressColumn):
    """The whole line, laid out for the width that there is."""

    def render(self, task: Task) -> _Laid:
        return _Laid(task, self._spinner)

    def __init__(self) -> None:
        super().__init__()
        self._spinner = Spinner("dots")


class _Laid:
    """A task drawn into the width of its console: the bar and the detail give way first."""

    def __init__(self, task: Task, spinner: Spinner) -> None:
        self._task, self._spinner = task, spinner

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        # The terminal writes ^C behind the line: it must not begin another one, as then nobody takes this one away.
        width = max(1, options.max_width - _INTERRUPT)
        return Measurement(width, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        task = self._task
        counts = describe_task(task)
        room = options.max_width - 2 - cell_len(counts) - 2
        title = shorten(task.description, max(room, 4))
        room -= cell_len(title) + 2
        cells = [self._spinner.render(task.get_time()), Text(f"{title}  {counts}", no_wrap=True)]
        detail = str(task.fields.get("detail", ""))
        if task.total is not None and room >= _BAR + 2 + (_DETAIL if detail else 0):
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

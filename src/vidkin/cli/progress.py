"""A line of progress on a terminal. Loads Rich: imported only where such a line is shown."""

from __future__ import annotations

from collections import deque

from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from vidkin.cli.layout import shorten
from vidkin.rendering.text import printable

_BAR = 20
# The bar appears where the detail has this width, the detail where it has the second.
_DETAIL, _MIN_DETAIL = 24, 8
# The terminal writes ^C behind the line, which must not wrap: Rich would not erase its second half.
_INTERRUPT = 3
# Steps may take minutes: rates are measured over this many seconds, and shown after the first second.
PERIOD, _MIN_PERIOD = 300.0, 1.0


class ProgressLine:
    """Progress of one task.

    Args:
        progress: Where it is drawn.
        title: What is done.
    """

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(printable(title), total=None, detail="")
        self._steps: deque[tuple[float, float]] = deque()
        self._latest = (0.0, -1.0)

    def update(self, done: float, total: float | None, detail: str) -> None:
        """Show that ``done`` of ``total`` steps are done, and a short text."""
        now = self._progress.get_time()
        if done != self._latest[1]:
            self._latest = now, done
        self._steps.append((now, done))
        while len(self._steps) > 1 and self._steps[1][0] < now - PERIOD:
            self._steps.popleft()
        since, latest = self._steps[0], self._latest[0]
        detail = printable(detail)
        self._progress.update(self._task, completed=done, total=total, detail=detail, since=since, latest=latest)


def describe_task(task: Task) -> str:
    """Count, rate and time left, if known: ``12/310  2.1/s  2:22 left``.

    The rate is that of the steps after the first, until now: it falls while nothing is done. A step that takes longer
    than the steps before it may take as long again.
    """
    if task.total is None:
        passed = task.elapsed or 0.0
        return _clock(passed) if passed >= 1 else ""
    parts = [f"{task.completed:,.0f}/{task.total:,.0f}"]
    began, first = task.fields.get("since", (task.get_time(), 0.0))
    passed = task.get_time() - began
    rate = (task.completed - first) / passed if passed >= _MIN_PERIOD else 0.0
    if rate > 0:
        parts.append(f"{rate:,.1f}/s" if rate >= 1 else f"{60 * rate:,.1f}/min")
        if task.completed < task.total:
            waited = task.get_time() - task.fields.get("latest", began)
            parts.append(f"{_clock(max((task.total - task.completed) / rate, waited))} left")
    return "  ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class FittedColumn(ProgressColumn):
    """The whole line in the width of its console: first the bar gives way, then the detail, then the title."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console, self._spinner = console, Spinner("dots")

    def render(self, task: Task) -> Table:
        """Draw the line."""
        counts = describe_task(task)
        room = self._console.width - _INTERRUPT - cell_len(counts) - 4
        title = shorten(task.description, max(room, 4))
        room -= cell_len(title) + 2
        cells = [self._spinner.render(task.get_time()), Text(f"{title}  {counts}", no_wrap=True)]
        detail = Text(str(task.fields.get("detail", "")), style="dim", no_wrap=True)
        if task.total is not None and room >= _BAR + 2 + (_DETAIL if detail else 0):
            cells.append(ProgressBar(total=task.total, completed=task.completed, width=_BAR))
            room -= _BAR + 2
        if detail and room >= _MIN_DETAIL:
            detail.truncate(room, overflow="ellipsis")
            cells.append(detail)
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(*cells)
        return grid


def new_progress(console: Console) -> Progress:
    """A display that draws a line on this console and erases it at the end."""
    return Progress(FittedColumn(console), console=console, transient=True)

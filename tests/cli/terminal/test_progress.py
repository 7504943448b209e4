"""The line of progress: what it says, and that it fits."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, Task

from vidkin.cli.terminal.progress import PERIOD, describe_task, progress_line


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def task(total: float | None, done: float, seconds: float) -> Task:
    """A task that did ``done`` steps in ``seconds``."""
    clock = Clock()
    progress = Progress(get_time=clock, disable=True, speed_estimate_period=PERIOD)
    number = progress.add_task("indexing", total=total)
    for _ in range(int(done)):
        clock.now += seconds / done
        progress.advance(number)
    if not done:
        clock.now = seconds
    return progress.tasks[0]


@pytest.mark.parametrize(
    ("total", "done", "seconds", "shown"),
    [
        (310, 10, 5.0, "10/310  2.0/s  2:30 left"),
        (10, 5, 600.0, "5/10  0.5/min  10:00 left"),
        (3, 3, 6.0, "3/3  0.5/s"),
        (3, 0, 2.0, "0/3"),
        (None, 0, 0.5, ""),
        (None, 0, 75.0, "1:15"),
    ],
)
def test_count_rate_and_time_left(total: float | None, done: float, seconds: float, shown: str) -> None:
    text = describe_task(task(total, done, seconds))
    # The rate is measured from the first step on, one step less.
    if done and total != done:
        assert text.split("  ")[0] == shown.split("  ")[0]
        assert text.endswith(" left")
        assert ("/min" in text) == ("/min" in shown)
    else:
        assert text.split("  ")[0] == shown.split("  ")[0]
        assert "left" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_the_line_fits_and_keeps_the_count(width: int) -> None:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    with progress_line("indexing", console) as bar:
        bar.update(12, 310, detail="61x real time, a very long name of a file in a folder of holidays.mp4")
    lines = [
        line for part in file.getvalue().split("\x1b[2K") for line in part.replace("\r", "\n").splitlines()
    ]
    lines = [line for line in lines if "12/310" in line]
    assert lines
    assert max(map(cell_len, lines)) <= width
    if width >= 60:
        assert "61x real time" in lines[-1]
    # The bar has room where the detail has some already.
    assert ("━" in lines[-1] or "╸" in lines[-1]) == (width >= 80)

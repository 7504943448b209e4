"""The line of progress: what it says, and that it fits."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress

from vidkin.cli.progress import ProgressLine, describe_task, new_progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def described(total: float | None, steps: list[tuple[float, float]], now: float) -> str:
    """What is said ``now`` of a task whose (second, steps done) were told."""
    clock = Clock()
    progress = Progress(get_time=clock, disable=True)
    line = ProgressLine(progress, "indexing")
    for clock.now, done in steps:
        line.update(done, total, "")
    clock.now = now
    return describe_task(progress.tasks[0])


@pytest.mark.parametrize(
    ("total", "steps", "now", "shown"),
    [
        (310, [(0, 0), (2.5, 5), (5, 10)], 5.0, "10/310  2.0/s  2:30 left"),
        (10, [(0, 0), (600, 5)], 600.0, "5/10  0.5/min  10:00 left"),
        (3, [(0, 0), (6, 3)], 6.0, "3/3  30.0/min"),
        (3, [(0, 0)], 2.0, "0/3"),
        (None, [], 0.5, ""),
        (None, [], 75.0, "1:15"),
        # Two broken links are told at once, and say nothing about the videos after them.
        (81, [(20, 1), (20.001, 2)], 20.5, "2/81"),
        (81, [(20, 1), (20.001, 2)], 30.0, "2/81  6.0/min  13:10 left"),
        # Nothing was done for a minute: the rate falls, the time left grows.
        (20, [(0, 0), (60, 10)], 120.0, "10/20  5.0/min  2:00 left"),
        # The last of ten steps has taken eight seconds so far: nobody knows how long it takes.
        (10, [(0, 0), (1, 9)], 9.0, "9/10  1.0/s  0:08 left"),
        # What was before the last five minutes does not count.
        (100, [(0, 0), (1, 50), (400, 60), (401, 62)], 401.0, "62/100  1.8/min  21:07 left"),
    ],
)
def test_count_rate_and_time_left(
    total: float | None, steps: list[tuple[float, float]], now: float, shown: str
) -> None:
    assert described(total, steps, now) == shown


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_the_line_fits_and_keeps_the_count(width: int) -> None:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    with new_progress(console) as progress:
        line = ProgressLine(progress, "indexing")
        line.update(12, 310, "61x real time, a very long name of a file in a folder of holidays.mp4")
    lines = [line for part in file.getvalue().split("\x1b[2K") for line in part.replace("\r", "\n").splitlines()]
    lines = [line for line in lines if "12/310" in line]
    assert lines
    # The terminal has room to write ^C behind it.
    assert max(map(cell_len, lines)) <= width - 3
    if width >= 60:
        assert "61x real time" in lines[-1]
    # The bar has room where the detail has some already.
    assert ("━" in lines[-1] or "╸" in lines[-1]) == (width >= 80)

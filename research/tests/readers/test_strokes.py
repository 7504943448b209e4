"""Pen strokes and the film rendered from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vidkin.datasets import LabelledItem, read_item
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin_research.readers.strokes import draw_strokes, parse_strokes

# A stroke to the right, a pause of one second, a stroke downward.
CORNER = """START
21.0,-21.0,100
84.0,-21.0,600
BREAK
84.0,-21.0,1600
84.0,-84.0,2100
BREAK
"""


def test_points_times_and_strokes_are_parsed() -> None:
    drawing = parse_strokes(CORNER)
    assert drawing.points.tolist() == [[0.2, 0.2], [0.8, 0.2], [0.8, 0.2], [0.8, 0.8]]
    assert drawing.times.tolist() == [0.0, 0.5, 1.5, 2.0]
    assert drawing.starts == (0, 2)
    assert drawing.duration == 2.0


def test_times_never_decrease() -> None:
    drawing = parse_strokes("START\n0,0,0\n1,-1,50\n2,-2,40\n3,-3,60\nBREAK")
    assert drawing.times.tolist() == [0.0, 0.05, 0.05, 0.06]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("START\n1,2\n", r"c1, line 2: '1,2' must be x,y,milliseconds, START or BREAK"),
        ("1,2,x", r"c1, line 1: '1,2,x' must be x,y,milliseconds"),
        ("START\nBREAK\n", r"c1: no pen movement; the file must have lines x,y,milliseconds"),
        ("1,nan,3", r"c1: numbers must be finite"),
    ],
)
def test_other_text_is_rejected(text: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        parse_strokes(text, name="c1")


def test_amount_of_ink_increases_with_time() -> None:
    frames = draw_strokes(parse_strokes(CORNER), np.array([0.0, 0.5, 1.0, 2.0]), size=100)
    assert frames.shape == (4, 100, 100, 3)
    assert frames.dtype == np.uint8
    ink = (frames[..., 0] < 128).sum((1, 2))
    # A dot; a line of 60 pixels, 3 to 4 wide; no change in the pause; a second line.
    assert 4 <= ink[0] <= 40
    assert 180 <= ink[1] <= 300
    assert ink[2] == ink[1]
    assert 1.8 <= ink[3] / ink[1] <= 2.1
    assert frames[1, 20, 50, 0] == 0
    assert frames[1, 50, 80, 0] == 255
    assert frames[3, 50, 80, 0] == 0


def test_strokes_are_not_connected() -> None:
    apart = "START\n10,-10,0\n20,-10,10\nBREAK\n80,-90,20\n90,-90,30\nBREAK"
    (frame,) = draw_strokes(parse_strokes(apart), np.array([1.0]), size=105)
    assert frame[10, 15, 0] == 0
    assert frame[90, 85, 0] == 0
    assert frame[50, 50, 0] == 255


def test_size_of_zero_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="size must be at least 1 pixel, got 0"):
        draw_strokes(parse_strokes(CORNER), np.array([0.0]), size=0)


def test_strokes_end_with_the_finished_drawing(tmp_path: Path) -> None:
    path = tmp_path / "line.txt"
    path.write_text("START\n10,-50,0\n90,-50,1000\nBREAK\n")
    line = LabelledItem(path=path, category="a", group="a")
    frames = read_item(line, "strokes", size=64, frames=3)
    assert frames.shape == (3, 64, 64, 3)
    ink = (frames[..., 0] < 128).sum((1, 2))
    assert ink[0] == ink[1] < ink[2]  # only two points: the line appears when its end is reached
    assert (read_item(line, "strokes", size=64, frames=1)[0] == frames[2]).all()
    assert len(read_item(line, "strokes", size=64)) == 11
    assert len(read_item(line, "strokes", size=64, rate=4)) == 5
    assert len(read_item(line, "strokes", size=64, rate=4, frames=2)) == 2

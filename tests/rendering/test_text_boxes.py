"""Frame boxes as text."""

from __future__ import annotations

import pytest

from vidkin.rendering import describe_parts
from vidkin.rendering.text import describe_box
from vidkin.similarity import WHOLE, Box, Segment


@pytest.mark.parametrize(
    ("box", "words"),
    [
        (WHOLE, ""),
        ((0.05, 0.05, 0.95, 0.97), ""),
        ((0.0, 0.0, 0.5, 1.0), "left half"),
        ((0.5, 0.02, 1.0, 0.98), "right half"),
        ((0.0, 0.5, 1.0, 1.0), "lower half"),
        ((1 / 3, 0.0, 2 / 3, 1.0), "middle 33 %"),
        ((0.66, 0.0, 1.0, 1.0), "right 34 %"),
        ((0.0, 0.0, 1.0, 1 / 3), "upper 33 %"),
        # The middle 50 % of the height is not called a half.
        ((0.0, 0.25, 1.0, 0.75), "middle 50 %"),
        ((0.4, 0.4, 0.97, 0.97), "lower right 57 %"),
        ((0.15, 0.15, 0.85, 0.85), "middle 70 %"),
        ((0.0, 0.25, 0.5, 0.75), "middle left 50 %"),
    ],
)
def test_box_is_described_by_position_and_size(box: Box, words: str) -> None:
    assert describe_box(box) == words


def test_parts_of_file_and_query_are_described() -> None:
    def parts(query_box: Box, target_box: Box) -> str:
        return describe_parts(Segment(0, 5, 0, 5, 0.9, query_box=query_box, target_box=target_box))

    assert parts(WHOLE, WHOLE) == ""
    assert parts(WHOLE, (0.0, 0.0, 0.5, 0.5)) == "upper left 50 % of file"
    assert parts((0.0, 0.0, 0.5, 1.0), WHOLE) == "left half of query"
    assert parts((0.0, 0.13, 1.0, 0.87), (0.0, 0.12, 1.0, 0.86)) == ""  # both are letterboxed
    assert parts((0.0, 0.13, 1.0, 0.87), WHOLE) == "middle 74 % of query"
    assert parts((0.0, 0.0, 0.5, 1.0), (0.0, 0.0, 0.5, 1.0)) == "left half of file, left half of query"
    assert parts((0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)) == "right half of file, left half of query"

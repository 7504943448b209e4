"""Plans of copied and encoded frames, computed from handwritten packets."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.media.piece_writer import PieceStretch, compute_decoding_times, plan_piece
from vidkin.media.stored_pictures import StoredPictures

# Each group of 8 is stored as a key frame, frame 4 before 1, 2 and 3, and frame 7 before 5 and 6.
GROUP = (0, 4, 1, 2, 3, 7, 5, 6)


def make_pictures(*, is_mixable: bool = True, barriers: tuple[int, ...] = ()) -> StoredPictures:
    ranks = np.array([*GROUP, *(8 + rank for rank in GROUP)], np.int64)
    return StoredPictures(
        ordinals=np.arange(16),
        stamps=ranks * 10,
        ranks=ranks,
        entries=np.array([0, 8]),
        barriers=np.array(barriers, np.int64),
        is_mixable=is_mixable,
    )


@pytest.mark.parametrize(
    ("start", "end", "stretches"),
    [
        (0, 16, [(0, 16, True)]),
        (8, 13, [(8, 13, True)]),
        (3, 13, [(3, 8, False), (8, 13, True)]),
        (8, 12, [(8, 9, True), (9, 12, False)]),
        (2, 6, [(2, 6, False)]),
        (0, 9, [(0, 9, True)]),
        (7, 15, [(7, 8, False), (8, 13, True), (13, 15, False)]),
    ],
)
def test_pieces_are_divided_into_copied_and_encoded_segments(
    start: int, end: int, stretches: list[tuple[int, int, bool]]
) -> None:
    assert plan_piece(make_pictures(), start, end) == [PieceStretch(*stretch) for stretch in stretches]


def test_everything_is_encoded_if_frames_cannot_be_mixed_or_copied() -> None:
    assert plan_piece(make_pictures(is_mixable=False), 3, 13) == [PieceStretch(3, 13, False)]
    assert plan_piece(make_pictures(is_mixable=False), 8, 13) == [PieceStretch(8, 13, True)]
    assert plan_piece(None, 8, 13) == [PieceStretch(8, 13, False)]


def test_hidden_packets_are_not_copied() -> None:
    """A hidden packet before frame 5 ends the copied segment; copying resumes at the next group."""
    assert plan_piece(make_pictures(barriers=(5,)), 0, 16) == [
        PieceStretch(0, 5, True),
        PieceStretch(5, 8, False),
        PieceStretch(8, 16, True),
    ]


def test_decoding_times_increase_and_are_never_late() -> None:
    shown = [0, 40, 10, 20, 30, 70, 50, 60]
    times = compute_decoding_times(shown)
    assert times == [-10, 0, 10, 20, 30, 40, 50, 60]
    assert all(time <= stamp for time, stamp in zip(times, shown, strict=True))
    assert compute_decoding_times([0, 10, 25]) == [0, 10, 25]
    assert compute_decoding_times([7]) == [7]

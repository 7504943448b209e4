"""A window that moves over the picture, as reframes for upright screens do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from vidkin.similarity.copies import follow_window, side_by_side

from tests.support.arrays import unit
from vidkin.similarity import CopyScorer, FrameFeatures

WHOLE = (0.0, 0.0, 1.0, 1.0)
COLUMNS = tuple((left, 0.0, left + 1 / 3, 1.0) for left in (0.0, 1 / 6, 1 / 3, 1 / 2, 2 / 3))
HALVES = ((0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0))


def random_frames(frames: int, *, seed: int, views: int = 1) -> NDArray[np.floating]:
    values = np.random.default_rng(seed).standard_normal((frames, views, 1, 64))
    return unit(values)


def features(values: NDArray[np.floating], boxes: tuple[tuple[float, ...], ...]) -> FrameFeatures:
    frames, views = values.shape[:2]
    return FrameFeatures(
        values,
        np.arange(float(frames)),
        np.ones(frames, np.float32),
        baseline=np.full((frames, views), 0.3, np.float32),
        boxes=np.broadcast_to(np.array(boxes), (frames, views, 4)),
    )


def test_columns_of_one_width_are_places_of_a_window() -> None:
    boxes = (WHOLE, *HALVES, *COLUMNS, (0.0, 0.0, 0.0, 0.0))
    assert side_by_side(features(random_frames(3, seed=1, views=len(boxes)), boxes)) == [[3, 4, 5, 6, 7]]
    rows = tuple((top, left, bottom, right) for left, top, right, bottom in (WHOLE, *HALVES, *COLUMNS))
    assert side_by_side(features(random_frames(3, seed=1, views=len(rows)), rows)) == [[3, 4, 5, 6, 7]]
    # Three places are too few for a window to move over.
    few = (WHOLE, *COLUMNS[::2])
    assert side_by_side(features(random_frames(3, seed=1, views=4), few)) == []
    assert side_by_side(features(random_frames(3, seed=1), (WHOLE,))) == []


def test_columns_between_black_bars_are_found() -> None:
    """The picture is the middle half of the frame: its columns do not begin at the borders of the frame."""
    boxes = tuple((0.25 + left / 2, 0.1, 0.25 + right / 2, 0.9) for left, _, right, _ in (WHOLE, *COLUMNS))
    assert side_by_side(features(random_frames(2, seed=1, views=6), boxes)) == [[1, 2, 3, 4, 5]]


def test_the_window_is_where_each_frame_matches_best() -> None:
    video = features(random_frames(6, seed=2, views=6), (WHOLE, *COLUMNS))
    maps = np.zeros((5, 6, 6), np.float32)
    for frame, place in enumerate((0, 0, 0, 4, 4, 4)):
        maps[place, frame, frame] = 0.8
    window, frame_map = follow_window(video, [1, 2, 3, 4, 5], maps)
    assert window.boxes is not None
    # Averaged over three frames, the last frame of the first place and the first of the second keep theirs.
    assert window.boxes[:, 0, 0].tolist() == pytest.approx([0, 0, 0, 2 / 3, 2 / 3, 2 / 3])
    assert np.array_equal(frame_map, 0.8 * np.eye(6, dtype=np.float32))
    assert np.array_equal(window.values[5, 0], video.values[5, 5])
    assert window.baseline is not None
    assert window.baseline.shape == (6, 1)


@pytest.mark.parametrize("of_query", [True, False])
def test_a_window_that_moves_matches_over_its_whole_length(of_query: bool) -> None:
    """A copy of 15 s shows the first column of the picture, 3 s later the second, and so on."""
    copy = random_frames(15, seed=3)
    whole = random_frames(15, seed=4, views=6)
    for place in range(5):
        at = slice(3 * place, 3 * place + 3)
        whole[at, place + 1] = copy[at, 0]
    pair = features(whole, (WHOLE, *COLUMNS)), features(copy, (WHOLE,))
    query, target = pair if of_query else pair[::-1]
    (result,) = CopyScorer().score(query, [target])
    segment = result.segments[0]
    assert result.score > 0.9
    assert segment.query_end - segment.query_start > 13
    # The box is that of the middle of the way.
    assert (segment.query_box if of_query else segment.target_box) == pytest.approx(COLUMNS[2])
    still = whole.copy()
    still[3:, 1:] = random_frames(15, seed=5, views=6)[3:, 1:]
    pair = features(still, (WHOLE, *COLUMNS)), features(copy, (WHOLE,))
    query, target = pair if of_query else pair[::-1]
    (result,) = CopyScorer().score(query, [target])
    # Only the first three seconds are in one of the columns.
    assert result.score < 0.8
    assert result.segments[0].query_end <= 3

"""Exact nearest-neighbor search in blocks equals sorting all windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.index.helpers import units
from vidkin.errors import InvalidArgumentError
from vidkin.index import NO_WINDOW, no_windows
from vidkin.index.storage import contract as exact
from vidkin.index.storage.contract import WindowMatrix


def windows(*rows: list[float]) -> NDArray[np.float16]:
    return units(np.array(rows)).astype(np.float16)


def random_matrix(count: int, dimension: int = 5, seed: int = 0) -> WindowMatrix:
    generator = np.random.default_rng(seed)
    vectors = units(generator.standard_normal((count, dimension), np.float32))
    numbers = np.arange(count)
    return WindowMatrix(vectors, numbers + 100, numbers)


def test_windows_of_videos_are_concatenated_in_id_order() -> None:
    matrix = WindowMatrix.of_videos(
        {7: windows([1.0, 0]), 3: windows([0.0, 1], [1.0, 1]), 5: np.zeros((0, 2), np.float16)}
    )
    assert matrix.video_ids.tolist() == [3, 3, 7]
    assert matrix.windows.tolist() == [0, 1, 0]
    assert len(matrix) == 3


def test_videos_without_windows_are_an_empty_matrix() -> None:
    matrix = WindowMatrix.of_videos({1: np.zeros((0, 4), np.float16)})
    assert len(matrix) == 0
    nearest = matrix.nearest(np.ones((2, 9), np.float32), 3)
    assert nearest.video_ids.tolist() == [[NO_WINDOW] * 3] * 2
    assert nearest.scores.tolist() == [[-1] * 3] * 2


def test_nearest_windows_match_a_hand_computed_example() -> None:
    matrix = WindowMatrix.of_videos({1: windows([1.0, 0], [0.0, 1]), 2: windows([3.0, 4])})
    nearest = matrix.nearest(np.array([[0.0, 1.0], [1.0, 0.0]], np.float32), 2)
    assert nearest.video_ids.tolist() == [[1, 2], [1, 2]]
    assert nearest.windows.tolist() == [[1, 0], [0, 0]]
    assert nearest.scores.flatten().tolist() == pytest.approx([1, 0.8, 1, 0.6], abs=1e-3)


@given(st.integers(min_value=1, max_value=400), st.integers(min_value=1, max_value=12), st.integers(0, 50))
def test_blockwise_search_equals_full_sorting(count: int, limit: int, seed: int) -> None:
    matrix = random_matrix(count, seed=seed)
    queries = random_matrix(3, seed=seed + 1).vectors
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_MAX_SCORES", 1)
        patch.setattr(exact, "_QUERIES_PER_BLOCK", 2)
        nearest = matrix.nearest(queries, limit)
    scores = queries @ matrix.vectors.T
    expected = -np.sort(-scores, axis=1)[:, :limit]
    width = expected.shape[1]
    assert np.allclose(nearest.scores[:, :width], expected.clip(-1, 1), atol=1e-6)
    rows = nearest.windows[:, :width]
    assert np.allclose(np.take_along_axis(scores, rows, axis=1), expected, atol=1e-6)
    assert np.array_equal(nearest.video_ids[:, :width], rows + 100)
    assert bool((nearest.video_ids[:, width:] == NO_WINDOW).all())


def test_equal_windows_keep_their_order() -> None:
    same = WindowMatrix.of_videos({video_id: windows(*[[0.0, 1.0]] * 50, [1.0, 0.0]) for video_id in range(1, 9)})
    nearest = same.nearest(np.array([[0.0, 1.0], [1.0, 0.0]], np.float32), 9)
    assert nearest.video_ids[0].tolist() == [1] * 9
    assert nearest.windows[0].tolist() == list(range(9))
    assert nearest.video_ids[1].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 1]
    assert nearest.windows[1].tolist() == [50] * 8 + [0]


def test_only_windows_of_existing_videos_are_searched() -> None:
    matrix = random_matrix(10)
    known = np.arange(10) % 2 == 0
    fewer = matrix.of_known(known)
    assert fewer.windows.tolist() == [0, 2, 4, 6, 8]
    assert matrix.of_known(np.ones(10, np.bool_)) is matrix
    assert set(fewer.nearest(matrix.vectors[1:2].astype(np.float32), 9).windows[0].tolist()) == {
        0,
        2,
        4,
        6,
        8,
        NO_WINDOW,
    }


def test_queries_of_a_different_dimension_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="must have dimension 5, like the index, got 4"):
        random_matrix(3).nearest(np.zeros((1, 4), np.float32), 1)


def test_empty_matrix_returns_no_windows() -> None:
    table = no_windows(2, 0)
    assert table.video_ids.shape == (2, 0)
    assert no_windows(0, 3).scores.shape == (0, 3)

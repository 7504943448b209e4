"""The first stage of a search selects candidate videos for exact scoring."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from tests.index.helpers import units
from vidkin.index import NO_WINDOW, NearestWindows, VectorStore
from vidkin.index.query.candidates import find_candidates, margin_votes, query_vectors, rank_candidates
from vidkin.similarity import FrameFeatures


def nearest_windows(*rows: list[tuple[int, float]]) -> NearestWindows:
    table = np.array(rows)
    ids = table[:, :, 0].astype(np.int64)
    return NearestWindows(ids, np.zeros_like(ids), table[:, :, 1].astype(np.float32))


def test_fewer_windows_per_vector_are_looked_up_among_many_videos() -> None:
    values = units(np.random.default_rng(1).standard_normal((2, 4, 64), np.float32)).astype(np.float16)
    look = FrameFeatures.of_whole(values, np.arange(2.0), baseline=np.zeros(2, np.float32))
    for videos, count, windows in ((4095, 100, 400), (4096, 100, 64), (4096, 1000, 500), (4096, 7, 28)):
        store = OneAnswer(nearest_windows([(1, 0.9)], [(1, 0.8)]), videos)
        assert find_candidates(cast(VectorStore, store), look, count) == [1]
        assert store.asked == [windows]


def promises(nearest: NearestWindows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Sum the votes of all vectors for each video."""
    ids, ways = margin_votes(nearest)
    return ids, ways.sum(axis=0)


def test_video_close_to_every_vector_ranks_above_one_closer_to_a_single_vector() -> None:
    ids, promise = promises(
        nearest_windows(
            [(1, 0.9), (2, 0.8), (3, 0.5)],
            [(2, 0.8), (4, 0.6), (5, 0.5)],
            [(2, 0.85), (6, 0.6), (6, 0.5)],
        )
    )
    assert ids.tolist() == [1, 2, 3, 4, 5, 6]
    # Relative to the range from 0.5 to 1.02, video 1 has a margin of 0.4 once, and video 2 has 0.3, 0.3 and 0.35.
    expected = [0.4**3, 2 * 0.3**3 + 0.35**3, 0.0, 0.1**3, 0.0, 0.1**3]
    np.testing.assert_allclose(promise, np.array(expected) / 0.52**3, atol=1e-6)


def test_baseline_of_unrelated_videos_is_measured_per_vector() -> None:
    """All videos are close to the sky of the first vector, so being close to the second is stronger evidence."""
    ids, promise = promises(nearest_windows([(1, 0.99), (3, 0.98), (4, 0.97)], [(2, 0.9), (3, 0.4), (4, 0.3)]))
    assert ids[np.argsort(-promise)].tolist() == [2, 1, 3, 4]
    none = nearest_windows([(NO_WINDOW, -1.0), (NO_WINDOW, -1.0)])
    assert [column.shape for column in promises(none)] == [(0,), (0,)]
    few = nearest_windows([(7, 0.5), (NO_WINDOW, -1.0)])
    assert [column.tolist() for column in promises(few)] == [[7], [0.0]]


class OneAnswer:
    """A store with this many videos that returns the same nearest windows for every query."""

    def __init__(self, nearest: NearestWindows, videos: int = 10) -> None:
        self._nearest, self._videos = nearest, videos
        self.asked: list[int] = []

    def count(self) -> int:
        return self._videos

    def nearest(self, vectors: NDArray[np.floating], limit: int) -> NearestWindows:
        self.asked.append(limit)
        return self._nearest


def test_ties_are_ordered_by_id() -> None:
    answer = nearest_windows([(1, 0.9), (2, 0.7), (3, 0.5)], [(2, 0.8), (4, 0.55), (5, 0.5)])
    look = FrameFeatures.of_whole(
        units(np.random.default_rng(1).standard_normal((2, 4, 64), np.float32)).astype(np.float16),
        np.arange(2.0),
        baseline=np.zeros(2, np.float32),
    )
    store = cast(VectorStore, OneAnswer(answer))
    assert find_candidates(store, look, 10) == [1, 2, 4, 3, 5]
    assert find_candidates(store, look, 2) == [1, 2]


def test_query_without_detail_has_no_candidates() -> None:
    plain = FrameFeatures.of_whole(np.zeros((2, 1, 64), np.float16), np.arange(2.0), np.zeros(2, np.float32))
    store = OneAnswer(nearest_windows([(1, 0.9)], [(1, 0.8)]))
    assert find_candidates(cast(VectorStore, store), plain, 10) == []
    assert store.asked == []


def test_all_frames_and_parts_of_a_short_query_are_looked_up() -> None:
    values = units(np.random.default_rng(2).standard_normal((12, 2, 1, 64), np.float32))
    values[6:, 1] = 0
    boxes = np.tile(np.array([(0, 0, 1, 1), (0.5, 0.5, 1, 1)], np.float32), (12, 1, 1))
    information = np.ones(12, np.float32)
    information[3] = 0
    query = FrameFeatures(values, np.arange(12.0) / 2, information, boxes=boxes)
    vectors, times, views = query_vectors(query)
    assert times[views == 0].tolist() == [number / 2 for number in range(12) if number != 3]
    # A part has only the frames in which it exists.
    assert times[views == 1].tolist() == [number / 2 for number in range(6) if number != 3]
    assert vectors.shape == (len(times), 64)


def test_parts_present_in_few_frames_of_a_long_query_are_looked_up() -> None:
    values = units(np.random.default_rng(2).standard_normal((600, 2, 1, 64), np.float32))
    values[np.arange(600) % 20 != 3, 1] = 0
    boxes = np.tile(np.array([(0, 0, 1, 1), (0.2, 0.2, 0.8, 0.8)], np.float32), (600, 1, 1))
    _, times, views = query_vectors(FrameFeatures(values, np.arange(600.0), np.ones(600, np.float32), boxes=boxes))
    assert np.count_nonzero(views == 0) == 64
    parts = times[views == 1]
    assert len(parts) == 8
    assert (parts % 20 == 3).all()
    assert parts[0] < 30
    assert parts[-1] > 570


def ways(rows: list[list[float]]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Votes [Q, V] of vectors for the videos 0, 1, ..."""
    return np.arange(len(rows[0])), np.array(rows, np.float32)


def test_video_of_a_clip_inside_a_film_is_selected_despite_many_copies_of_the_film() -> None:
    """Nine videos show the film, with ten vectors; video 9 shows a clip in it, with one vector."""
    film = [[1.0] * 9 + [0.0]] * 10
    clip = [[0.0] * 9 + [0.5]]
    # Two rounds: the film counts 10, then 10 / 4, which is still more than the 0.5 of the clip.
    assert rank_candidates(*ways(film + clip), 5) == [0, 1, 2, 3, 4]
    # Five rounds: 10, 10 / 4, 10 / 9 and 10 / 16, but 10 / 25 = 0.4 is less than 0.5. The other four copies follow.
    assert rank_candidates(*ways(film + clip), 9) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert rank_candidates(*ways([*film, [0.0] * 9 + [0.7]]), 9) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    assert rank_candidates(*ways(film + clip), 10) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_growing_the_pool_selects_the_same_videos_as_a_greedy_search() -> None:
    generator = np.random.default_rng(3)
    table = (generator.random((12, 5000)) ** 8).astype(np.float32)
    left, explained, expected = np.ones(5000, bool), np.zeros(12), []
    for _ in range(50):
        promise = np.where(left, ((1 + explained[:, None]) ** -2 * table).sum(axis=0), -1.0)
        expected.append(int(promise.argmax()))
        left[expected[-1]] = False
        explained += table[:, expected[-1]]
    promise = table.sum(axis=0)
    order = np.argsort(-promise)
    chosen = expected + [place for place in order.tolist() if place not in expected][:50]
    assert rank_candidates(np.arange(5000), table, 100) == sorted(chosen, key=lambda place: -promise[place])


def test_query_without_vectors_has_no_candidates() -> None:
    assert rank_candidates(*margin_votes(nearest_windows([(NO_WINDOW, -1.0)])), 10) == []

"""Sampling and windows match hand-computed values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.index import query_rate, sampling_rate, window_vectors
from vidkin.index.storage.records import find_windows, frame_vectors
from vidkin.similarity import FrameFeatures


@pytest.mark.parametrize(
    ("duration", "base", "rate"),
    [
        (60, 1, 1),
        (8, 1, 1),
        (4, 1, 2),
        (5, 1, 2),
        (2, 1, 2),
        (0.3, 1, 2),
        (0, 1, 2),
        (-1, 1, 2),
        (2, 5, 5),
        (3, 2, 2),
        (7.9, 1, 2),
        (7.9, 0.5, 2),
        (16, 0.25, 0.5),
        (15.9, 0.25, 1),
    ],
)
def test_short_videos_are_sampled_more_densely(duration: float, base: float, rate: float) -> None:
    assert sampling_rate(duration, base) == pytest.approx(rate)


def test_sampling_rate_must_be_positive() -> None:
    with pytest.raises(InvalidArgumentError, match=r"base sampling rate must be positive, got 0.0"):
        sampling_rate(10, 0.0)


def make_features(angles: list[float], *, step: float = 1.0, information: list[float] | None = None) -> FrameFeatures:
    """Frames with one region, described by two-dimensional unit vectors at these angles in degrees."""
    turns = np.array(angles) * math.pi / 180
    count = len(angles)
    return FrameFeatures.of_whole(
        np.stack([np.cos(turns), np.sin(turns)], axis=-1)[:, None].astype(np.float16),
        np.arange(count, dtype=np.float64) * step,
        None if information is None else np.array(information).astype(np.float32),
    )


def spans(features: FrameFeatures) -> list[tuple[int, int]]:
    return [(first, last) for first, last in find_windows(features)[0].tolist()]


def test_only_similar_frames_merge_into_a_window() -> None:
    # 20 degrees apart, cosine 0.94: merged. From their mean at 10 to 90 degrees, cosine 0.17: a new window.
    assert spans(make_features([0, 20, 90])) == [(0, 1), (2, 2)]
    vectors = window_vectors(make_features([0, 20, 90]))
    assert vectors[0].tolist() == pytest.approx([math.cos(math.pi / 18), math.sin(math.pi / 18)], abs=1e-3)
    assert np.linalg.norm(vectors, axis=-1).tolist() == pytest.approx([1.0, 1.0], abs=1e-3)


def test_slow_change_starts_a_new_window_when_it_drifts_from_the_mean() -> None:
    # The mean of 0 and 20 degrees is 10. 40 is 30 degrees away (cosine 0.87) and opens a window, although 20 is closer.
    assert spans(make_features([0, 20, 40, 60, 80])) == [(0, 1), (2, 3), (4, 4)]


def test_windows_are_at_most_ten_seconds_long() -> None:
    assert spans(make_features([0] * 25)) == [(0, 9), (10, 19), (20, 24)]
    assert spans(make_features([0] * 4, step=6.0)) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_frames_without_information_end_a_window() -> None:
    assert spans(make_features([0, 0, 0], information=[1, 0.005, 1])) == [(0, 0), (2, 2)]
    assert spans(make_features([0, 0], information=[0, 0])) == []
    assert window_vectors(make_features([0, 0], information=[0, 0])).shape == (0, 2)


def test_windows_of_no_frames_and_of_one_frame() -> None:
    assert spans(make_features([])) == []
    assert spans(make_features([30])) == [(0, 0)]


def test_frame_with_only_zero_regions_has_no_window() -> None:
    values = np.zeros((2, 3, 4), np.float16)
    values[0, :2, 0] = 1
    features = FrameFeatures.of_whole(values, np.arange(2, dtype=np.float64))
    assert frame_vectors(values)[0].tolist() == [1, 0, 0, 0]
    assert spans(features) == [(0, 0)]


@pytest.mark.parametrize("base", [0.3, 1.0, 3.0, 10.0])
def test_query_samples_include_the_times_of_stored_frames(base: float) -> None:
    """Otherwise, a pair would get a different score in the other direction."""
    for duration in (0.5, 1.9, 3.7, 5.2, 7.9, 8.1, 21.0, 29.5, 44.0, 61.0, 89.0, 400.0):
        ratio = query_rate(duration, base) / sampling_rate(duration, base)
        assert ratio == pytest.approx(round(ratio))
        assert ratio >= 1


def test_queries_are_sampled_more_densely_up_to_120_frames() -> None:
    assert query_rate(2) == 2.0
    assert query_rate(22) == 2.0
    assert query_rate(60) == 2.0
    assert query_rate(61) == 1.0
    assert query_rate(90) == 1.0
    assert query_rate(7200) == 1.0
    assert query_rate(7200, base=2.0) == 2.0
    assert query_rate(10, base=8.0) == 8.0
    assert query_rate(0) == 2.0
    with pytest.raises(InvalidArgumentError, match="base sampling rate must be positive, got 0"):
        query_rate(10, base=0)


def test_windows_of_all_views_equal_windows_of_each_view() -> None:
    draw = np.random.default_rng(0)
    centers = draw.normal(size=(4, 3, 8)).repeat(10, axis=0)
    values = centers + draw.normal(size=centers.shape) * 0.5
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    values[::3, 2] = 0  # not described in every third frame
    information = draw.uniform(0.0, 1.0, 40).round(1)
    times = np.arange(40) * 0.5

    def windows(views: list[int], **settings: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        boxes = np.tile(np.array([0, 0, 1, 1], np.float32), (40, len(views), 1))
        part = values[:, views, None].astype(np.float16)
        return find_windows(FrameFeatures(part, times, information.astype(np.float32), boxes=boxes), **settings)

    together = windows([0, 1, 2])
    alone = [windows([0]), *(windows([view], similarity=0.45, longest=30.0) for view in (1, 2))]
    assert min(len(vectors) for _, vectors in alone) >= 4
    for column in range(2):
        np.testing.assert_array_equal(together[column], np.concatenate([one[column] for one in alone]))

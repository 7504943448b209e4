"""Maps of view pairs, and what the score of copies makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from vidkin.similarity.evidence import (
    ComparedVideo,
    PairMaps,
    compare_views,
    most_similar,
    similarities_from,
)

from tests.support.arrays import unit
from vidkin.similarity import BestScores, CopyScorer, FrameFeatures, frame_similarity

HALF = (0.0, 0.0, 0.5, 1.0)


def random_frames(frames: int, *, seed: int, views: int = 1) -> NDArray[np.floating]:
    values = np.random.default_rng(seed).standard_normal((frames, views, 1, 64))
    return unit(values)


def features(values: NDArray[np.floating]) -> FrameFeatures:
    """Views beside the whole are all of the left half."""
    frames, views = values.shape[:2]
    boxes = np.array([(0.0, 0.0, 1.0, 1.0), *(HALF for _ in range(views - 1))])
    return FrameFeatures(
        values,
        np.arange(float(frames)),
        np.ones(frames, np.float32),
        baseline=np.full((frames, views), 0.3, np.float32),
        boxes=np.broadcast_to(boxes, (frames, views, 4)),
    )


def compare(query: FrameFeatures, target: FrameFeatures) -> PairMaps:
    return compare_views(ComparedVideo(query), ComparedVideo(target))


def test_one_side_of_every_pair_is_the_whole_picture() -> None:
    query, target = features(random_frames(3, seed=1, views=2)), features(random_frames(4, seed=2, views=3))
    result = compare(query, target)
    assert (result.query_parts.shape, result.target_parts.shape) == ((1, 3, 4), (2, 4, 3))
    maps = {(0, 0): result.whole, (1, 0): similarities_from(result.query_parts[0])}
    maps |= {(0, view + 1): similarities_from(part).T for view, part in enumerate(result.target_parts)}
    for (first, second), frame_map in maps.items():
        cosine = query.values[:, first, 0] @ target.values[:, second, 0].T
        floor = 0.3 if first == second == 0 else 0.3 + 0.15 * 0.7
        np.testing.assert_allclose(frame_map, ((cosine - floor) / (1 - floor)).clip(0, 1), atol=1e-6)


@pytest.mark.parametrize("cells", [1 << 18, 300, 1])
def test_no_cell_of_a_map_is_above_its_bound(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few videos are compared at once; of those that are too long nothing is said."""
    monkeypatch.setattr("vidkin.similarity.evidence._MOST_CELLS_AT_ONCE", cells)
    query = features(random_frames(6, seed=1, views=3))
    values = [random_frames(4 + number, seed=10 + number, views=1 + number % 3) for number in range(7)]
    values[3][2, 0] = query.values[4, 2]  # a part of the query shows the whole of a target
    values[5][:, 1:] = 0
    targets = [features(each) for each in values]
    bounds = most_similar(ComparedVideo(query), [ComparedVideo(target) for target in targets]).tolist()
    for target, bound in zip(targets, bounds, strict=True):
        maps = compare(query, target)
        nearest = min(float(part.min()) for part in (maps.query_parts, maps.target_parts, np.ones(1)) if part.size)
        most = max(float(maps.whole.max()), 1 - nearest)
        # Processors round products of matrices differently.
        assert most <= bound + 1e-6
        assert bound <= (most + 2e-5 if cells == 1 << 18 else 1 + 1e-6)
    assert bounds[3] == pytest.approx(1)
    assert (max(bounds[4:]) < 0.9) is (cells > 1)


def test_videos_without_a_similar_frame_score_zero_and_have_their_map() -> None:
    query, target = features(random_frames(9, seed=1, views=3)), features(random_frames(7, seed=2, views=3))
    (result,) = CopyScorer().score(query, [target])
    assert (result.score, result.segments) == (0.0, ())
    np.testing.assert_array_equal(result.map, compare(query, target).whole)
    assert CopyScorer().score_best(query, {3: target}, BestScores(2)) == {}


def test_what_was_computed_of_features_is_computed_once() -> None:
    video = features(random_frames(5, seed=1, views=3))
    assert ComparedVideo(video).part_values is ComparedVideo(video).part_values
    assert ComparedVideo(replace(video, information=np.zeros(5))).part_values is not ComparedVideo(video).part_values


def test_only_frames_with_described_parts_have_maps_of_parts() -> None:
    values = random_frames(5, seed=1, views=3)
    values[[0, 3], 1:] = 0
    query, target = features(values), features(random_frames(4, seed=2))
    result = compare(query, target)
    assert (result.query_parts.shape, result.target_parts.shape) == ((2, 3, 4), (0, 0, 5))
    complete = compare(query.frames(np.array([1, 2, 4])), target)
    np.testing.assert_allclose(result.query_parts, complete.query_parts, atol=1e-6)
    values[:, 1:] = 0
    assert compare(features(values), target).query_parts.size == 0


def test_regions_are_compared_in_both_directions() -> None:
    values = unit(np.random.default_rng(3).standard_normal((4, 2, 3, 16)))
    values[1, 0, 2] = 0  # an empty region has no say
    query, target = features(values), features(values[:3])
    expected = frame_similarity(
        values[:, 0], values[:3, 0], symmetric=True, query_mask=values[:, 0].any(-1), target_mask=values[:3, 0].any(-1)
    )
    np.testing.assert_allclose(compare(query, target).whole, ((expected - 0.3) / 0.7).clip(0, 1), atol=1e-6)


def test_a_view_of_the_query_shows_the_target() -> None:
    """The query is a split screen: its left half is the target."""
    target = random_frames(12, seed=3)
    query = random_frames(12, seed=4, views=2)
    query[:, 1] = target[:, 0]
    (result,) = CopyScorer().score(features(query), [features(target)])
    assert result.score > 0.9
    assert result.segments[0].query_box == HALF
    assert result.segments[0].target_box == (0.0, 0.0, 1.0, 1.0)


def test_a_view_of_the_target_shows_the_query() -> None:
    query = random_frames(12, seed=3)
    target = random_frames(12, seed=4, views=2)
    target[:, 1] = query[:, 0]
    (result,) = CopyScorer().score(features(query), [features(target)])
    assert result.score > 0.9
    assert result.segments[0].target_box == HALF


def test_the_whole_is_preferred_where_both_match() -> None:
    values = random_frames(12, seed=5, views=2)
    values[:, 1] = values[:, 0]
    (result,) = CopyScorer().score(features(values), [features(values)])
    assert result.score == pytest.approx(1.0, abs=1e-5)
    assert result.segments[0].query_box == (0.0, 0.0, 1.0, 1.0)


def test_views_that_are_not_there_match_nothing() -> None:
    values = random_frames(12, seed=6, views=2)
    values[:, 1] = 0
    empty = replace(features(values), baseline=np.zeros((12, 2), np.float32))
    assert CopyScorer().score(empty, [features(random_frames(12, seed=7))])[0].score == 0.0


def test_unrelated_views_stay_unrelated() -> None:
    query = features(random_frames(20, seed=8, views=18))
    targets = [features(random_frames(20, seed=100 + seed, views=18)) for seed in range(20)]
    assert max(result.score for result in CopyScorer().score(query, targets)) < 0.2


def test_parts_must_be_more_similar_than_wholes() -> None:
    """A cosine of .5 above a baseline of .3 is .2 / .7 of the way to 1; for a part the baseline is .3 + .15 * .7."""
    first = np.zeros((1, 2, 1, 64), np.float32)
    first[..., 0] = 1.0
    second = np.zeros((1, 1, 1, 64), np.float32)
    second[..., 0], second[..., 1] = 0.5, 0.75**0.5
    result = compare(features(first), features(second))
    assert result.whole.item() == pytest.approx(0.2 / 0.7, abs=1e-4)
    assert similarities_from(result.query_parts).item() == pytest.approx(0.095 / 0.595, abs=1e-4)


def test_the_map_has_every_frame_where_parts_were_described_in_some() -> None:
    query = random_frames(12, seed=3)
    target = random_frames(12, seed=4, views=2)
    target[:, 1] = query[:, 0]
    target[1::2, 1] = 0  # the part was described in every second frame
    (result,) = CopyScorer().score(features(query), [features(target)])
    assert result.segments[0].target_box == HALF
    assert result.map.shape == (12, 12)
    assert bool((result.map.diagonal()[::2] > 0.99).all())
    # A frame without a description shows what its neighbor shows.
    np.testing.assert_allclose(result.map[:, 1], result.map[:, 0])

"""Scores of pairs on descriptors made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.arrays import unit
from vidkin.similarity import (
    BestScores,
    CopyScorer,
    FrameFeatures,
    ScorerOfBest,
    ScoreSettings,
    background_baseline,
    calibrated_map,
)


def random_values(frames: int, *, seed: int, regions: int = 4, dimension: int = 64) -> NDArray[np.floating]:
    generator = np.random.default_rng(seed)
    values = generator.standard_normal((frames, regions, dimension))
    return unit(values)


def frame_set(
    values: NDArray[np.floating], *, rate: float = 1.0, weights: NDArray[np.floating] | None = None
) -> FrameFeatures:
    return FrameFeatures.of_whole(
        values,
        np.arange(float(len(values))) / rate,
        np.ones(len(values), np.float32) if weights is None else weights,
        baseline=np.full(len(values), 0.3, np.float32),
    )


def test_identical_videos_score_one_over_their_whole_length() -> None:
    video = frame_set(random_values(12, seed=1))
    result = CopyScorer().score(video, [video])[0]
    assert result.score == pytest.approx(1.0, abs=1e-6)
    assert len(result.segments) == 1
    segment = result.segments[0]
    assert (segment.query_start, segment.query_end) == (0.0, 12.0)
    assert (segment.target_start, segment.target_end) == (0.0, 12.0)
    assert segment.score == pytest.approx(1.0, abs=1e-6)
    assert not segment.mirrored
    assert result.map.shape == (12, 12)


def test_no_segment_reaches_beyond_the_end_of_a_video() -> None:
    """The last of 12 frames a second stands for the second after it, of which there are .2 s."""
    values = random_values(12, seed=1)
    short = replace(frame_set(values), end=11.2)
    (segment,) = CopyScorer().score(short, [short])[0].segments
    assert (segment.query_start, segment.query_end) == (0.0, 11.2)
    assert (segment.target_start, segment.target_end) == (0.0, 11.2)
    # Of two videos each is cut at its own end, also where the roles are changed for a coarse target.
    long = random_values(200, seed=3)
    coarse = replace(frame_set(long[::4], rate=0.25), end=400.0)
    (segment,) = CopyScorer().score(replace(frame_set(long[188:]), end=11.5), [coarse])[0].segments
    assert segment.query_end <= 11.5
    (segment,) = CopyScorer().score(frame_set(long[188:]), [replace(frame_set(long), end=199.5)])[0].segments
    assert (segment.query_end, segment.target_end) == (12.0, 199.5)


def test_unrelated_videos_score_zero_and_match_nowhere() -> None:
    query, target = frame_set(random_values(20, seed=1)), frame_set(random_values(30, seed=2))
    result = CopyScorer().score(query, [target])[0]
    assert result.score == 0.0
    assert result.segments == ()


def test_scores_that_cannot_be_among_the_best_are_left_out_and_no_others() -> None:
    """Targets share 24 to 0 of 24 frames with the query, under noise; the best come first, last or in between."""
    values = random_values(24, seed=1)
    query = frame_set(values)
    targets = []
    for number in range(13):
        mixed = unit(values + 0.2 * number * random_values(24, seed=30 + number))
        mixed[: 2 * number] = random_values(24, seed=60 + number)[: 2 * number]
        targets.append(frame_set(mixed))
    scorer = CopyScorer()
    assert isinstance(scorer, ScorerOfBest)
    every = [result.score for result in scorer.score(query, targets)]
    assert every[0] == pytest.approx(1.0, abs=1e-6)
    assert every[12] == 0.0
    for order in (range(13), range(12, -1, -1), (6, 0, 12, 1, 11, 2, 10, 3, 9, 4, 8, 5, 7)):
        best = BestScores(3)
        scored = scorer.score_best(query, {number: targets[number] for number in order}, best)
        assert {number: result.score for number, result in scored.items()} == {n: every[n] for n in scored}
        assert sorted(every, reverse=True)[:3] == sorted((scored[n].score for n in scored), reverse=True)[:3]
        assert best.least == sorted(every)[-3]
    # The best first: then most of the rest is not aligned.
    assert len(scorer.score_best(query, dict(enumerate(targets)), BestScores(3))) < 8


def test_a_video_scored_twice_counts_once_among_the_best() -> None:
    best = BestScores(2)
    best.add(7, 0.9)
    best.add(7, 0.8)
    assert best.least == 0.0
    best.add(3, 0.5)
    assert best.least == 0.5
    best.add(3, 0.95)
    best.add(4, 0.1)
    assert best.least == 0.9


def test_the_order_of_targets_is_kept_and_each_stands_for_itself() -> None:
    query = frame_set(random_values(8, seed=1))
    others = [frame_set(random_values(5 + k, seed=10 + k)) for k in range(3)]
    scores = [result.score for result in CopyScorer().score(query, [others[0], query, *others[1:]])]
    assert scores == [0.0, pytest.approx(1.0, abs=1e-6), 0.0, 0.0]
    assert CopyScorer().score(query, []) == []


def test_an_excerpt_in_a_long_video_is_covered_by_the_query() -> None:
    long = random_values(200, seed=3)
    result = CopyScorer().score(frame_set(long[90:96]), [frame_set(long)])[0]
    assert result.score == pytest.approx(1.0, abs=1e-6)
    assert result.segments[0].target_start == pytest.approx(90, abs=0.51)
    assert result.segments[0].target_end == pytest.approx(96, abs=0.51)


def test_a_short_common_part_of_two_long_videos_counts_by_its_news() -> None:
    first, second = random_values(60, seed=4), random_values(60, seed=5)
    second[20:25] = first[40:45]
    score = CopyScorer().score(frame_set(first), [frame_set(second)])[0].score
    believed = 1 - math.exp(-5 / ScoreSettings().evidence)
    assert score == pytest.approx(1 - (1 - believed) ** 2, abs=0.02)
    # One still frame held for as long is one second of news.
    still = second.copy()
    still[20:25] = first[40]
    first[40:45] = first[40]
    held = CopyScorer().score(frame_set(first), [frame_set(still)])[0].score
    believed = 1 - math.exp(-1 / ScoreSettings().evidence)
    assert held == pytest.approx(1 - (1 - believed) ** 2, abs=0.02)


def test_frames_without_weight_make_no_match_alone_and_cost_nothing_in_company() -> None:
    values = random_values(20, seed=6)
    weights = np.ones(20, np.float32)
    weights[:8] = 0
    other = random_values(20, seed=7)
    other[:8] = values[:8]
    query = frame_set(values, weights=weights)
    assert CopyScorer().score(query, [frame_set(other)])[0].score == 0.0
    assert CopyScorer().score(query, [query])[0].score == pytest.approx(1.0, abs=1e-6)
    nothing = frame_set(values, weights=np.zeros(20, np.float32))
    assert CopyScorer().score(nothing, [nothing])[0].score == 0.0


def test_two_moments_before_one_camera_are_not_copies() -> None:
    scene = random_values(1, seed=8)
    first = unit(scene + 0.5 * random_values(20, seed=9))
    second = unit(scene + 0.5 * random_values(20, seed=10))
    same = CopyScorer().score(frame_set(first), [frame_set(first)])[0].score
    moment = CopyScorer().score(frame_set(first), [frame_set(second)])[0].score
    careless = (
        CopyScorer(ScoreSettings(change_share=0.0, doubt=0.0)).score(frame_set(first), [frame_set(second)])[0].score
    )
    assert same == pytest.approx(1.0, abs=1e-6)
    assert careless > 0.8
    assert moment < 0.6


def test_empty_regions_have_no_say() -> None:
    values = random_values(10, seed=11)
    values[:, 2:] = 0
    assert CopyScorer().score(frame_set(values), [frame_set(values)])[0].score == pytest.approx(1.0, abs=1e-6)


def test_speed_and_mirror_are_reported() -> None:
    values = random_values(40, seed=12)
    fast = frame_set(values[::2])
    result = CopyScorer().score(fast, [frame_set(values)], mirrored=True)[0]
    assert result.segments[0].speed == pytest.approx(2.0, abs=0.1)
    assert result.segments[0].mirrored


def test_half_precision_targets_of_a_store_score_the_same() -> None:
    values = random_values(15, seed=13)
    exact = CopyScorer().score(frame_set(values), [frame_set(values)])[0].score
    stored = CopyScorer().score(frame_set(values), [frame_set(values.astype(np.float16))])[0].score
    assert stored == pytest.approx(exact, abs=2e-3)


def test_the_calibrated_map_keeps_one_and_zeroes_the_unrelated() -> None:
    raw = np.array([[1.0, 0.3], [0.65, -0.2]])
    found = calibrated_map(raw.astype(np.float32), np.array([0.3, 0.3]), np.array([0.1, 0.3]))
    np.testing.assert_allclose(found, np.array([[1.0, 0.0], [0.5, 0.0]]))


def test_the_baseline_is_a_quantile_over_the_background() -> None:
    background = random_values(100, seed=14, regions=1)
    frame = random_values(1, seed=15, regions=1)
    expected = np.quantile((frame[:, 0] @ background[:, 0].T)[0], 0.9)
    np.testing.assert_allclose(background_baseline(frame, background)[0], expected)
    # A few related pictures in the background change little.
    background[:5] = frame[0]
    assert background_baseline(frame, background)[0] < expected + 0.1
    assert background_baseline(frame[:0], background).shape == (0,)


def test_the_map_of_a_part_is_over_all_frames() -> None:
    """A part that was described in frames 0, 2, 4... shows the other video: frames between have the row before."""
    whole, part = random_values(12, seed=1), random_values(12, seed=2)
    part[1::2] = 0.0
    boxes = np.broadcast_to(np.array([[0.0, 0.0, 1.0, 1.0], [0.2, 0.2, 0.8, 0.8]]), (12, 2, 4))
    around = FrameFeatures(np.stack([whole, part], axis=1), np.arange(12.0), np.ones(12, np.float32), boxes=boxes)
    shown = replace(frame_set(random_values(12, seed=2)), baseline=None)
    there = CopyScorer().score(around, [shown])[0]
    back = CopyScorer().score(shown, [around])[0]
    assert min(there.score, back.score) > 0.9
    assert there.map.shape == back.map.shape == (12, 12)
    assert np.array_equal(there.map[1::2], there.map[::2])
    assert there.map[::2, ::2].diagonal().tolist() == pytest.approx([1.0] * 6, abs=1e-5)
    assert there.segments[0].query_box == pytest.approx((0.2, 0.2, 0.8, 0.8))


def test_a_pair_promises_the_seconds_that_are_similar_above_the_threshold_in_any_order() -> None:
    values = random_values(12, seed=1)
    video, other = frame_set(values), frame_set(random_values(12, seed=2))
    # Calibrated, the same frame is similar by 1, which is .7 above the threshold of .3; others are not similar at all.
    shuffled = frame_set(values[np.random.default_rng(0).permutation(12)])
    half = frame_set(values[:6])
    promises = CopyScorer().promise(video, [video, shuffled, half, other])
    assert promises.tolist() == pytest.approx([12 * 0.7, 12 * 0.7, 6 * 0.7, 0.0], abs=1e-4)
    twice = CopyScorer().promise(frame_set(values, rate=2.0), [frame_set(values, rate=2.0)])
    assert twice.tolist() == pytest.approx([6 * 0.7], abs=1e-4)

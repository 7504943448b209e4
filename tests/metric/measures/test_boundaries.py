"""Boundary scores under both rules: small tables, a naive implementation, and 200 labeled videos."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import (
    Boundary,
    DetectionScores,
    boundaries_of_shots,
    boundary_scores,
    clip_scores,
)


@pytest.mark.parametrize(
    ("predicted", "truth", "tolerance", "counts"),
    [
        pytest.param([10, 20], [10, 20], 0, (2, 0, 0), id="exact"),
        pytest.param([11, 20], [10, 20], 0, (1, 1, 1), id="one off"),
        pytest.param([11, 20], [10, 20], 1, (2, 0, 0), id="one off is within 1"),
        pytest.param([12, 7], [10], 2, (1, 1, 0), id="one truth counts once"),
        pytest.param([9, 11], [10], 1, (1, 1, 0), id="a tie counts once"),
        pytest.param([10], [9, 11], 1, (1, 0, 1), id="one detection counts once"),
        # Truth 10 is matched to its nearest detection, 10, although matching it to 9 would have left 10 for truth 12.
        pytest.param([10, 9], [10, 12], 2, (1, 1, 1), id="nearest first, not most matches"),
        pytest.param([35], [(30, 40)], 0, (1, 0, 0), id="inside a transition"),
        pytest.param([31, 39], [(30, 40)], 0, (1, 1, 0), id="a transition counts once"),
        pytest.param([41], [(30, 40)], 0, (0, 1, 1), id="outside a transition"),
        pytest.param([41], [(30, 40)], 1, (1, 0, 0), id="outside but within 1"),
        pytest.param([40], [(30, 40), 40], 0, (1, 0, 1), id="the transition chooses before the cut"),
        pytest.param([35, 40], [(30, 40), 40], 0, (2, 0, 0), id="a transition and a cut match separately"),
        pytest.param([(36, 50)], [(30, 40)], 0, (1, 0, 0), id="intervals that overlap"),
        pytest.param([(0, 100), 60], [(30, 40), 60], 0, (2, 0, 0), id="a long interval sorts first"),
        pytest.param([], [5], 0, (0, 0, 1), id="nothing found"),
        pytest.param([5], [], 0, (0, 1, 0), id="nothing to find"),
        pytest.param([], [], 0, (0, 0, 0), id="empty"),
    ],
)
def test_nearest_rule_counts_matches(
    predicted: list[Boundary], truth: list[Boundary], tolerance: float, counts: tuple[int, int, int]
) -> None:
    assert boundary_scores(predicted, truth, tolerance=tolerance) == DetectionScores(*counts)
    turned = boundary_scores(predicted[::-1], truth[::-1], tolerance=tolerance)
    assert turned == DetectionScores(*counts)


@pytest.mark.parametrize(
    ("predicted", "truth", "tolerance", "counts"),
    [
        # With a tolerance of 2, the cut at frame 10 is the interval [8.5, 10.5].
        pytest.param([10], [12], 2, (1, 0, 0), id="two off"),
        pytest.param([10], [13], 2, (0, 1, 1), id="three off"),
        pytest.param([10], [10], 0, (1, 0, 0), id="exact"),
        pytest.param([10], [11], 0, (0, 1, 1), id="one off, no tolerance"),
        pytest.param([35], [(30, 40)], 2, (1, 0, 0), id="inside a transition"),
        # The transition is [28.5, 41.5], the detections are [42.5, 44.5] and [40.5, 42.5].
        pytest.param([44], [(30, 40)], 2, (0, 1, 1), id="beyond a transition"),
        pytest.param([42], [(30, 40)], 2, (1, 0, 0), id="two beyond a transition"),
        pytest.param([33, 37], [(30, 40)], 2, (1, 1, 0), id="a transition counts once"),
        pytest.param([], [5], 2, (0, 0, 1), id="nothing found"),
        pytest.param([5], [], 2, (0, 1, 0), id="nothing to find"),
    ],
)
def test_overlap_rule_counts_matches(
    predicted: list[Boundary], truth: list[Boundary], tolerance: float, counts: tuple[int, int, int]
) -> None:
    assert boundary_scores(predicted, truth, tolerance=tolerance, rule="overlap") == DetectionScores(*counts)


def naive_nearest(predicted: list[int], truth: list[int], tolerance: int) -> int:
    """Repeatedly match the nearest pair of two lists until none is within the tolerance."""
    left, right, matched = list(predicted), list(truth), 0
    while left and right:
        distance, t, p = min((abs(p - t), t, p) for p in left for t in right)
        if distance > tolerance:
            break
        left.remove(p)
        right.remove(t)
        matched += 1
    return matched


@pytest.mark.parametrize("seed", range(20))
def test_hard_cuts_equal_the_naive_implementation(seed: int) -> None:
    generator = random.Random(seed)
    predicted = generator.sample(range(60), 15)
    truth = generator.sample(range(60), 12)
    tolerance = generator.choice([0, 1, 2])
    scores = boundary_scores(predicted, truth, tolerance=tolerance)
    matched = naive_nearest(predicted, truth, tolerance)
    assert scores == DetectionScores(matched, 15 - matched, 12 - matched)


def test_precision_recall_and_pooled_counts_match_hand_computed_values() -> None:
    first, second = DetectionScores(3, 1, 0), DetectionScores(0, 0, 2)
    assert (first.precision, first.recall) == (0.75, 1.0)
    assert first.f1 == pytest.approx(6 / 7)
    assert (second.precision, second.recall, second.f1) == (0.0, 0.0, 0.0)
    assert first + second == DetectionScores(3, 1, 2)
    nothing = DetectionScores(0, 0, 0)
    assert (nothing.precision, nothing.recall, nothing.f1) == (1.0, 1.0, 1.0)


def test_shots_are_converted_to_boundaries() -> None:
    assert boundaries_of_shots([(0, 9), (10, 24), (30, 40)]) == [10, (25, 29)]
    assert boundaries_of_shots([(0, 9)]) == []
    with pytest.raises(InvalidArgumentError, match="starts at frame 9 after one that ends at 9"):
        boundaries_of_shots([(0, 9), (9, 20)])


def test_clips_are_scored_one_by_one() -> None:
    assert clip_scores([True, True, False, False], [True, False, True, False]) == DetectionScores(1, 1, 1)
    with pytest.raises(InvalidArgumentError, match="the same length, got 1 and 2 clips"):
        clip_scores([True], [True, False])


def test_invalid_input_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="tolerance must be at least 0, got -1"):
        boundary_scores([1], [1], tolerance=-1)
    with pytest.raises(InvalidArgumentError, match=r"a transition must not end before it starts, got \(9, 3\)"):
        boundary_scores([(9, 3)], [1])
    with pytest.raises(InvalidArgumentError, match="rule must be one of 'nearest', 'overlap', got 'best'"):
        boundary_scores([1], [1], rule="best")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="counts must be at least 0"):
        DetectionScores(1, -1, 0)


@pytest.mark.data
def test_scores_of_two_hundred_labeled_videos(shared_data: Path) -> None:
    folder = shared_data / "anchors"
    labels = json.loads((folder / "shot_test_truth.json").read_text())
    total = DetectionScores(0, 0, 0)
    with np.load(folder / "shot_test_probabilities.npz") as probabilities:
        for video, shots in labels.items():
            found = boundaries_of_shots(shots_of_probabilities(probabilities[video] > 0.296))
            truth = boundaries_of_shots([(first, last) for first, last in shots])
            total += boundary_scores(found, truth, tolerance=2, rule="overlap")
    assert total == DetectionScores(2098, 378, 418)
    assert (round(total.precision, 4), round(total.recall, 4), round(total.f1, 4)) == (0.8473, 0.8339, 0.8405)


def shots_of_probabilities(cut: np.ndarray) -> list[tuple[int, int]]:
    """Convert probabilities to shots like the reference network: shots end at the first frame above the threshold."""
    shots, start = [], 0
    for frame in range(len(cut)):
        before = frame > 0 and bool(cut[frame - 1])
        if before and not cut[frame]:
            start = frame
        if not before and cut[frame] and frame != 0:
            shots.append((start, frame))
    if not cut[-1]:
        shots.append((start, len(cut) - 1))
    return shots

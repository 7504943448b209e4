"""A scorer trained on verdicts: values by hand for three features per pair and two thresholds."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.match import KindScorer, ReviewedScorer, ReviewMeasure
from vidkin.match.reviewed import describe_video_whole, pair_numbers
from vidkin.similarity import FrameFeatures

MEASURE = ReviewMeasure("plain", (0.0, 0.0), (1.0, 1.0), (2.0, 0.0, 0.0), kind=1.0, same=2.0)


def film(*vectors: tuple[float, float], weights: list[float] | None = None) -> FrameFeatures:
    return FrameFeatures.of_whole(
        np.array(vectors)[:, None],
        np.arange(float(len(vectors)), dtype=np.float64),
        np.array(weights or [1.0] * len(vectors)),
        "plain",
    )


def chance(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_grades_are_the_probabilities_of_exceeding_each_threshold() -> None:
    """The logit is 2 x the first feature minus the threshold, so the probability at a threshold is one half."""
    assert MEASURE.grade((0.5, 9.0, 9.0)) == (0.5, pytest.approx(chance(-1)))
    assert MEASURE.grade((1.0, 9.0, 9.0)) == (pytest.approx(chance(1)), 0.5)
    of_kind, of_same = MEASURE.grade((0.8, 0.0, 0.0))
    assert of_kind > of_same


def test_features_far_from_a_threshold_do_not_overflow() -> None:
    steep = replace(MEASURE, coefficients=(1e6, 0.0, 0.0))
    assert steep.grade((1.0, 0.0, 0.0)) == (1.0, 1.0)
    low = steep.grade((-1.0, 0.0, 0.0))
    assert max(low) < 1e-200


def test_video_embedding_is_the_weighted_mean_of_its_frames() -> None:
    whole = describe_video_whole(film((1.0, 0.0), (0.0, 1.0), (0.0, 1.0), weights=[1.0, 0.5, 0.5]))
    assert whole.tolist() == pytest.approx([0.5, 0.5])
    # Black frames hardly count; if all are black, they count equally.
    assert describe_video_whole(film((1.0, 0.0), (0.0, 1.0), weights=[1.0, 0.0]))[0] > 0.999
    assert describe_video_whole(film((1.0, 0.0), (0.0, 1.0), weights=[0.0, 0.0])).tolist() == pytest.approx([0.5, 0.5])


def test_regions_count_equally_and_half_precision_is_widened() -> None:
    values = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]]).astype(np.float16)
    features = FrameFeatures.of_whole(values, np.zeros(1))
    whole = describe_video_whole(features)
    assert whole.dtype == np.float32
    assert whole.tolist() == [0.25, 0.75]


def test_features_of_a_pair() -> None:
    query, targets = film((1.0, 0.0)), [film((0.6, 0.8)), film((0.0, 1.0))]
    scores = KindScorer().score(query, targets)
    numbers = pair_numbers(query, targets, scores, np.zeros(2, np.float32), np.ones(2, np.float32))
    # (1 + cosine) / 2 twice, because the scorer is that of kinds, then the cosine.
    assert numbers.tolist() == [
        pytest.approx([0.8, 0.8, 0.6], abs=1e-6),
        pytest.approx([0.5, 0.5, 0.0], abs=1e-6),
    ]


def test_cosine_is_computed_from_weighted_differences_to_the_center() -> None:
    """Relative to the center (0, 1) and with doubled weight of the second dimension: (1, -2) and (0.6, -0.4)."""
    query, target = film((1.0, 0.0)), film((0.6, 0.8))
    scores = KindScorer().score(query, [target])
    numbers = pair_numbers(query, [target], scores, np.float32([0.0, 1.0]), np.float32([1.0, 2.0]))
    assert numbers[0, 2].item() == pytest.approx((0.6 + 0.8) / math.sqrt(5 * 0.52), abs=1e-6)


def test_reviewed_scorer_changes_only_the_score() -> None:
    query, target = film((1.0, 0.0), (0.0, 1.0)), film((0.6, 0.8))
    (plain,), (graded,) = (
        scorer.score(query, [target]) for scorer in (KindScorer(), ReviewedScorer(KindScorer(), MEASURE))
    )
    assert np.array_equal(graded.map, plain.map)
    assert graded.segments == plain.segments
    assert graded.score == pytest.approx((chance(2 * plain.score - 1) + chance(2 * plain.score - 2)) / 2)
    scorer = ReviewedScorer(KindScorer(), MEASURE)
    assert (scorer.name, scorer.needs_background, scorer.has_segments) == ("kinds", False, False)
    assert scorer.score(query, []) == []


def test_measure_round_trips_through_its_file(tmp_path: Path) -> None:
    MEASURE.write(tmp_path / "measure.json")
    assert ReviewMeasure.read(tmp_path / "measure.json") == MEASURE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": (1.0, -1.0)}, "must be finite, and its weights and coefficients at least 0"),
        ({"coefficients": (1.0, -0.1, 0.0)}, "must be finite, and its weights and coefficients at least 0"),
        ({"center": (float("nan"), 0.0)}, "center must be a list of numbers, got"),
        ({"center": (0.0,)}, "center and weights must have the same length and coefficients length 3, got 1, 2 and 3"),
        ({"kind": 3.0}, "threshold 'kind' must be at most threshold 'same', got 3.0 and 2.0"),
    ],
)
def test_invalid_values_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        replace(MEASURE, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        json.dumps({"fingerprint": "a", "center": [0], "weights": [1], "coefficients": [1, 1], "kind": 0, "same": 1}),
        json.dumps({"fingerprint": "a", "center": 0, "weights": [1], "coefficients": [1, 1, 1], "kind": 0, "same": 1}),
        json.dumps(
            {
                "fingerprint": "a",
                "center": [0],
                "weights": [1],
                "coefficients": [1, 1, 1],
                "kind": 2,
                "same": 1,
            }
        ),
    ],
)
def test_damaged_file_is_reported(content: str, tmp_path: Path) -> None:
    (tmp_path / "measure.json").write_text(content)
    with pytest.raises(InvalidArgumentError, match=r"measure.json must contain a measure from `vidkin train review`"):
        ReviewMeasure.read(tmp_path / "measure.json")
    with pytest.raises(InvalidArgumentError, match=r"none.json must contain a measure"):
        ReviewMeasure.read(tmp_path / "none.json")

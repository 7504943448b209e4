"""Metrics of critical clips, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.fitted_rule import FittedRule
from vidkin_research.learned.judging import JudgedShot, TrueShot, judge_shots, score_critical, score_detected_critical
from vidkin_research.learned.windows import ShotWindows

TRUTH = [[TrueShot(0, 50, 4.0), TrueShot(50, 80, None), TrueShot(80, 120, 11.0), TrueShot(120, 150, None)]]


def test_labeled_shots_are_evaluated() -> None:
    judged = [
        [JudgedShot(0, 50, 0.9, 4.4), JudgedShot(50, 80, 0.8, 6.0)],
        [JudgedShot(0, 40, 0.7, 2.0), JudgedShot(40, 70, 0.1, 6.0)],
    ]
    truth = [
        [TrueShot(0, 50, 4.0), TrueShot(50, 80, None)],
        [TrueShot(0, 40, 3.0), TrueShot(40, 70, None)],
    ]
    scores = score_critical(judged, truth)
    assert (scores.clips.true_positives, scores.clips.false_positives, scores.clips.false_negatives) == (
        2,
        1,
        0,
    )
    # Ranked: right, wrong, right, wrong -> (1 + 2/3) / 2.
    assert scores.average_precision == pytest.approx(5 / 6)
    # Windows of 1 s extend 0.5 s and reach only the first moment; windows of 2 s also reach the one that is 1 s off.
    assert scores.spotting == {
        1.0: pytest.approx(1 / 2),
        2.0: pytest.approx(5 / 6),
        4.0: pytest.approx(5 / 6),
    }


def test_detected_shots_match_by_overlap() -> None:
    judged = [
        [
            JudgedShot(0, 26, 0.9, 4.2),  # 26 of 50 frames: over half
            JudgedShot(26, 80, 0.8, 6.0),  # not the critical one
            JudgedShot(80, 99, 0.7, 11.0),  # 19 of 40: under half
            JudgedShot(99, 150, 0.2, 14.0),
        ]
    ]
    scores = score_detected_critical(judged, TRUTH)
    assert (scores.clips.true_positives, scores.clips.false_positives, scores.clips.false_negatives) == (
        1,
        2,
        1,
    )
    assert scores.average_precision == pytest.approx(1 / 2)
    assert scores.spotting[1.0] == pytest.approx((1 + 2 / 3) / 2)


def test_evaluation_requires_the_labeled_shots() -> None:
    with pytest.raises(
        InvalidArgumentError,
        match="in video 0 must be the labeled ones; use score_detected",
    ):
        score_critical([[JudgedShot(0, 50, 0.9, 4.4)]], TRUTH)


def test_shot_is_classified_by_its_own_curve() -> None:
    """Windows of 5 frames, embedded as the mean of their frames: 0 up to frame 40, 1 from there on."""
    features = np.zeros((54, 1), np.float32)
    features[40:50] = 1.0
    windows = ShotWindows(features, 5, lambda clips: clips.mean(axis=1))
    rule = FittedRule({"end": 10.0}, bias=-5.0)
    calm, event, short = judge_shots(windows, [(0, 20), (20, 50), (50, 54)], rule, rate=10.0)
    # The curve of the calm shot stays at 0; that of the other one ends 1 above its first half.
    assert calm.score == pytest.approx(1 / (1 + np.exp(5)))
    assert event.score == pytest.approx(1 / (1 + np.exp(-5)))
    # Window 18 is the first with most of its frames after 40: it ends at frame 20 + 18 + 4.
    assert (event.start, event.end, event.moment) == (20, 50, pytest.approx(4.2))
    # A shot shorter than a window has no curve: it is not critical, and its moment lies within it.
    assert short.score == 0.0
    assert 5.0 <= short.moment < 5.4


def test_ranking_requires_critical_shots() -> None:
    scores = score_detected_critical([[JudgedShot(0, 40, 0.9, 2.0)]], [[TrueShot(0, 50, None)]])
    assert (scores.clips.true_positives, scores.clips.false_positives, scores.clips.false_negatives) == (
        0,
        1,
        0,
    )
    assert np.isnan(scores.average_precision)


def test_undetected_critical_shots_are_missed() -> None:
    scores = score_detected_critical([[]], TRUTH)
    assert (scores.clips.true_positives, scores.clips.false_positives, scores.clips.false_negatives) == (
        0,
        0,
        2,
    )
    assert scores.average_precision == 0.0
    assert scores.clips.f1 == 0.0

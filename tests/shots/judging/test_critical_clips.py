"""Scores of critical clips by hand."""

from __future__ import annotations

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots.judging.critical_clips import JudgedShot, TrueShot, score_critical, score_detected_critical

TRUTH = [[TrueShot(0, 50, 4.0), TrueShot(50, 80, None), TrueShot(80, 120, 11.0), TrueShot(120, 150, None)]]


def test_judgments_of_the_labelled_shots() -> None:
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
    # Windows of 1 s reach .5 s: the first moment only; of 2 s also the one that is 1 s off.
    assert scores.spotting == {
        1.0: pytest.approx(1 / 2),
        2.0: pytest.approx(5 / 6),
        4.0: pytest.approx(5 / 6),
    }


def test_found_shots_match_by_what_they_share() -> None:
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


def test_other_shots_than_the_labelled_ones_are_told() -> None:
    with pytest.raises(
        InvalidArgumentError,
        match="in video 0 must be the labeled ones; use score_detected",
    ):
        score_critical([[JudgedShot(0, 50, 0.9, 4.4)]], TRUTH)

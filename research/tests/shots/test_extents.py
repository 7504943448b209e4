"""Extents and kinds of transitions, computed by hand."""

from __future__ import annotations

import pytest

from vidkin.shots import DetectedCut
from vidkin_research.shots.extents import LabeledTransition, extent_overlap, score_transitions


def test_cut_extends_over_the_time_between_two_frames() -> None:
    assert extent_overlap((10, 10), (10, 10)) == 1
    assert extent_overlap((10, 10), (11, 11)) == 0
    # From frame 9 to frame 21, and from 9 to 10: one frame interval of twelve.
    assert extent_overlap((10, 20), (10, 10)) == pytest.approx(1 / 12)


def test_extent_score_is_intersection_over_union_and_zero_if_missed() -> None:
    labels = [
        LabeledTransition("dissolve", 10, 18),
        LabeledTransition("fade", 50, 60),
        LabeledTransition("hard", 90, 90),
    ]
    cuts = [DetectedCut(16, "wipe", 0.9, 14, 18), DetectedCut(91, "hard"), DetectedCut(70, "hard")]
    scores = score_transitions([(cuts, labels)])
    assert (scores.found.true_positives, scores.found.false_positives, scores.found.false_negatives) == (2, 1, 1)
    # 13 to 19 of 9 to 19; missed; off by one frame.
    assert scores.overlaps == pytest.approx((0.6, 0.0, 0.0))
    assert scores.extent == pytest.approx(0.2)
    assert scores.confusion == {("dissolve", "wipe"): 1, ("fade", "missed"): 1, ("hard", "hard"): 1}
    assert scores.kinds_right == 0.5
    assert scores.kinds["hard"].f1 == pytest.approx(2 / 3)
    assert scores.kinds["wipe"].false_positives == 1


def test_detection_matches_the_label_with_the_greatest_overlap() -> None:
    labels = [LabeledTransition("dissolve", 10, 20), LabeledTransition("dissolve", 22, 40)]
    scores = score_transitions([([DetectedCut(28, "dissolve", 1.0, 18, 40)], labels)])
    assert scores.found.true_positives == 1
    assert scores.overlaps[0] == 0
    assert scores.overlaps[1] == pytest.approx(20 / 24)


def test_gradual_label_matches_every_gradual_kind() -> None:
    scores = score_transitions([([DetectedCut(15, "wipe", 1.0, 10, 20)], [LabeledTransition("gradual", 10, 20)])])
    assert scores.kinds_right == 1
    assert scores.confusion == {("gradual", "gradual"): 1}


def test_scores_are_pooled_over_videos() -> None:
    one = score_transitions(
        [([DetectedCut(5)], [LabeledTransition("hard", 5, 5)]), ([], [LabeledTransition("jump", 5, 5)])]
    )
    assert one.found.f1 == pytest.approx(2 / 3)
    assert one.to_dict()["confusion"] == {"hard as hard": 1, "jump as missed": 1}

"""Post-processing of DeepSBD, on hand-written probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin_research.detectors.deep_sbd_rules import (
    SegmentRun,
    bhattacharyya,
    find_segment_runs,
    largest_difference,
)

NONE, GRADUAL, SHARP = (0.8, 0.1, 0.1), (0.2, 0.7, 0.1), (0.0, 0.1, 0.9)


def test_equal_adjacent_predictions_are_merged() -> None:
    """Segments start at 0, 8, 16, ... and have 16 frames."""
    runs = list(find_segment_runs(np.array([NONE, SHARP, (0.1, 0.3, 0.6), NONE, GRADUAL, SHARP]), 60))
    assert runs == [
        SegmentRun("hard", 8, 31, 0.9),
        SegmentRun("gradual", 32, 47, 0.7),
        SegmentRun("hard", 40, 55, 0.9),
    ]


def test_last_segment_ends_with_the_video() -> None:
    assert list(find_segment_runs(np.array([NONE, SHARP]), 12)) == [SegmentRun("hard", 8, 11, 0.9)]
    assert list(find_segment_runs(np.array([NONE, SHARP]), 9)) == []
    assert list(find_segment_runs(np.zeros((0, 3)), 1)) == []


def test_cut_is_at_the_largest_unused_difference() -> None:
    differences = np.array([99.0, 1.0, 2.0, 50.0, 3.0, 40.0, 1.0, 99.0])
    run = SegmentRun("hard", 0, 6, 0.9)
    assert largest_difference(differences, run) == 3
    assert largest_difference(differences, run, used=[3, 7]) == 5
    assert largest_difference(differences, SegmentRun("hard", 2, 3, 0.9), used=[3]) == 3


def test_histogram_similarity_equals_hand_computed_values() -> None:
    flat, one = np.full(4, 0.25), np.array([1.0, 0.0, 0.0, 0.0])
    assert bhattacharyya(flat, flat) == pytest.approx(1.0)
    assert bhattacharyya(flat, one) == pytest.approx(0.5)
    assert bhattacharyya(one, one[::-1]) == 0.0

"""Detection metrics over videos, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots import DetectedCut
from vidkin_research.learned.judging import BoundaryLabels, evaluate_cuts, read_boundary_labels

LABELS = BoundaryLabels((50, 100, 150), ((200, 220), (300, 310)))


def cut(frame: int) -> DetectedCut:
    return DetectedCut(frame)


def fade(first: int, last: int) -> DetectedCut:
    return DetectedCut((first + last) // 2, "gradual", 1.0, first, last)


def test_true_false_and_missed_cuts_are_counted() -> None:
    scores = evaluate_cuts([([cut(50), cut(101), cut(130), fade(205, 215)], LABELS)], tolerance=2)
    # 50, 101 and the fade are correct, 130 is false; 150 and the second transition are missed.
    assert (scores.every.true_positives, scores.every.false_positives, scores.every.false_negatives) == (
        3,
        1,
        2,
    )
    assert (scores.hard.true_positives, scores.hard.false_positives, scores.hard.false_negatives) == (2, 1, 1)
    assert (scores.gradual_found, scores.gradual_total) == (1, 2)


def test_hard_cut_inside_a_transition_counts_as_found_and_not_as_false() -> None:
    scores = evaluate_cuts([([cut(50), cut(100), cut(150), cut(210)], LABELS)])
    assert (scores.hard.false_positives, scores.gradual_found) == (0, 1)


def test_tolerance_is_in_frames() -> None:
    found = [([cut(52)], BoundaryLabels((50,)))]
    assert evaluate_cuts(found, tolerance=1).every.true_positives == 0
    assert evaluate_cuts(found, tolerance=2).every.true_positives == 1


def test_counts_are_pooled_over_videos() -> None:
    scores = evaluate_cuts([([cut(50)], BoundaryLabels((50,))), ([cut(9)], BoundaryLabels((50, 70)))])
    assert scores.every.precision == pytest.approx(1 / 2)
    assert scores.every.recall == pytest.approx(1 / 3)
    assert evaluate_cuts([]).every.f1 == 1.0


def test_labels_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(
        json.dumps({"videos": {"a.mp4": {"hard": [3], "gradual": [{"start": 5, "end": 9}]}, "b.mp4": {"hard": []}}})
    )
    assert read_boundary_labels(path) == {
        "a.mp4": BoundaryLabels((3,), ((5, 9),)),
        "b.mp4": BoundaryLabels(()),
    }


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"videos": {"a": {}}}', '{"videos": {"a": {"hard": ["x"]}}}', "[" * 100_000],
    ids=lambda text: text[:30],
)
def test_other_files_are_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "labels.json"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match=r"labels\.json: not a file of cuts .* it must have the form"):
        read_boundary_labels(path)

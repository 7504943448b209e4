"""Rows and means of the comparison of shot detectors, computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vidkin.shots import DetectedCut
from vidkin_research.learned.judging import BoundaryLabels
from vidkin_research.shots.material import LabelledVideo
from vidkin_research.shots.study import count_labels, counts_of_run, score_detector, summarize_shots

FILM, TAKE = Path("film.mp4"), Path("take.mp4")
VIDEOS = [
    LabelledVideo(FILM, BoundaryLabels(hard=(10, 50), gradual=((80, 90),))),
    LabelledVideo(TAKE, BoundaryLabels(hard=(), gradual=())),
]


def rows(*cuts: DetectedCut, seed: int | None = None) -> list[dict]:
    return list(score_detector("made", seed, {"all": VIDEOS}, {FILM: cuts, TAKE: []}))


def test_labels_are_counted() -> None:
    assert count_labels(VIDEOS) == {"videos": 2, "hard": 2, "gradual": 1}
    assert count_labels([]) == {"videos": 0, "hard": 0, "gradual": 0}


def test_cut_off_by_one_frame_requires_a_tolerance_of_one() -> None:
    gradual = DetectedCut(85, "dissolve", start_frame=80, end_frame=90)
    (row,) = rows(DetectedCut(10), DetectedCut(51), DetectedCut(70), gradual)
    assert (row["detector"], row["seed"], row["set"]) == ("made", None, "all")
    hard = {tolerance: row["nearest"][tolerance]["hard"] for tolerance in ("0", "1", "2")}
    assert [hard[key]["right"] for key in hard] == [1, 2, 2]
    assert [hard[key]["missed"] for key in hard] == [1, 0, 0]
    two = row["nearest"]["2"]
    assert (two["gradual_found"], two["gradual"]) == (1, 1)
    # Three of four detections are correct, and nothing is missed.
    assert two["all"] == {
        "precision": 0.75,
        "recall": 1.0,
        "f1": pytest.approx(6 / 7),
        "right": 3,
        "false": 1,
        "missed": 0,
    }
    assert row["reported"] == {"hard": 3, "gradual": 1}
    assert "training" not in row


def test_jump_counts_as_cut_if_labels_do_not_distinguish_them() -> None:
    """A cut found as a jump, a missed cut, and a dissolve found from its middle to its end: frames 85 to 90 of 80 to
    90, or 6 + 1 of 11 + 1 frame intervals.
    """
    jump, dissolve = DetectedCut(10, "jump"), DetectedCut(88, "dissolve", start_frame=85, end_frame=90)
    (row,) = rows(jump, dissolve)
    found = row["transitions"]
    assert found["right, false, missed"] == [2, 0, 1]
    assert found["extent"] == pytest.approx((1 + 7 / 12 + 0) / 3)
    assert found["confusion"] == {"gradual as gradual": 1, "hard as hard": 1, "hard as missed": 1}
    (line,) = summarize_shots([row])
    assert (line["extent"]["mean"], line["kinds_right"]["mean"]) == (pytest.approx(19 / 36), 1)
    known = replace(VIDEOS[0], jumps=frozenset({50}), kinds=("dissolve",))
    (row,) = score_detector("made", None, {"all": [known]}, {FILM: [jump, dissolve]})
    assert row["transitions"]["confusion"] == {"dissolve as dissolve": 1, "hard as jump": 1, "jump as missed": 1}
    assert row["transitions"]["kinds_right"] == 0.5


def test_detector_without_cuts_misses_every_cut() -> None:
    (row,) = rows()
    assert row["overlap"]["2"]["all"]["f1"] == 0
    assert row["nearest"]["0"]["all"]["missed"] == 3


def test_training_metadata_is_included_in_the_scores() -> None:
    (row,) = score_detector("made", 3, {"one": VIDEOS[1:]}, {TAKE: []}, {"seconds": 2.0})
    assert row["training"] == {"seconds": 2.0}
    assert summarize_shots([row])[0]["extent"] is None
    # Nothing to find and nothing reported counts as correct.
    assert row["nearest"]["2"]["all"]["f1"] == 1


def test_means_over_seeds() -> None:
    made = rows(DetectedCut(10), seed=0) + rows(DetectedCut(10), DetectedCut(50), seed=1)
    (line,) = summarize_shots(made)
    assert (line["set"], line["detector"], line["gradual"]) == ("all", "made", 1)
    assert line["all_right"]["mean"] == 1.5
    assert line["all_recall"]["mean"] == pytest.approx(1 / 2)  # of a third and two thirds
    assert line["all_precision"]["mean"] == 1
    assert line["f1_nearest_2"]["mean"] == pytest.approx((0.5 + 0.8) / 2)
    assert line["gradual_found"]["mean"] == 0
    assert line["reported"]["hard"]["mean"] == 1.5


def test_fractions_of_a_published_run_follow_from_its_counts() -> None:
    shares = {"precision": 0.75, "recall": 1.0, "f1": 6 / 7, "right": 3, "false": 1, "missed": 0}
    run = {"set": "edited", "nearest": {"0": {"all": shares, "gradual_found": 2}}, "reported": {"hard": 4}}
    assert counts_of_run(run) == {
        "set": "edited",
        "nearest": {"0": {"all": [3, 1, 0], "gradual_found": 2}},
        "reported": {"hard": 4},
        "counts": "right, false, missed",
    }

"""Means over seeds and the control of the comparison on critical clips, computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vidkin.shots import ShotAnnotation, VideoAnnotation
from vidkin_research.critical.study import HighlightPart, score_shot_length, summarize_critical


def part(*videos: list[tuple[int, bool]]) -> HighlightPart:
    """Videos with shots of these lengths, critical or not, at 10 fps."""
    labels = []
    for number, shots in enumerate(videos):
        start, annotations = 0, []
        for length, is_critical in shots:
            span = (start + 2, start + length) if is_critical else None
            annotations.append(ShotAnnotation(start, start + length, span))
            start += length
        labels.append(VideoAnnotation(Path(f"{number}.mp4"), 10.0, tuple(annotations)))
    features = tuple(np.zeros((label.shots[-1].end, 3), np.float32) for label in labels)
    return HighlightPart(tuple(labels), features, 10.0)


def test_part_counts_shots_and_moments() -> None:
    made = part([(5, False), (8, True)], [(4, True)])
    assert made.stretches() == [[(0, 5), (5, 13)], [(0, 4)]]
    assert made.critical() == [[False, True], [True]]
    # Frames 7 and 2 at 10 fps.
    assert [[shot.moment for shot in video] for video in made.truth()] == [[None, 0.7], [0.2]]
    assert made.counts() == {"shots": 3, "critical": 2}


def test_perfectly_separating_lengths_and_useless_lengths() -> None:
    telling = part([(10, False), (40, True), (11, False), (42, True)] * 3)
    assert score_shot_length(telling, part([(9, False), (45, True)])) == {
        "clips": {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    }
    # In the test set the long shots are not critical, so both predictions are wrong.
    assert score_shot_length(telling, part([(9, True), (45, False)]))["clips"]["f1"] == 0


def row(loss: str, f1: float, *, split: str = "all places") -> dict[str, Any]:
    figures = {"precision": f1 - 0.1, "recall": f1 + 0.1, "f1": f1}
    trend = {"clips": figures, "average_precision": f1 + 0.05, "spotting": {"2 s": f1 - 0.2, "5 s": 1.0}}
    other = {**trend, "clips": {**figures, "f1": f1 / 2}}
    return {
        "split": split,
        "loss": loss,
        "trends": {"combined": trend, "theil-sen": other},
        "found": {"clips": {"f1": f1 - 0.3}, "cuts": {"f1": 0.9}},
        "default": {"clips": {"f1": f1 - 0.2}, "cuts": {"f1": 1.0}},
    }


def test_rows_have_means_and_standard_deviations_over_seeds() -> None:
    summary = summarize_critical(
        [row("quadlet", 0.6), row("quadlet", 0.8), row("radial", 0.5), row("quadlet", 0.4, split="road held out"),
         row("radial", 0.4, split="road held out")],
        ("quadlet", "radial"),
    )  # fmt: skip
    assert [(line["split"], line["loss"]) for line in summary] == [
        ("all places", "quadlet"),
        ("all places", "radial"),
        ("road held out", "quadlet"),
        ("road held out", "radial"),
    ]
    first = summary[0]
    assert first["f1"]["mean"] == pytest.approx(0.7)
    # The sample standard deviation of 0.6 and 0.8.
    assert first["f1"]["deviation"] == pytest.approx(0.02**0.5)
    assert first["precision"]["mean"] == pytest.approx(0.6)
    assert first["average_precision"]["mean"] == pytest.approx(0.75)
    assert first["spotting"]["mean"] == pytest.approx(0.5)  # of 0.4 and 0.6
    assert first["f1_by_test"]["theil-sen"]["mean"] == pytest.approx(0.35)
    assert first["found_f1"]["mean"] == pytest.approx(0.4)
    assert first["found_cuts_f1"]["mean"] == pytest.approx(0.9)
    assert (first["default_f1"]["mean"], first["default_cuts_f1"]["mean"]) == pytest.approx((0.5, 1.0))
    assert summary[1]["f1"]["deviation"] is None

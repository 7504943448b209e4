"""Figures of the comparison of shot detectors: a row for every detector, seed and set, and means over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from vidkin.metric.measures import DetectionScores
from vidkin.shots import DetectedCut
from vidkin.shots.judging import evaluate_cuts
from vidkin_research.shots.material import LabelledVideo
from vidkin_research.spread import spread

__all__ = ["RULES", "TOLERANCES", "count_labels", "score_detector", "summarize_shots"]

TOLERANCES = (0, 1, 2)
"""Frames by which a cut may be off."""
RULES = ("nearest", "overlap")
"""How detected and labeled cuts are matched."""


def score_detector(
    name: str,
    seed: int | None,
    sets: Mapping[str, Sequence[LabelledVideo]],
    cuts: Mapping[Path, Sequence[DetectedCut]],
    training: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """A row of JSON values for every set: scores by matching rule and tolerance.

    Args:
        name: Name of the detector.
        seed: Seed of its training; None for a detector that needs none.
        sets: Videos by name of the set.
        cuts: Detected cuts by video.
        training: Report on the training.
    """
    for which, videos in sets.items():
        pairs = [(cuts[video.path], video.labels) for video in videos]
        scores: dict[str, dict[str, Any]] = {rule: {} for rule in RULES}
        for rule, tolerance in product(RULES, TOLERANCES):
            result = evaluate_cuts(pairs, tolerance=tolerance, rule=rule)  # type: ignore[arg-type]
            scores[rule][str(tolerance)] = {
                "all": _counts(result.every),
                "hard": _counts(result.hard),
                "gradual_found": result.gradual_found,
                "gradual": result.gradual_total,
            }
        yield {
            "detector": name,
            "seed": seed,
            "set": which,
            **scores,
            "reported": {
                kind: sum(cut.is_gradual == (kind == "gradual") for detected, _ in pairs for cut in detected)
                for kind in ("hard", "gradual")
            },
            **({"training": dict(training)} if training else {}),
        }


def count_labels(videos: Iterable[LabelledVideo]) -> dict[str, int]:
    """Count videos, labeled hard cuts and labeled gradual transitions."""
    listed = list(videos)
    return {
        "videos": len(listed),
        "hard": sum(len(video.labels.hard) for video in listed),
        "gradual": sum(len(video.labels.gradual) for video in listed),
    }


def summarize_shots(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means and deviations over seeds, one entry per set and detector."""
    summary = []
    for which in dict.fromkeys(row["set"] for row in rows):
        for name in dict.fromkeys(row["detector"] for row in rows):
            runs = [row for row in rows if row["set"] == which and row["detector"] == name]
            line: dict[str, Any] = {"set": which, "detector": name}
            for rule in RULES:
                for tolerance in TOLERANCES:
                    line[f"f1_{rule}_{tolerance}"] = spread(
                        [run[rule][str(tolerance)]["all"]["f1"] for run in runs]
                    )
            two = [run["nearest"]["2"] for run in runs]
            for part in ("all", "hard"):
                for figure in ("precision", "recall", "f1", "right", "false"):
                    line[f"{part}_{figure}"] = spread([run[part][figure] for run in two])
            line["gradual_found"] = spread([run["gradual_found"] for run in two])
            line["gradual"] = two[0]["gradual"]
            line["reported"] = {
                kind: spread([run["reported"][kind] for run in runs]) for kind in ("hard", "gradual")
            }
            summary.append(line)
    return summary


def _counts(scores: DetectionScores) -> dict[str, float]:
    return {
        "precision": scores.precision,
        "recall": scores.recall,
        "f1": scores.f1,
        "right": scores.true_positives,
        "false": scores.false_positives,
        "missed": scores.false_negatives,
    }

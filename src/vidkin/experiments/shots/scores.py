"""Figures of ``vidkin benchmark shots``: a row for every detector, seed and set, and their means over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vidkin.experiments.heads import mean_and_deviation
from vidkin.experiments.shots.material import LabelledVideo

if TYPE_CHECKING:
    from vidkin.shots import DetectedCut

__all__ = ["RULES", "TOLERANCES", "counts_of", "rows_of", "summary_of"]

TOLERANCES = (0, 1, 2)
RULES = ("nearest", "overlap")

Cuts = list["DetectedCut"]


def rows_of(
    name: str,
    seed: int | None,
    sets: Mapping[str, Sequence[LabelledVideo]],
    found: Mapping[Path, Cuts],
    trained: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """A row for every set that is judged, with the scores by matching rule and tolerance."""
    from vidkin.shots.judging import evaluate_cuts

    for which, videos in sets.items():
        pairs = [(found[video.path], video.labels) for video in videos]
        scores = {
            rule: {
                str(tolerance): _numbers(evaluate_cuts(pairs, tolerance=tolerance, rule=rule))  # type: ignore[arg-type]
                for tolerance in TOLERANCES
            }
            for rule in RULES
        }
        yield {
            "detector": name,
            "seed": seed,
            "set": which,
            **scores,
            "reported": {
                kind: sum(cut.kind == kind for cuts, _ in pairs for cut in cuts)
                for kind in ("hard", "gradual")
            },
            **({"training": dict(trained)} if trained else {}),
        }


def _numbers(scores: Any) -> dict[str, Any]:
    def counted(part: Any) -> dict[str, Any]:
        return {
            "precision": part.precision,
            "recall": part.recall,
            "f1": part.f1,
            "right": part.true_positives,
            "false": part.false_positives,
            "missed": part.false_negatives,
        }

    return {
        "all": counted(scores.every),
        "hard": counted(scores.hard),
        "gradual_found": scores.gradual_found,
        "gradual": scores.gradual_total,
    }


def counts_of(videos: Iterable[LabelledVideo]) -> dict[str, int]:
    found = list(videos)
    return {
        "videos": len(found),
        "hard": sum(len(video.labels.hard) for video in found),
        "gradual": sum(len(video.labels.gradual) for video in found),
    }


def summary_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means and deviations over seeds of what the tables show."""
    found = []
    for which in dict.fromkeys(row["set"] for row in rows):
        for name in dict.fromkeys(row["detector"] for row in rows):
            runs = [row for row in rows if row["set"] == which and row["detector"] == name]
            line: dict[str, Any] = {"set": which, "detector": name}
            for rule in RULES:
                for tolerance in TOLERANCES:
                    line[f"f1_{rule}_{tolerance}"] = mean_and_deviation(
                        [run[rule][str(tolerance)]["all"]["f1"] for run in runs]
                    )
            two = [run["nearest"]["2"] for run in runs]
            for part in ("all", "hard"):
                for measure in ("precision", "recall", "f1", "right", "false"):
                    line[f"{part}_{measure}"] = mean_and_deviation([run[part][measure] for run in two])
            line["gradual_found"] = mean_and_deviation([run["gradual_found"] for run in two])
            line["gradual"] = two[0]["gradual"]
            line["reported"] = {
                kind: mean_and_deviation([run["reported"][kind] for run in runs])
                for kind in ("hard", "gradual")
            }
            found.append(line)
    return found

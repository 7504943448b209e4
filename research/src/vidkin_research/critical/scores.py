"""Scores of a trained metric on highlight videos, of a control, and their means over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vidkin.metric.measures import DetectionScores, boundary_scores, clip_scores
from vidkin.models import ClipEncoder
from vidkin.shots import TREND_TESTS, fit_rule, fit_trend, rise_moment
from vidkin.shots.judging import (
    CriticalScores,
    JudgedShot,
    judge_shots,
    score_critical,
    score_detected_critical,
)
from vidkin.shots.learned import ShotRules, encode_with, find_shots
from vidkin.shots.shot_windows import Encode, ShotWindows
from vidkin_research.critical.material import HighlightPart
from vidkin_research.spread import spread

__all__ = ["score_model", "score_shot_length", "summarize_critical"]

_CUT_TOLERANCE = 1


def score_model(
    model: ClipEncoder, rules: ShotRules, train: HighlightPart, test: HighlightPart, *, window: int
) -> dict[str, Any]:
    """Scores on the test split, as JSON values; everything with a threshold is fitted on the training split.

    Returns:
        ``trends``: for each test of the trend, scores of the labeled shots. ``found``: scores where the cuts are
        detected first and the shots between them are scored.
    """
    encode = encode_with(model)
    fit, judge = _windows(train, window, encode), _windows(test, window, encode)
    truth = test.truth()
    curves = [
        one.curve(start, end)
        for one, stretches in zip(fit, train.stretches(), strict=True)
        for start, end in stretches
    ]
    critical = [flag for video in train.critical() for flag in video]
    trends = {}
    for trend in TREND_TESTS:
        rule = fit_trend(curves, critical, test=trend)
        judged = [
            judge_shots(windows, stretches, rule, rate=test.rate)
            for windows, stretches in zip(judge, test.stretches(), strict=True)
        ]
        trends[trend] = _as_numbers(score_critical(judged, truth))
    # The whole way: cuts are found first, then the shots between them are judged.
    cuts = DetectionScores(0, 0, 0)
    judged_shots: list[list[JudgedShot]] = []
    for features, label in zip(test.features, test.labels, strict=True):
        shots = find_shots(features, encode, rules)
        cuts += boundary_scores([cut for cut, _ in shots.cuts], label.cuts, tolerance=_CUT_TOLERANCE)
        assert shots.critical is not None
        judged_shots.append([])
        for (start, end), score in zip(shots.stretches, shots.critical, strict=True):
            first = start + window - 1
            moment = min(first + rise_moment(shots.curve[first:end]), end - 1) / test.rate
            judged_shots[-1].append(JudgedShot(start, end, score, moment))
    return {
        "trends": trends,
        "found": {"cuts": _prf(cuts)} | _as_numbers(score_detected_critical(judged_shots, test.truth())),
    }


def score_shot_length(train: HighlightPart, test: HighlightPart) -> dict[str, Any]:
    """A control: how well the length of a shot alone, with a fitted threshold, predicts whether it is critical."""

    def examples(part: HighlightPart) -> tuple[list[dict[str, float]], list[bool]]:
        lengths = [{"frames": float(end - start)} for video in part.stretches() for start, end in video]
        return lengths, [flag for video in part.critical() for flag in video]

    rule = fit_rule(*examples(train), names=["frames"])
    lengths, labels = examples(test)
    return {"clips": _prf(clip_scores([rule.confidence(one) >= 0.5 for one in lengths], labels))}


def summarize_critical(rows: Sequence[Mapping[str, Any]], losses: Sequence[str]) -> list[dict[str, Any]]:
    """Means and deviations over seeds, one entry for every split and loss."""
    summary = []
    for split in dict.fromkeys(row["split"] for row in rows):
        for loss in losses:
            runs = [row for row in rows if row["split"] == split and row["loss"] == loss]
            best = [run["trends"]["combined"] for run in runs]
            line: dict[str, Any] = {"split": split, "loss": loss}
            for name in ("precision", "recall", "f1"):
                line[name] = spread([run["clips"][name] for run in best])
            line["average_precision"] = spread([run["average_precision"] for run in best])
            line["spotting"] = spread([run["spotting"]["2 s"] for run in best])
            line["f1_by_test"] = {
                trend: spread([run["trends"][trend]["clips"]["f1"] for run in runs])
                for trend in runs[0]["trends"]
            }
            line["found_f1"] = spread([run["found"]["clips"]["f1"] for run in runs])
            line["found_cuts_f1"] = spread([run["found"]["cuts"]["f1"] for run in runs])
            summary.append(line)
    return summary


def _windows(part: HighlightPart, window: int, encode: Encode) -> list[ShotWindows]:
    return [ShotWindows(rows, window, encode) for rows in part.features]


def _prf(scores: DetectionScores) -> dict[str, float]:
    return {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}


def _as_numbers(scores: CriticalScores) -> dict[str, Any]:
    return {
        "clips": _prf(scores.clips),
        "average_precision": scores.average_precision,
        "spotting": {f"{width:g} s": value for width, value in scores.spotting.items()},
    }

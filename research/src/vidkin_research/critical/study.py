"""Comparison of losses on critical clips: several seeds, all locations and each location held out."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin._base.files import write_text
from vidkin._base.values import as_json, read_json
from vidkin.metric.measures import DetectionScores, boundary_scores, clip_scores
from vidkin.models import ClipEncoder, save_model
from vidkin.rendering.machine import describe_machine
from vidkin.shots import Cut, DetectedCut, VideoAnnotation, detect, read_shot_annotations
from vidkin_research.heads import FRAME_NETWORK, HeadStore
from vidkin_research.learned.clips import ShotClips, encode_with
from vidkin_research.learned.detector import ShotAnalysis, ShotRules, find_shots, fit_shot_rules
from vidkin_research.learned.fitted_rule import fit_rule
from vidkin_research.learned.judging import (
    CriticalScores,
    JudgedShot,
    TrueShot,
    judge_shots,
    score_critical,
    score_detected_critical,
)
from vidkin_research.learned.objective import ShotRecipe, train_on_shots
from vidkin_research.learned.trend import TREND_TESTS, critical_score, fit_trend, rise_moment
from vidkin_research.learned.windows import CUT_NUMBERS, Encode, ShotWindows
from vidkin_research.made.highlights import HIGHLIGHT_PLACES, Part, build_highlights
from vidkin_research.runs import OnStudyProgress, Report, check_same_data, commit_of, load_or_run, run_path
from vidkin_research.spread import spread

__all__ = ["RULE_FILES", "CriticalStudy", "rule_answers", "run_critical_study"]

_SAVED_LOSS = "quadlet"

RULE_FILES = ("research/src/vidkin_research/learned/fitted_rule.py", "research/src/vidkin_research/learned/trend.py")
"""Repository files that define the rule for critical shots."""


def rule_answers() -> list[float]:
    """Return the rule's scores for twelve random curves, half of them labeled critical, rounded to 0.001.

    Stored results include these scores, so a difference shows that the rule has changed since.
    """
    random = np.random.default_rng(0)
    curves = [
        np.abs(random.normal(0.2, 0.05, 40)) + (number % 2) * np.linspace(0, 0.08 * number, 40) ** 2
        for number in range(12)
    ]
    rule = fit_trend(curves, [number % 2 == 1 for number in range(12)])
    return [round(critical_score(curve, rule), 3) for curve in curves]


@dataclass(frozen=True, kw_only=True)
class CriticalStudy:
    """Settings of the comparison.

    Attributes:
        losses: ``untrained``, or losses of a shot recipe.
        seeds: Number of runs per loss.
        steps: Training steps per run.
        window: Number of frames in a clip.
        rate: Frames per second of the composed videos.
        train: (videos, seed) of the training split with all locations.
        test: (videos, seed) of the test split with all locations.
        held_out: Whether to also hold out each location from training and evaluate on it.
        held_out_videos: Number of videos per split when a location is held out.
        network: The frozen frame network.
    """

    losses: tuple[str, ...] = ("untrained", "triplet", "quadlet", "radial", "radial_detached")
    seeds: int = 3
    steps: int = 250
    window: int = 10
    rate: int = 10
    train: tuple[int, int] = (12, 0)
    test: tuple[int, int] = (12, 1)
    held_out: bool = True
    held_out_videos: int = 8
    network: str = FRAME_NETWORK


def run_critical_study(
    study: CriticalStudy,
    data: Path,
    *,
    weights: Path | None = None,
    work: Path,
    save: Path | None = None,
    output: Path | None = None,
    on_progress: OnStudyProgress = lambda done, total, what: None,
) -> Report:
    """Train with every loss on one part of the recordings and evaluate on the rest, reusing stored runs.

    Args:
        study: Settings of the comparison.
        data: Folder searched at any depth for the recordings.
        weights: Safetensors file with the weights of the frame network; None downloads them from the hub.
        work: Folder for composed videos, features and runs.
        save: Folder for the model trained with quadlets on all locations with the first seed; nothing is saved if that
            run is already stored.
        output: File the caller will write the results to; not counted as data if it is in the data folder.
        on_progress: Callback that receives the steps done, the total number of steps and the current step.

    Raises:
        InvalidArgumentError: ``work`` has results from other data.
    """
    began = time.monotonic()
    check_same_data(work, "critical", {"--data": data, "--weights": weights}, outputs=(output, save))
    store = HeadStore(weights, work / "features", window=study.window, network=study.network)
    splits = compose_splits(
        data,
        work,
        store,
        rate=study.rate,
        train=study.train,
        test=study.test,
        held_out_videos=study.held_out_videos if study.held_out else 0,
        on_progress=on_progress,
    )
    rows: list[dict[str, Any]] = [
        {"split": ALL_PLACES, "loss": "length of the shot", **score_shot_length(*splits[ALL_PLACES])}
    ]
    runs = [(split, loss, seed) for split in splits for loss in study.losses for seed in range(study.seeds)]
    for done, (split, loss, seed) in enumerate(runs):
        on_progress(done, len(runs), f"{split}: {loss}, seed {seed}")
        fixed = (study.steps, study.window, study.rate, study.train, study.test, study.held_out_videos)
        keep = save if (split, loss, seed) == (ALL_PLACES, _SAVED_LOSS, 0) else None
        # Results with the default detector's cuts are stored as well.
        default = [[cut.frame for cut in cuts] for cuts in splits[split][1].default_cuts]
        result = load_or_run(
            run_path(work / "runs", (split, loss, seed, *fixed, CUT_NUMBERS, rule_answers(), default)),
            partial(_run, study, store, *splits[split], loss, seed, keep),
        )
        rows.append({"split": split, "loss": loss, "seed": seed, **result})
    return Report(
        what="critical clips in composed highlight videos",
        machine=describe_machine(),
        settings={
            "rule": {"commit": commit_of(*RULE_FILES), "answers": rule_answers()},
            "window": study.window,
            "rate": study.rate,
            "steps": study.steps,
            "seeds": study.seeds,
            "videos": {"train": study.train[0], "test": study.test[0], "held out": study.held_out_videos},
            "shots": {name: test.counts() for name, (_, test) in splits.items()},
        },
        minutes=(time.monotonic() - began) / 60,
        summary=summarize_critical(rows, study.losses),
        runs=rows,
    )


def _run(
    study: CriticalStudy,
    store: HeadStore,
    train: HighlightPart,
    test: HighlightPart,
    loss: str,
    seed: int,
    save: Path | None,
) -> Any:
    model = store.model(seed)
    training: dict[str, Any] = {}
    if loss != "untrained":
        clips = ShotClips([torch.from_numpy(rows) for rows in train.features], train.labels, window=study.window)
        recipe = ShotRecipe.from_mapping({"loss": loss, "window": study.window, "steps": study.steps, "seed": seed})
        report = train_on_shots(model, clips, recipe)
        training = {
            "seconds": report.seconds,
            "distance": report.distance,
            "collapsed": report.collapsed,
            "last_loss": sum(report.losses[-20:]) / max(1, len(report.losses[-20:])),
        }
    rules = fit_shot_rules(
        train.features,
        train.stretches(),
        encode_with(model),
        window=study.window,
        gradual=False,
        critical=train.critical(),
        fitted_on="training split of the highlight videos of `vidkin benchmark critical`",
    )
    if save is not None:
        save_model(model, save, notes={"trained_by": "vidkin benchmark critical", "loss": loss})
        rules.save(save)
    return as_json({**training, **score_model(model, rules, train, test, window=study.window)})


# Scores of a trained metric and a control on highlight videos, and means over seeds.


_CUT_TOLERANCE = 1


def score_model(
    model: ClipEncoder, rules: ShotRules, train: HighlightPart, test: HighlightPart, *, window: int
) -> dict[str, Any]:
    """Score a model on the test split, as JSON values; all thresholds are fitted on the training split.

    Returns:
        ``trends``: scores of the labeled shots for each trend test. ``found``: scores of the shots between cuts that
        the metric detects. ``default``: scores of the shots between cuts of vidkin's default detector.
    """
    encode = encode_with(model)
    fit, judge = _windows(train, window, encode), _windows(test, window, encode)
    truth = test.truth()
    curves = [
        one.curve(start, end) for one, stretches in zip(fit, train.stretches(), strict=True) for start, end in stretches
    ]
    critical = [flag for video in train.critical() for flag in video]
    trends = {}
    for trend in TREND_TESTS:
        rule = fit_trend(curves, critical, test=trend)
        judged = [
            judge_shots(windows, stretches, rule, rate=test.rate)
            for windows, stretches in zip(judge, test.stretches(), strict=True)
        ]
        trends[trend] = _as_json(score_critical(judged, truth))
    # End to end: detect cuts, then score the shots between them.
    others = replace(rules, method="default", cut=None, gradual=None)
    return {
        "trends": trends,
        "found": _score_found(test, [find_shots(features, encode, rules) for features in test.features], window),
        "default": _score_found(
            test,
            [
                find_shots(features, encode, others, detected=cuts)
                for features, cuts in zip(test.features, test.default_cuts, strict=True)
            ],
            window,
        ),
    }


def _score_found(test: HighlightPart, found: Sequence[ShotAnalysis], window: int) -> dict[str, Any]:
    """Score the detected cuts and the shots between them."""
    cuts = DetectionScores(0, 0, 0)
    judged: list[list[JudgedShot]] = []
    for shots, label in zip(found, test.labels, strict=True):
        cuts += boundary_scores([cut for cut, _ in shots.cuts], label.cuts, tolerance=_CUT_TOLERANCE)
        assert shots.critical is not None
        judged.append([])
        for (start, end), score in zip(shots.stretches, shots.critical, strict=True):
            first = start + window - 1
            moment = max(0, min(first + rise_moment(shots.curve[first:end]), end - 1)) / test.rate
            judged[-1].append(JudgedShot(start, end, score, moment))
    return {"cuts": _prf(cuts)} | _as_json(score_detected_critical(judged, test.truth()))


def score_shot_length(train: HighlightPart, test: HighlightPart) -> dict[str, Any]:
    """Score a control that predicts critical shots from their length alone, with a fitted threshold."""

    def examples(part: HighlightPart) -> tuple[list[dict[str, float]], list[bool]]:
        lengths = [{"frames": float(end - start)} for video in part.stretches() for start, end in video]
        return lengths, [flag for video in part.critical() for flag in video]

    rule = fit_rule(*examples(train), names=["frames"])
    lengths, labels = examples(test)
    return {"clips": _prf(clip_scores([rule.confidence(one) >= 0.5 for one in lengths], labels))}


def summarize_critical(rows: Sequence[Mapping[str, Any]], losses: Sequence[str]) -> list[dict[str, Any]]:
    """Compute means and standard deviations over seeds, one entry per split and loss."""
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
                trend: spread([run["trends"][trend]["clips"]["f1"] for run in runs]) for trend in runs[0]["trends"]
            }
            for name in ("found", "default"):
                line[f"{name}_f1"] = spread([run[name]["clips"]["f1"] for run in runs])
                line[f"{name}_cuts_f1"] = spread([run[name]["cuts"]["f1"] for run in runs])
            summary.append(line)
    return summary


def _windows(part: HighlightPart, window: int, encode: Encode) -> list[ShotWindows]:
    return [ShotWindows(rows, window, encode) for rows in part.features]


def _prf(scores: DetectionScores) -> dict[str, float]:
    return {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}


def _as_json(scores: CriticalScores) -> dict[str, Any]:
    return {
        "clips": _prf(scores.clips),
        "average_precision": scores.average_precision,
        "spotting": {f"{width:g} s": value for width, value in scores.spotting.items()},
    }


# The data: highlight videos composed from recordings, one part per split.


ALL_PLACES = "all places"


def _as_detected(cut: Cut) -> DetectedCut:
    return DetectedCut(cut.frame, cut.kind, cut.confidence, cut.start_frame, cut.end_frame)


@dataclass(frozen=True, slots=True)
class HighlightPart:
    """Labeled videos with their features.

    Attributes:
        labels: Labels of each video.
        features: Features [T, F] of each video.
        rate: Frames per second of the videos.
        default_cuts: Cuts of vidkin's default detector in each video; empty in a training part.
    """

    labels: tuple[VideoAnnotation, ...]
    features: tuple[NDArray[np.float32], ...]
    rate: float
    default_cuts: tuple[tuple[DetectedCut, ...], ...] = ()

    def stretches(self) -> list[list[tuple[int, int]]]:
        """Return the frames [start, end) of every shot, by video."""
        return [[(shot.start, shot.end) for shot in label.shots] for label in self.labels]

    def critical(self) -> list[list[bool]]:
        """Return whether each shot is labeled critical, by video."""
        return [[shot.critical is not None for shot in label.shots] for label in self.labels]

    def truth(self) -> list[list[TrueShot]]:
        """Return the labeled shots, with the time in seconds at which the action begins."""
        return [
            [
                TrueShot(shot.start, shot.end, None if shot.critical is None else shot.critical[0] / self.rate)
                for shot in label.shots
            ]
            for label in self.labels
        ]

    def counts(self) -> dict[str, int]:
        """Count the shots and the critical shots."""
        flags = [flag for video in self.critical() for flag in video]
        return {"shots": len(flags), "critical": sum(flags)}


def compose_splits(
    data: Path,
    work: Path,
    store: HeadStore,
    *,
    rate: int,
    train: tuple[int, int],
    test: tuple[int, int],
    held_out_videos: int,
    on_progress: OnStudyProgress,
) -> Mapping[str, tuple[HighlightPart, HighlightPart]]:
    """Compose the training and test part of each split: all locations first, then each location held out in turn.

    Args:
        data: Folder of the recordings.
        work: Folder for the composed videos.
        store: Computes the features.
        rate: Frames per second of the composed videos.
        train: (videos, seed) of the training split with all locations.
        test: (videos, seed) of the test split with all locations.
        held_out_videos: Number of videos per part when a location is held out; 0 holds out none.
        on_progress: Callback called while features are computed.
    """

    def compose(name: str, videos: int, seed: int, which: Part, places: Sequence[str] | None) -> HighlightPart:
        folder = work / "highlights" / name
        record = folder / "made.json"
        settings = {"part": which, "videos": videos, "seed": seed, "places": places, "rate": rate}
        if record.is_file() and read_json(record) == settings:
            labels = read_shot_annotations(folder / "labels.json")
        else:
            labels = build_highlights(data, folder, part=which, videos=videos, seed=seed, rate=rate, places=places)
            write_text(record, json.dumps(settings))
        paths = [label.video for label in labels]
        features = store.features(paths, on_progress=on_progress)
        found = (detect(path).cuts for path in paths) if which == "test" else ()
        cuts = tuple(tuple(_as_detected(cut) for cut in each) for each in found)
        return HighlightPart(tuple(labels), tuple(features), rate, cuts)

    splits = {ALL_PLACES: (compose("train", *train, "train", None), compose("test", *test, "test", None))}
    for number, location in enumerate(HIGHLIGHT_PLACES if held_out_videos else ()):
        others = [name for name in HIGHLIGHT_PLACES if name != location]
        splits[f"{location} held out"] = (
            compose(f"train-without-{location}", held_out_videos, 10 + number, "train", others),
            compose(f"test-{location}", held_out_videos, 20 + number, "test", [location]),
        )
    return splits

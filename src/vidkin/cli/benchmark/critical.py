"""``vidkin benchmark critical``: critical clips found by metrics trained with every loss of the sources."""

from __future__ import annotations

import json as json_module
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import meter, note, table
from vidkin.cli.options import JsonOption
from vidkin.experiments.heads import (
    HeadStore,
    check_output,
    check_same_data,
    kept_run,
    machine_text,
    mean_and_deviation,
    plus_minus,
    write_figures,
)
from vidkin.rendering.json_values import print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vidkin.datasets import VideoAnnotation
    from vidkin.models import ClipEncoder
    from vidkin.shots import TrendTest
    from vidkin.shots.learned import Encode, ShotRules

__all__ = ["critical"]

LOSSES = ("untrained", "triplet", "quadlet", "radial", "radial_detached")
WINDOW = 10
RATE = 10
_TRAIN, _TEST = (12, 0), (12, 1)
_HELD_OUT_VIDEOS = 8
# Of a full and of a quick run.
_STEPS = (250, 100)
_CUT_TOLERANCE = 1
_ALL = "all places"


@dataclass(frozen=True, slots=True)
class _Part:
    """Labelled videos with their features."""

    labels: tuple[VideoAnnotation, ...]
    features: tuple[NDArray[np.float32], ...]


def critical(
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            help="Folder with the recordings (intel-iot-devkit sample videos, mdn learning-area), at any depth.",
            file_okay=False,
            exists=True,
        ),
    ],
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights", help="Weights of MobileNetV2, a safetensors file.", dir_okay=False, exists=True
        ),
    ] = None,
    work: Annotated[Path, typer.Option("--work", help="Where composed videos and features are kept.")] = Path(
        "vidkin-benchmark"
    ),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the figures as JSON.")] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            help="Keep the model trained with quadlets for `vidkin shots --detector` (not of a run kept earlier).",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Trainings of every loss.")] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, 100 steps, no places held out: a few minutes.")
    ] = False,
    held_out: Annotated[
        bool, typer.Option("--held-out/--no-held-out", help="Also train without each place and judge on it.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Critical clips: does the trend of the learned distance tell shots in which something happens?

    Highlight videos are composed of recordings in which something happens, trained on one part of each recording, and
    judged on the other; then with one place held out from training altogether.
    """
    began = time.monotonic()
    steps, seeds = _STEPS[quick], 1 if quick else seeds
    check_output(output)
    check_same_data(work, "critical", {"--data": data, "--weights": weights}, written=(output, save))
    store = HeadStore(weights, work / "features", window=WINDOW)
    with meter("critical clips") as bar:

        def show(done: int, total: int, what: str) -> None:
            bar.update(done, total, detail=what)

        splits = _splits(data, work, store, held_out=held_out and not quick, show=show)
        rows = _runs(store, splits, work / "runs", seeds=seeds, steps=steps, save=save, show=show)
    result: dict[str, Any] = {
        "what": "critical clips in composed highlight videos",
        "machine": machine_text(),
        "settings": {
            "window": WINDOW,
            "rate": RATE,
            "steps": steps,
            "seeds": seeds,
            "videos": {"train": _TRAIN[0], "test": _TEST[0], "held out": _HELD_OUT_VIDEOS},
            "shots": {name: _counts(test) for name, (_, test) in splits.items()},
        },
        "minutes": (time.monotonic() - began) / 60,
        "summary": _summary(rows),
        "runs": rows,
    }
    write_figures(result, output)
    if json:
        print_json(result)
    else:
        _print(result["summary"])
        note("Precision, recall and F1 of clips by the combined trend test; AP of clips; spotting AP at 2 s.")


def _runs(
    store: HeadStore,
    splits: Mapping[str, tuple[_Part, _Part]],
    folder: Path,
    *,
    seeds: int,
    steps: int,
    save: Path | None,
    show: Callable[[int, int, str], None],
) -> list[dict[str, Any]]:
    """A row for every split, loss and seed, and one of the control."""
    from vidkin.shots.learned import CUT_NUMBERS

    def run(split: str, loss: str, seed: int) -> dict[str, Any]:
        train, test = splits[split]
        model, trained = _trained(store, train, loss, seed, steps)
        rules = _rules(train, model)
        if save is not None and (split, loss, seed) == (_ALL, "quadlet", 0):
            _save(model, rules, save)
        return {**trained, **_judged(model, rules, train, test)}

    rows: list[dict[str, Any]] = [{"split": _ALL, "loss": "length of the shot", **_by_length(*splits[_ALL])}]
    wanted = [(split, loss, seed) for split in splits for loss in LOSSES for seed in range(seeds)]
    for done, (split, loss, seed) in enumerate(wanted):
        show(done, len(wanted), f"{split}: {loss}, seed {seed}")
        settings = (split, loss, seed, steps, WINDOW, RATE, _TRAIN, _TEST, _HELD_OUT_VIDEOS, CUT_NUMBERS)
        found = kept_run(folder, settings, partial(run, split, loss, seed))
        rows.append({"split": split, "loss": loss, "seed": seed, **found})
    return rows


def _splits(
    data: Path, work: Path, store: HeadStore, *, held_out: bool, show: Callable[[int, int, str], None]
) -> dict[str, tuple[_Part, _Part]]:
    """Training and test part: all places; and each place held out."""
    from vidkin.datasets import HIGHLIGHT_PLACES

    def part(name: str, videos: int, seed: int, which: Any, places: Sequence[str] | None) -> _Part:
        labels = _composed(data, work / "highlights" / name, which, videos, seed, places)
        return _Part(
            tuple(labels), tuple(store.features([label.video for label in labels], on_progress=show))
        )

    found = {
        _ALL: (
            part("train", *_TRAIN, "train", None),
            part("test", *_TEST, "test", None),
        )
    }
    for number, place in enumerate(HIGHLIGHT_PLACES if held_out else ()):
        others = [other for other in HIGHLIGHT_PLACES if other != place]
        found[f"{place} held out"] = (
            part(f"train-without-{place}", _HELD_OUT_VIDEOS, 10 + number, "train", others),
            part(f"test-{place}", _HELD_OUT_VIDEOS, 20 + number, "test", [place]),
        )
    return found


def _composed(
    data: Path, folder: Path, part: Any, videos: int, seed: int, places: Sequence[str] | None
) -> list[VideoAnnotation]:
    """Highlight videos of an earlier call with the same settings, or new ones."""
    from vidkin.datasets import build_highlights, read_shot_annotations

    settings = {"part": part, "videos": videos, "seed": seed, "places": places, "rate": RATE}
    made = folder / "made.json"
    if made.is_file() and json_module.loads(made.read_text(encoding="utf-8")) == settings:
        return read_shot_annotations(folder / "labels.json")
    found = build_highlights(data, folder, part=part, videos=videos, seed=seed, rate=RATE, places=places)
    made.write_text(json_module.dumps(settings), encoding="utf-8")
    return found


def _trained(
    store: HeadStore, part: _Part, loss: str, seed: int, steps: int
) -> tuple[ClipEncoder, dict[str, Any]]:
    import torch

    from vidkin.shots.learned.clips import ShotClips
    from vidkin.shots.learned.training import ShotRecipe, train_on_shots

    model = store.model(seed)
    if loss == "untrained":
        return model, {}
    clips = ShotClips([torch.from_numpy(rows) for rows in part.features], part.labels, window=WINDOW)
    recipe = ShotRecipe.from_mapping({"loss": loss, "window": WINDOW, "steps": steps, "seed": seed})
    report = train_on_shots(model, clips, recipe)
    return model, {
        "seconds": report.seconds,
        "distance": report.distance,
        "collapsed": report.collapsed,
        "last_loss": sum(report.losses[-20:]) / max(1, len(report.losses[-20:])),
    }


def _rules(part: _Part, model: ClipEncoder) -> ShotRules:
    """Rules for cuts and critical shots, fitted on the training part."""
    from vidkin.shots.learned import fit_shot_rules, head_of

    return fit_shot_rules(
        part.features,
        [[(shot.start, shot.end) for shot in label.shots] for label in part.labels],
        head_of(model),
        window=WINDOW,
        gradual=False,
        critical=[[shot.critical is not None for shot in label.shots] for label in part.labels],
        fitted_on="training part of the highlight videos of `vidkin benchmark critical`",
    )


def _save(model: ClipEncoder, rules: ShotRules, folder: Path) -> None:
    from vidkin.models import save_model

    save_model(model, folder, notes={"trained_by": "vidkin benchmark critical", "loss": "quadlet"})
    rules.save(folder)


def _judged(model: ClipEncoder, rules: ShotRules, train: _Part, test: _Part) -> dict[str, Any]:
    """Scores on the test part; everything that has a threshold is fitted on the training part."""
    from vidkin.shots import TREND_TESTS
    from vidkin.shots.judging import score_critical
    from vidkin.shots.learned import head_of

    encode = head_of(model)
    fit, judge = _windows(train, encode), _windows(test, encode)
    truth = _truth(test)
    scores: dict[str, Any] = {}
    for trend in TREND_TESTS:
        rule = _trend_rule(fit, train, trend)
        judged = [
            _judge(windows, [(shot.start, shot.end) for shot in label.shots], rule)
            for windows, label in zip(judge, test.labels, strict=True)
        ]
        scores[trend] = _as_numbers(score_critical(judged, truth))
    return {"trends": scores, "found": _found(test, encode, rules)}


def _found(test: _Part, encode: Encode, rules: ShotRules) -> dict[str, Any]:
    """The whole way: cuts are found first, and the shots between them judged."""
    from vidkin.metric.measures import DetectionScores, boundary_scores
    from vidkin.shots import rise_moment
    from vidkin.shots.judging import JudgedShot, score_found_critical
    from vidkin.shots.learned import find_shots

    cuts = DetectionScores(0, 0, 0)
    judged = []
    for features, label in zip(test.features, test.labels, strict=True):
        found = find_shots(features, encode, rules)
        cuts += boundary_scores([cut for cut, _ in found.cuts], label.cuts, tolerance=_CUT_TOLERANCE)
        assert found.critical is not None
        judged.append(
            [
                JudgedShot(
                    start,
                    end,
                    score,
                    min(start + WINDOW - 1 + rise_moment(found.curve[start + WINDOW - 1 : end]), end - 1)
                    / RATE,
                )
                for (start, end), score in zip(found.stretches, found.critical, strict=True)
            ]
        )
    return {"cuts": _prf(cuts)} | _as_numbers(score_found_critical(judged, _truth(test)))


def _by_length(train: _Part, test: _Part) -> dict[str, Any]:
    """A control: how far does the length of a shot alone, fitted in the same way, tell whether it is critical?"""
    from vidkin.metric.measures import clip_scores
    from vidkin.shots import fit_rule

    def examples(part: _Part) -> tuple[list[dict[str, float]], list[bool]]:
        shots = [shot for label in part.labels for shot in label.shots]
        return [{"frames": float(shot.end - shot.start)} for shot in shots], [
            shot.critical is not None for shot in shots
        ]

    rule = fit_rule(*examples(train), names=["frames"])
    numbers, labels = examples(test)
    return {"clips": _prf(clip_scores([rule.confidence(one) >= 0.5 for one in numbers], labels))}


def _windows(part: _Part, encode: Encode) -> list[Any]:
    from vidkin.shots.learned import ShotWindows

    return [ShotWindows(rows, WINDOW, encode) for rows in part.features]


def _trend_rule(windows: Sequence[Any], part: _Part, trend: TrendTest) -> Any:
    from vidkin.shots import fit_trend

    pairs = [
        (one.curve(shot.start, shot.end), shot.critical is not None)
        for one, label in zip(windows, part.labels, strict=True)
        for shot in label.shots
    ]
    return fit_trend([curve for curve, _ in pairs], [label for _, label in pairs], test=trend)


def _judge(windows: Any, shots: Sequence[tuple[int, int]], rule: Any) -> Any:
    from vidkin.shots.judging import judge_shots

    return judge_shots(windows, shots, rule, rate=RATE)


def _truth(part: _Part) -> list[list[Any]]:
    from vidkin.shots.judging import TrueShot

    return [
        [
            TrueShot(shot.start, shot.end, None if shot.critical is None else shot.critical[0] / RATE)
            for shot in label.shots
        ]
        for label in part.labels
    ]


def _counts(part: _Part) -> dict[str, int]:
    shots = [shot for label in part.labels for shot in label.shots]
    return {"shots": len(shots), "critical": sum(shot.critical is not None for shot in shots)}


def _prf(scores: Any) -> dict[str, float]:
    return {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}


def _as_numbers(scores: Any) -> dict[str, Any]:
    return {
        "clips": _prf(scores.clips),
        "average_precision": scores.average_precision,
        "spotting": {f"{width:g} s": value for width, value in scores.spotting.items()},
    }


def _summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mean and deviation over seeds of what the tables show."""
    found = []
    for split in dict.fromkeys(row["split"] for row in rows):
        for loss in LOSSES:
            runs = [row for row in rows if row["split"] == split and row["loss"] == loss]
            best = [run["trends"]["combined"] for run in runs]
            line: dict[str, Any] = {"split": split, "loss": loss}
            for name in ("precision", "recall", "f1"):
                line[name] = mean_and_deviation([run["clips"][name] for run in best])
            line["average_precision"] = mean_and_deviation([run["average_precision"] for run in best])
            line["spotting"] = mean_and_deviation([run["spotting"]["2 s"] for run in best])
            line["f1_by_test"] = {
                trend: mean_and_deviation([run["trends"][trend]["clips"]["f1"] for run in runs])
                for trend in runs[0]["trends"]
            }
            line["found_f1"] = mean_and_deviation([run["found"]["clips"]["f1"] for run in runs])
            line["found_cuts_f1"] = mean_and_deviation([run["found"]["cuts"]["f1"] for run in runs])
            found.append(line)
    return found


def _print(summary: Sequence[Mapping[str, Any]]) -> None:
    names = ("precision", "recall", "f1", "average_precision", "spotting", "found_f1", "found_cuts_f1")
    titles = ("precision", "recall", "F1", "AP", "spotting", "F1, cuts found", "cuts F1")
    for split in dict.fromkeys(line["split"] for line in summary):
        table(
            split,
            [("loss", "left"), *((title, "right") for title in titles)],
            [
                [line["loss"], *(plus_minus(line[name]) for name in names)]
                for line in summary
                if line["split"] == split
            ],
        )

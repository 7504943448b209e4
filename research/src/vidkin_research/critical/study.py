"""The comparison on critical clips: every loss, several seeds, all places and each place held out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from vidkin._base.values import as_json
from vidkin.models import save_model
from vidkin.rendering.machine import describe_machine
from vidkin.shots.learned import encode_with, fit_shot_rules
from vidkin.shots.shot_windows import CUT_NUMBERS
from vidkin.shots.training.clips import ShotClips
from vidkin.shots.training.head import ShotRecipe, train_on_shots
from vidkin_research.critical.material import ALL_PLACES, HighlightPart, compose_splits
from vidkin_research.critical.scores import score_model, score_shot_length, summarize_critical
from vidkin_research.heads import FRAME_NETWORK, HeadStore
from vidkin_research.runs import OnStudyProgress, Report, check_same_data, load_or_run, run_path

__all__ = ["CriticalStudy", "run_critical_study"]

_SAVED_LOSS = "quadlet"


@dataclass(frozen=True, kw_only=True)
class CriticalStudy:
    """What is compared.

    Attributes:
        losses: ``untrained``, or a loss of a recipe of shots.
        seeds: Trainings of every loss.
        steps: Steps of a training.
        window: Frames of a clip.
        rate: Frames per second of the composed videos.
        train: (videos, seed) of the training split with all places.
        test: (videos, seed) of the test split with all places.
        held_out: Also hold out each place from training and evaluate on it.
        held_out_videos: Videos of each part where one place is held out.
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
    """Train with every loss on one part of the recordings and evaluate on the other; stored runs are not repeated.

    Args:
        study: What is compared.
        data: Folder with the recordings, at any depth.
        weights: Weights of the frame network, a safetensors file; None takes those of the hub.
        work: Folder of composed videos, features and runs.
        save: Folder for the model trained with quadlets on all places by the first seed, unless that run was stored.
        output: File that the caller writes the figures to: data may lie in the same folder.
        on_progress: Called with the steps done, all steps and the current step.

    Raises:
        InvalidArgumentError: ``work`` has results on other data.
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
        result = load_or_run(
            run_path(work / "runs", (split, loss, seed, *fixed, CUT_NUMBERS)),
            partial(_run, study, store, *splits[split], loss, seed, keep),
        )
        rows.append({"split": split, "loss": loss, "seed": seed, **result})
    return Report(
        what="critical clips in composed highlight videos",
        machine=describe_machine(),
        settings={
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
        clips = ShotClips(
            [torch.from_numpy(rows) for rows in train.features], train.labels, window=study.window
        )
        recipe = ShotRecipe.from_mapping(
            {"loss": loss, "window": study.window, "steps": study.steps, "seed": seed}
        )
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

"""Train a detector from labeled shots: train the metric, fit the rules for cuts and critical shots, and save both."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin._base.files import PathLike, create_output_folder
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import resolve_device
from vidkin.models import ClipEncoder, build_model, save_model
from vidkin.models.randomness import seeded
from vidkin.models.weights import add_weights
from vidkin.shots import VideoAnnotation, read_shot_annotations
from vidkin.training.processes import any_process, is_first, join_processes
from vidkin.training.runner import StepStore, hold_training_folder
from vidkin_research.learned.clips import ShotClips, check_labels_fit, count_in, encode_with, video_features
from vidkin_research.learned.detector import fit_shot_rules
from vidkin_research.learned.objective import ShotTraining, train_on_shots
from vidkin_research.learned.recipes import FIT_EVERY, ShotPlan, load_shot_recipe
from vidkin_research.learned.video_frames import VideoFrames, read_video_frames

_log = logging.getLogger(__name__)

# The reported loss is the mean over this many final steps.
_LAST_STEPS = 20
_REORDER = "change the order of the videos, or label more of them"


@dataclass(frozen=True, kw_only=True)
class ShotTrainingProgress:
    """Progress of a training run.

    Attributes:
        phase: ``reading`` while features of videos are computed, ``training`` during the steps.
        done: Number of finished videos or steps.
        total: Total number of videos or steps.
        video: Name of the video being read.
        terms: Loss terms of the step.
    """

    phase: Literal["reading", "training"]
    done: int
    total: int
    video: str = ""
    terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ShotTrainingReport(Result):
    """Result of a training run.

    Attributes:
        output: Folder of the detector.
        trained_videos: Number of videos that the metric was trained on.
        fitted_videos: Number of videos that the thresholds were fitted to.
        loss: Mean loss over the last 20 steps.
        distance: Mean pairwise distance of embeddings at the end, in [0, 2].
        collapsed: Whether all embeddings are nearly equal, so that the model is useless.
        has_critical: Whether the detector computes critical scores.
        has_gradual: Whether the detector finds gradual transitions.
        seconds: Wall-clock time of the training steps.
    """

    output: Path
    trained_videos: int
    fitted_videos: int
    loss: float
    distance: float
    collapsed: bool
    has_critical: bool
    has_gradual: bool
    seconds: float


def train_shots(
    labels: PathLike | Sequence[VideoAnnotation],
    recipe: PathLike | Mapping[str, Any] | ShotPlan | None = None,
    *,
    output: PathLike = "shots-model",
    resume: bool = True,
    device: str = "auto",
    on_progress: Callable[[ShotTrainingProgress], None] | None = None,
) -> ShotTrainingReport:
    """Train a metric on labeled shots, fit the rules for cuts and critical shots, and save both as a detector.

    Every fourth video is held out to fit the thresholds. Use the folder with `vidkin.detect_shots` or ``vidkin shots
    --detector``. It is written at the end; an interrupted training run leaves only a checkpoint, from which the same
    call resumes with the same final weights. Processes started by `torchrun` train together; all of them read the
    videos, and the first one writes the output.

    Args:
        labels: At least four videos with their shots, or a JSON file (`vidkin.datasets.read_shot_annotations`).
        recipe: A TOML file, the name of a built-in recipe (``extended``, ``published``), or its content; default:
            ``extended``. See `vidkin_research.learned.recipes.load_shot_recipe`.
        output: Folder of the detector; created if it does not exist.
        resume: Whether to resume from the folder's checkpoint; False starts over.
        device: Device of the network: ``auto`` (a CUDA device if there is one), ``cpu``, ``cuda`` or ``cuda:N``.
        on_progress: Callback called before each video and after each step.

    Raises:
        InvalidArgumentError: The recipe or the labels cannot be used, or the output folder is not writable, used by
            another training run, or contains an unfinished run with other settings.
        MediaError: A video cannot be read.
        TrainingError: The loss is not finite.
    """
    plan: ShotPlan = recipe if isinstance(recipe, ShotPlan) else load_shot_recipe(recipe, method="learned")
    source = os.path.basename(labels) if isinstance(labels, str | os.PathLike) else ""
    annotations = list(read_shot_annotations(labels) if isinstance(labels, str | os.PathLike) else labels)
    held_out = annotations[FIT_EVERY - 1 :: FIT_EVERY]
    judges_critical = _check_labels(annotations, held_out)
    if plan.shots.rule == "default" and not judges_critical:
        raise InvalidArgumentError(
            "shots.rule 'default' only learns critical shots, so the held-out videos (every fourth one: "
            f"{', '.join(one.video.name for one in held_out[:5])}) must contain both critical and other shots, to fit "
            f"the threshold; {_REORDER}, or choose the rule 'extended'"
        )
    folder = create_output_folder(output)
    where = resolve_device(device)
    with join_processes(where), hold_training_folder(folder) if is_first() else nullcontext():
        model = build_model(plan.model, weights=plan.weights or None, seed=plan.shots.seed).to(where)
        assert isinstance(model, ClipEncoder)
        model.eval()
        notify = on_progress if on_progress and is_first() else (lambda _: None)
        videos = _read(model, plan, annotations, notify)
        labeled = [video.annotation for video in videos]
        store = StepStore(folder, _fingerprint(plan, model, annotations))
        if not resume:
            store.finish()
        # Wait until the first process has removed the old checkpoint.
        any_process(False)
        with seeded(plan.shots.seed):
            training = _train(model, plan, videos, store, notify)
        fitted = range(FIT_EVERY - 1, len(videos), FIT_EVERY)
        rules = fit_shot_rules(
            [_features(model, plan, videos[number]) for number in fitted],
            [[(shot.start, shot.end) for shot in labeled[number].shots] for number in fitted],
            encode_with(model),
            window=plan.shots.window,
            rate=plan.shots.rate,
            method=plan.shots.rule,
            critical=[[shot.critical is not None for shot in labeled[number].shots] for number in fitted]
            if judges_critical
            else None,
            fitted_on=f"{len(held_out)} held-out video{'s' if len(held_out) > 1 else ''}",
        )
        if is_first():
            # Write all files before moving them into place, so that an error leaves an existing detector intact.
            with TemporaryDirectory(dir=folder, prefix=".", suffix=".part") as temporary:
                notes = {"loss": plan.shots.loss, "seed": plan.shots.seed, "labels": source}
                save_model(model.cpu(), temporary, notes=notes)
                rules.save(temporary)
                for file in sorted(Path(temporary).iterdir()):
                    file.replace(folder / file.name)
        store.finish()
    last = training.losses[-_LAST_STEPS:]
    return ShotTrainingReport(
        output=folder,
        trained_videos=len(annotations) - len(held_out),
        fitted_videos=len(held_out),
        loss=sum(last) / max(1, len(last)),
        distance=training.distance,
        collapsed=training.collapsed,
        has_critical=rules.critical is not None,
        has_gradual=rules.gradual is not None,
        seconds=training.seconds,
    )


def _check_labels(annotations: Sequence[VideoAnnotation], held_out: Sequence[VideoAnnotation]) -> bool:
    """Check the labels before any video is read, so that problems do not surface only after training.

    Return whether the held-out videos have both critical and other shots, so that a rule can be fitted to them.
    """
    if len(annotations) < FIT_EVERY:
        raise InvalidArgumentError(
            f"labels must cover at least {FIT_EVERY} videos, because every fourth is held out to fit the thresholds, "
            f"got {len(annotations)}"
        )
    missing = [annotation.video.name for annotation in annotations if not annotation.video.is_file()]
    if missing:
        raise InvalidArgumentError(
            f"{len(missing)} labeled video{'s' if len(missing) > 1 else ''} not found: {', '.join(missing[:5])}; "
            "paths are relative to the label file"
        )
    names = f"({', '.join(one.video.name for one in held_out[:5])}{', ...' if len(held_out) > 5 else ''})"
    if all(len(annotation.shots) < 2 for annotation in held_out):
        raise InvalidArgumentError(
            f"every fourth video {names} is held out to fit the cut rule, but none of them has a labeled cut; "
            f"{_REORDER}"
        )
    judges_critical = len({shot.critical is not None for one in held_out for shot in one.shots}) == 2
    if not judges_critical and any(shot.critical for one in annotations for shot in one.shots):
        _log.warning(
            "every fourth video %s is held out to fit the rule for critical shots, but these do not have both critical "
            "and other shots, so the detector will not compute critical scores; %s",
            names,
            _REORDER,
        )
    return judges_critical


@dataclass(frozen=True, slots=True)
class _Video:
    """A labeled video as features, or as frames if the frame network is trained; labels count these frames."""

    annotation: VideoAnnotation
    features: NDArray[np.float32] | None
    frames: VideoFrames | None


def _read(
    model: ClipEncoder,
    plan: ShotPlan,
    annotations: Sequence[VideoAnnotation],
    notify: Callable[[ShotTrainingProgress], None],
) -> list[_Video]:
    size, fit, rate = plan.model.size, plan.model.fit, plan.shots.rate
    left = round(plan.shots.memory * 2**30)
    videos = []
    for done, annotation in enumerate(annotations):
        name = annotation.video.name
        notify(ShotTrainingProgress(phase="reading", done=done, total=len(annotations), video=name))
        if plan.model.trainable == "all":
            frames, count = read_video_frames(annotation.video, size=size, fit=fit, rate=rate, most_bytes=left)
            left -= frames.nbytes
            features, numbers = None, frames.numbers
        else:
            described = video_features(model, annotation.video, size=size, fit=fit, rate=rate)
            features, frames = described.rows, None
            numbers, count = described.numbers, described.frames
        check_labels_fit(annotation, count)
        if rate is not None:
            annotation = count_in(annotation, numbers, fps=min(rate, annotation.fps))
        videos.append(_Video(annotation, features, frames))
    return videos


def _features(model: ClipEncoder, plan: ShotPlan, video: _Video) -> NDArray[np.float32]:
    """Return the frame features of a video, computed with the current model if they are not stored."""
    if video.features is not None:
        return video.features
    return video_features(
        model,
        video.annotation.video,
        size=plan.model.size,
        fit=plan.model.fit,
        rate=plan.shots.rate,
    ).rows


def _train(
    model: ClipEncoder,
    plan: ShotPlan,
    videos: Sequence[_Video],
    store: StepStore,
    notify: Callable[[ShotTrainingProgress], None],
) -> ShotTraining:
    """Train on all videos that are not held out."""
    chosen = [video for number, video in enumerate(videos) if number % FIT_EVERY != FIT_EVERY - 1]
    sources: list[torch.Tensor | VideoFrames] = []
    for video in chosen:
        if video.features is not None:
            sources.append(torch.from_numpy(video.features))
        elif video.frames is not None:
            sources.append(video.frames)
    clips = ShotClips(sources, [video.annotation for video in chosen], window=plan.shots.window)
    return train_on_shots(
        model,
        clips,
        plan.shots,
        store=store,
        on_progress=lambda step, terms: notify(
            ShotTrainingProgress(phase="training", done=step, total=plan.shots.steps, terms=terms)
        ),
    )


def _fingerprint(plan: ShotPlan, model: ClipEncoder, annotations: Sequence[VideoAnnotation]) -> str:
    """Return a hash of everything that affects the weights: recipe, labels and initial weights."""
    labels = [(annotation.video.name, annotation.shots) for annotation in annotations]
    deciding = replace(plan, weights="", shots=replace(plan.shots, memory=0.0))
    digest = hashlib.sha256(repr((deciding, labels)).encode())
    add_weights(digest, model)
    return digest.hexdigest()

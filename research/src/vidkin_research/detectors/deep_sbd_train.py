"""Train a DeepSBD detector from labeled shots with one call."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin._base.files import create_output_folder
from vidkin._base.registry import import_part
from vidkin._base.toml import check_names, from_table
from vidkin._base.values import Result, check_at_least, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import resolve_device
from vidkin.models import DeepSBDNetwork, EncoderConfig, build_model, save_model
from vidkin.models.randomness import seeded
from vidkin.rendering.text import number
from vidkin.shots import VideoAnnotation, read_shot_annotations
from vidkin.training.processes import any_process, is_first, join_processes
from vidkin.training.runner import StepStore, hold_training_folder
from vidkin_research.detectors.deep_sbd_rules import CLASSES, SEGMENT
from vidkin_research.detectors.deep_sbd_training import LabeledFrames, segments_by_class, train_on_segments
from vidkin_research.learned.clips import check_labels_fit
from vidkin_research.learned.recipes import ShotMethod
from vidkin_research.learned.video_frames import read_video_frames

__all__ = ["SegmentPlan", "fit_svm", "train_deep_sbd"]


# DeepSBD recipes: ``[segments]`` configures training, ``[model]`` configures the network.


_FIXED: Mapping[str, Any] = {
    "kind": "deep_sbd",
    "frames": SEGMENT,
    "classes": len(CLASSES),
    "trainable": "all",
}

_DEFAULTS: Mapping[str, Any] = {"fit": "stretch", "size": 112, "batch_norm": True}


@dataclass(frozen=True, kw_only=True)
class SegmentRecipe:
    """Settings for training DeepSBD's network and classifier.

    Attributes:
        classifier: ``softmax`` (the network's own classifier) or ``svm`` (a linear SVM on its second fully connected
            layer).
        steps: Number of optimizer steps.
        batch: Number of segments per step.
        learning_rate: Peak learning rate of the one-cycle schedule, above 0.
        weight_decay: Weight decay of AdamW, at least 0.
        memory: GiB of decoded images to cache; others are decoded again whenever they are sampled.
        seed: Random seed for the initial weights, segment sampling and augmentation.
    """

    classifier: Literal["softmax", "svm"] = "softmax"
    steps: int = 3000
    batch: int = 24
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4
    memory: float = 4.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("classifier", self.classifier, ("softmax", "svm"))
        check_at_least(0, steps=self.steps, seed=self.seed)
        check_at_least(1, batch=self.batch)
        numbers = (self.learning_rate, self.weight_decay, self.memory)
        if not (self.learning_rate > 0 and self.weight_decay >= 0 and self.memory >= 0) or not all(
            math.isfinite(number) for number in numbers
        ):
            raise InvalidArgumentError(
                "learning_rate must be above 0, weight_decay and memory at least 0, and all finite, "
                f"got {self.learning_rate}, {self.weight_decay} and {self.memory}"
            )


@dataclass(frozen=True, kw_only=True)
class SegmentPlan:
    """A complete recipe: training and network.

    Attributes:
        segments: Batches, steps and classifier.
        model: Configuration of kind ``deep_sbd``; width 1 and size 112 are the published values.
    """

    segments: SegmentRecipe
    model: EncoderConfig


def parse_segment_recipe(content: Mapping[str, Any]) -> SegmentPlan:
    """Parse and check the content of a TOML recipe.

    Raises:
        InvalidArgumentError: A setting is unknown, out of range, or not a setting of DeepSBD.
    """
    check_names(content, ("segments", "model"), "recipe")
    given = content.get("model", {})
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"[model] must be a table of settings, got {given!r}")
    for name, needed in _FIXED.items():
        if given.get(name, needed) != needed:
            raise InvalidArgumentError(f"model.{name} must be {needed!r} for DeepSBD, got {given[name]!r}")
    model = EncoderConfig.from_mapping({**_DEFAULTS, **given, **_FIXED})
    return SegmentPlan(segments=from_table(SegmentRecipe, content.get("segments", {}), "segments"), model=model)


PathLike = str | os.PathLike[str]

# The reported loss is the mean over this many final steps.
_LAST_STEPS = 20


@dataclass(frozen=True, kw_only=True)
class SegmentTrainingReport(Result):
    """Result of a training run.

    Attributes:
        output: Folder of the detector.
        trained_videos: Number of videos the detector was trained on.
        classifier: ``softmax`` or ``svm``.
        loss: Mean cross entropy over the last 20 steps.
        right: Fraction of training segments classified correctly, in the last tenth of the steps or by the SVM.
        has_gradual: Whether the labels have gradual transitions, so that the detector can find them.
        seconds: Wall-clock time of the training steps.
    """

    output: Path
    trained_videos: int
    classifier: str
    loss: float
    right: float
    has_gradual: bool
    seconds: float


def train_deep_sbd(
    labels: PathLike | Sequence[VideoAnnotation],
    plan: SegmentPlan,
    *,
    output: PathLike = "shots-model",
    resume: bool = True,
    device: str = "auto",
    on_progress: Callable[[str, int, int], None] | None = None,
) -> SegmentTrainingReport:
    """Train DeepSBD on the cuts between labeled shots and save it as a detector for ``vidkin shots --detector``.

    Adjacent shots are separated by a sharp transition; frames between two shots form a gradual transition. Critical
    moments are ignored. The same call resumes an interrupted training run and produces the same weights. Processes
    started by `torchrun` train together; all of them read the videos, and the first one writes the output.

    Args:
        labels: Videos with their shots, or a JSON file (`vidkin.datasets.read_shot_annotations`).
        plan: The recipe.
        output: Folder of the detector; created if it does not exist.
        resume: Whether to resume from the folder's checkpoint; False starts over.
        device: Device of the network: ``auto`` (a CUDA device if there is one), ``cpu``, ``cuda`` or ``cuda:N``.
        on_progress: Callback that receives (current phase, number done, total) before each video and after each step.

    Raises:
        InvalidArgumentError: The labels cannot be used, or the output folder is not writable, used by another training
            run, or contains an unfinished run with other settings.
        MediaError: A video cannot be read.
        TrainingError: The loss is not finite.
    """
    given = read_shot_annotations(labels) if isinstance(labels, str | os.PathLike) else labels
    annotations = list(given)
    if not any(annotation.cuts for annotation in annotations):
        raise InvalidArgumentError("labels must contain at least one cut, got none; label more videos")
    folder = create_output_folder(output)
    recipe = plan.segments
    where = resolve_device(device)
    with join_processes(where), hold_training_folder(folder) if is_first() else nullcontext():
        tell = on_progress if on_progress and is_first() else (lambda what, done, total: None)
        films = _read(annotations, plan, tell)
        network = build_model(plan.model, seed=recipe.seed).to(where)
        assert isinstance(network, DeepSBDNetwork)
        names = [(annotation.video.name, annotation.cuts) for annotation in annotations]
        deciding = replace(plan, segments=replace(recipe, memory=0.0))
        store = StepStore(folder, hashlib.sha256(repr((deciding, names)).encode()).hexdigest())
        if not resume:
            store.finish()
        # Wait until the first process has removed the old checkpoint.
        any_process(False)
        with seeded(recipe.seed):
            training = train_on_segments(
                network,
                films,
                steps=recipe.steps,
                batch=recipe.batch,
                learning_rate=recipe.learning_rate,
                weight_decay=recipe.weight_decay,
                seed=recipe.seed,
                store=store,
                on_progress=lambda step, loss: tell(f"loss {loss:.3f}", step, recipe.steps),
            )
        right = training.right
        if recipe.classifier == "svm":
            right = fit_svm(network, films, seed=recipe.seed)
        notes = {"trained_by": "vidkin train-shots", "classifier": recipe.classifier, "seed": recipe.seed}
        if is_first():
            with TemporaryDirectory(dir=folder, prefix=".", suffix=".part") as temporary:
                save_model(network.cpu(), temporary, notes=notes)
                for file in sorted(Path(temporary).iterdir()):
                    file.replace(folder / file.name)
        store.finish()
    last = training.losses[-_LAST_STEPS:]
    return SegmentTrainingReport(
        output=folder,
        trained_videos=len(films),
        classifier=recipe.classifier,
        loss=sum(last) / max(1, len(last)),
        right=right,
        has_gradual=any(film.gradual for film in films),
        seconds=training.seconds,
    )


def _read(
    annotations: Sequence[VideoAnnotation], plan: SegmentPlan, tell: Callable[[str, int, int], None]
) -> list[LabeledFrames]:
    left = round(plan.segments.memory * 2**30)
    films = []
    for done, annotation in enumerate(annotations):
        tell(annotation.video.name, done, len(annotations))
        frames, count = read_video_frames(annotation.video, size=plan.model.size, fit=plan.model.fit, most_bytes=left)
        check_labels_fit(annotation, count)
        left -= frames.nbytes
        films.append(
            LabeledFrames(
                frames,
                tuple(cut for cut in annotation.cuts if isinstance(cut, int)),
                tuple(cut for cut in annotation.cuts if not isinstance(cut, int)),
            )
        )
    return films


def _tables(plan: SegmentPlan) -> dict[str, dict[str, Any]]:
    return {
        "segments": {entry.name: getattr(plan.segments, entry.name) for entry in fields(plan.segments)},
        "model": {entry.name: getattr(plan.model, entry.name) for entry in fields(plan.model)},
    }


def _row(report: SegmentTrainingReport) -> Mapping[str, str]:
    return {
        "trained on": number(report.trained_videos, "video"),
        "loss": f"{report.loss:.4f}",
        "classifier": report.classifier,
        "right": f"{100 * report.right:.1f} %",
    }


DEEP_SBD = ShotMethod(
    name="deepsbd",
    title="training DeepSBD",
    table="segments",
    default="deepsbd",
    package="vidkin_research.detectors",
    plan=SegmentPlan,
    parse=parse_segment_recipe,
    tables=_tables,
    train=train_deep_sbd,
    row=_row,
)

"""Training method ``deepsbd`` of `vidkin train-shots`: a 3-D CNN on segments of labeled shots."""


# The SVM variant of DeepSBD: a linear SVM on the last hidden layer replaces the network's own classifier.


_BATCH = 16

# Bias of a class without training segments, so that it is never predicted.
_NEVER_LOGIT = -1e3


def fit_svm(
    network: DeepSBDNetwork,
    videos: Sequence[LabeledFrames],
    *,
    segments: int = 600,
    strength: float = 1.0,
    seed: int = 0,
) -> float:
    """Replace the classifier of a trained network with a linear SVM on its second fully connected layer.

    The SVM is one-vs-rest, with balanced class weights. Its weights become the network's last layer, so that the model
    is stored and used like any other: the class with the largest margin is predicted, and the softmax of the margins
    replaces the probabilities.

    Args:
        network: A trained network in eval mode. Its last layer is replaced.
        videos: Videos as in `train_on_segments`.
        segments: Maximum number of segments per class.
        strength: Regularization parameter C of the SVM.
        seed: Random seed for sampling segments.

    Returns:
        Fraction of these segments that the SVM classifies correctly, in [0, 1].

    Raises:
        InvalidArgumentError: No segment has a cut, or all of them do.
    """
    support_vectors = import_part("sklearn.svm", extra="train")
    random = np.random.default_rng(seed)
    features: list[NDArray[np.float32]] = []
    labels: list[int] = []
    frames, device = network.config.frames, next(network.parameters()).device
    for label, places in enumerate(segments_by_class(videos, frames)):
        chosen = random.permutation(len(places))[:segments]
        labels += [label] * len(chosen)
        for first in range(0, len(chosen), _BATCH):
            part = [places[row] for row in chosen[first : first + _BATCH]]
            images = np.stack([videos[video].images[start : start + frames] for video, start in part])
            volumes = torch.from_numpy(images).permute(0, 4, 1, 2, 3).float() / 255
            with torch.inference_mode():
                features.append(network.hidden_features(volumes.to(device)).float().cpu().numpy())
    rows = np.concatenate(features)
    # The solver only converges on standardized features and in the primal.
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    scale[scale == 0] = 1.0
    machine = support_vectors.LinearSVC(
        C=strength, class_weight="balanced", dual=False, random_state=seed, max_iter=5000
    )
    machine.fit((rows - mean) / scale, labels)
    weights = machine.coef_ / scale
    biases = machine.intercept_ - weights @ mean
    if len(machine.classes_) == 2:  # for two classes, scikit-learn fits a single SVM
        weights, biases = np.concatenate([-weights, weights]), np.concatenate([-biases, biases])
    layer = network.classifier
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.fill_(_NEVER_LOGIT)
        for row, label in enumerate(machine.classes_.tolist()):
            layer.weight[label] = torch.from_numpy(weights[row]).to(device)
            layer.bias[label] = float(biases[row])
        logits = layer(torch.from_numpy(rows).to(device))
    network.class_names = CLASSES
    return float((logits.argmax(dim=1).cpu().numpy() == np.array(labels)).mean())

"""Train a DeepSBD detector from labeled shots with one call."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vidkin._base.files import create_output_folder
from vidkin._base.values import Result
from vidkin.datasets import VideoAnnotation, read_shot_annotations
from vidkin.errors import InvalidArgumentError
from vidkin.models import DeepSBDNetwork, build_model, save_model
from vidkin.models.processes import any_process, is_first, join_processes
from vidkin.models.randomness import seeded
from vidkin.models.runner import StepStore, hold_training_folder
from vidkin.rendering.text import number
from vidkin.shots.training.clips import check_labels_fit
from vidkin.shots.training.recipes import ShotMethod
from vidkin.shots.video_frames import read_video_frames
from vidkin_research.detectors.deep_sbd_recipe import SegmentPlan, parse_segment_recipe
from vidkin_research.detectors.deep_sbd_svm import fit_svm
from vidkin_research.detectors.deep_sbd_training import LabeledFrames, train_on_segments

__all__ = ["DEEP_SBD", "SegmentTrainingReport", "train_deep_sbd"]

PathLike = str | os.PathLike[str]

# Number of last steps whose mean loss is reported.
_LAST_STEPS = 20


@dataclass(frozen=True, kw_only=True)
class SegmentTrainingReport(Result):
    """The result of a training.

    Attributes:
        output: Folder of the detector.
        trained_videos: Videos the detector was trained on.
        classifier: ``softmax`` or ``svm``.
        loss: Mean cross entropy over the last 20 steps.
        right: Share of training segments classified correctly: during the last tenth of the steps, or by the SVM.
        has_gradual: Whether the labels have gradual transitions, so that the detector knows them.
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
    on_progress: Callable[[str, int, int], None] | None = None,
) -> SegmentTrainingReport:
    """Train DeepSBD on the cuts between labeled shots, and store it as a detector for ``vidkin shots --detector``.

    Adjacent shots have a sharp transition between them; frames between two shots are a gradual one. Critical moments
    are ignored. An interrupted training resumes with the same call and ends with the same weights. Processes that
    `torchrun` started take common steps; every one reads the videos, and the first one writes.

    Args:
        labels: Videos with their shots, or a JSON file of them (`vidkin.datasets.read_shot_annotations`).
        plan: The recipe.
        output: Folder of the detector; created if it does not exist.
        resume: Continue from the folder's checkpoint; False starts over.
        on_progress: Callback that receives (current phase, number done, total number) before each video and after each
            step.

    Raises:
        InvalidArgumentError: The labels cannot be used, the output cannot be written to, another training writes there,
            or it holds an unfinished
            training with other settings.
        MediaError: A video cannot be read.
        TrainingError: The loss is no longer a finite number.
    """
    given = read_shot_annotations(labels) if isinstance(labels, str | os.PathLike) else labels
    annotations = list(given)
    if not any(annotation.cuts for annotation in annotations):
        raise InvalidArgumentError("labels must have at least one cut, got none; label more videos")
    folder = create_output_folder(output)
    recipe = plan.segments
    with join_processes("cpu"), hold_training_folder(folder) if is_first() else nullcontext():
        tell = on_progress if on_progress and is_first() else (lambda what, done, total: None)
        films = _read(annotations, plan, tell)
        network = build_model(plan.model, seed=recipe.seed)
        assert isinstance(network, DeepSBDNetwork)
        names = [(annotation.video.name, annotation.cuts) for annotation in annotations]
        deciding = replace(plan, segments=replace(recipe, memory=0.0))
        store = StepStore(folder, hashlib.sha256(repr((deciding, names)).encode()).hexdigest())
        if not resume:
            store.finish()
        # The first process has removed the checkpoint before the others look for it.
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
                save_model(network, temporary, notes=notes)
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
        frames, count = read_video_frames(
            annotation.video, size=plan.model.size, fit=plan.model.fit, most_bytes=left
        )
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
"""A 3-D CNN on segments of labeled shots, for `vidkin train-shots`."""

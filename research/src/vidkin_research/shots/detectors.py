"""Find cuts with each kind of detector: registered, learned from labeled shots, and DeepSBD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidkin.media import iter_frames
from vidkin.media.frames import fit_to_square
from vidkin.models import DeepSBDNetwork, EncoderConfig, build_model, save_model
from vidkin.shots import DetectedCut, VideoAnnotation, detect
from vidkin_research.detectors.deep_sbd_detector import DeepSbdBaseline
from vidkin_research.detectors.deep_sbd_train import fit_svm
from vidkin_research.detectors.deep_sbd_training import LabeledFrames, train_on_segments
from vidkin_research.heads import HeadStore
from vidkin_research.learned.clips import ShotClips, encode_with
from vidkin_research.learned.detector import find_shots, fit_shot_rules
from vidkin_research.learned.objective import ShotRecipe, train_on_shots
from vidkin_research.runs import OnStudyProgress
from vidkin_research.shots.material import LabelledVideo, annotation_of

__all__ = [
    "TrainedCuts",
    "detect_by_name",
    "train_and_detect",
    "train_and_detect_segments",
]

# Some detectors merge cuts closer than half a second by default, and would miss composed cuts.
_KEEP_SHORT_SHOTS = "min_scene_len=1"
_MERGING = ("content", "adaptive")


@dataclass(frozen=True, slots=True)
class TrainedCuts:
    """Cuts detected in every evaluated video, with the training report."""

    cuts: dict[Path, list[DetectedCut]]
    training: dict[str, Any]


def detect_by_name(name: str, videos: Sequence[LabelledVideo]) -> dict[Path, list[DetectedCut]]:
    """Find cuts with a registered detector; detectors that merge close cuts are configured to keep them."""
    address = f"{name}?{_KEEP_SHORT_SHOTS}" if name in _MERGING else name
    return {video.path: list(detect(video.path, address).cuts) for video in videos}  # type: ignore[arg-type]


def train_and_detect(
    store: HeadStore,
    recipe: ShotRecipe,
    composed: Sequence[LabelledVideo],
    highlights: Sequence[VideoAnnotation],
    videos: Sequence[LabelledVideo],
    *,
    save: Path | None,
    on_progress: OnStudyProgress,
) -> TrainedCuts:
    """Find cuts in ``videos`` with the extended rule, trained on composed and highlight videos and fitted to composed
    videos.

    Args:
        store: Cached features and new heads.
        recipe: Loss, window, steps and seed.
        composed: Composed videos.
        highlights: Highlight videos.
        videos: The videos to evaluate.
        save: Folder to save the model in; None does not save it.
        on_progress: Callback called while features are computed.
    """
    features = store.features([video.path for video in composed], on_progress=on_progress)
    labels = [annotation_of(video, len(rows)) for video, rows in zip(composed, features, strict=True)]
    others = store.features([label.video for label in highlights], on_progress=on_progress)
    clips = ShotClips(
        [torch.from_numpy(rows) for rows in (*features, *others)],
        [*labels, *highlights],
        window=recipe.window,
    )
    model = store.model(recipe.seed)
    report = train_on_shots(model, clips, recipe)
    encode = encode_with(model)
    rules = fit_shot_rules(
        features,
        [[(shot.start, shot.end) for shot in label.shots] for label in labels],
        encode,
        window=recipe.window,
        fitted_on="training split of the composed videos of `vidkin benchmark shots`",
    )
    if save is not None:
        save_model(model, save, notes={"trained_by": "vidkin benchmark shots", "loss": recipe.loss})
        rules.save(save)
    judged = store.features([video.path for video in videos], on_progress=on_progress)
    cuts = {
        video.path: list(find_shots(rows, encode, rules).detected_cuts(range(len(rows))).cuts)
        for video, rows in zip(videos, judged, strict=True)
    }
    gradual = None if rules.gradual is None else rules.gradual.threshold
    assert rules.cut is not None
    training = {
        "seconds": report.seconds,
        "collapsed": report.collapsed,
        "distance": report.distance,
        "thresholds": {"cut": rules.cut.threshold, "gradual": gradual},
    }
    return TrainedCuts(cuts, training)


def train_and_detect_segments(
    composed: Sequence[LabelledVideo],
    videos: Sequence[LabelledVideo],
    *,
    size: int,
    width: float,
    steps: int,
    seed: int,
) -> tuple[TrainedCuts, TrainedCuts]:
    """Find cuts in ``videos`` with DeepSBD, reduced to a fraction ``width`` of its channels and trained on composed
    videos.

    Returns the cuts of its softmax, and of the other published variant, a linear SVM on the hidden layer of the same
    network.
    """
    config = EncoderConfig(
        kind="deep_sbd", width=width, size=size, frames=16, classes=3, batch_norm=True, fit="stretch"
    )
    network = build_model(config, seed=seed)
    assert isinstance(network, DeepSBDNetwork)
    films = []
    for video in composed:
        batches = iter_frames(video.path, rate=None, short_side=size)
        frames = np.stack([fit_to_square(image, size, "stretch") for batch in batches for image in batch.images])
        films.append(LabeledFrames(frames, video.labels.hard, video.labels.gradual))
    report = train_on_segments(network, films, steps=steps, seed=seed)
    told = {"seconds": report.seconds, "right": report.right}
    by_softmax = _cuts_of(network, size, videos)
    right = fit_svm(network, films, seed=seed)
    return TrainedCuts(by_softmax, told), TrainedCuts(_cuts_of(network, size, videos), {**told, "right": right})


def _cuts_of(network: DeepSBDNetwork, size: int, videos: Sequence[LabelledVideo]) -> dict[Path, list[DetectedCut]]:
    return {
        video.path: list(detect(video.path, DeepSbdBaseline(network, size=size)).cuts)  # type: ignore[arg-type]
        for video in videos
    }

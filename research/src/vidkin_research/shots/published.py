"""Train and evaluate the published cut rule, reduced so that it runs on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vidkin.models import ClipEncoder, build_model, save_model
from vidkin.shots import VideoAnnotation
from vidkin_research.learned.clips import ShotClips, count_in, encode_with, video_features
from vidkin_research.learned.detector import find_shots, fit_shot_rules
from vidkin_research.learned.objective import ShotLoss, train_on_shots
from vidkin_research.learned.recipes import ShotPlan, parse_shot_recipe, read_shot_recipe
from vidkin_research.learned.video_frames import read_video_frames
from vidkin_research.runs import OnStudyProgress
from vidkin_research.shots.detectors import TrainedCuts
from vidkin_research.shots.material import LabelledVideo, annotation_of

__all__ = ["PublishedDetector", "train_and_detect_published"]


@dataclass(frozen=True, kw_only=True)
class PublishedDetector:
    """Settings of the published rule and training, reduced so that they run on a CPU.

    Attributes:
        network: The frame network, trained end to end; the paper uses AlexNet.
        size: Side of the square frames in pixels; 224 with AlexNet.
        units: Number of units in the fully connected layer and the LSTM; the paper uses 512 for the former.
        steps: Number of training steps.
        tuples: Number of quadlets, and of triplets, per step.
        window: Number of frames per clip, as in the paper.
        rate: Frames per second, as in the paper.
        loss: The loss, as in the paper.
        learning_rate: Learning rate of the frame network; that of the later layers is ten times as high, as in the
            paper.
    """

    network: str
    size: int = 64
    units: int = 128
    steps: int = 30
    tuples: int = 2
    window: int = 40
    rate: float = 20.0
    loss: ShotLoss = "radial"
    learning_rate: float = 1e-4

    @property
    def title(self) -> str:
        """Name in tables: the rule and how it is reduced."""
        backbone = self.network.partition(":")[2].partition("?")[0] or self.network
        return (
            f"published rule, {self.loss}, {backbone} of {self.size} px trained along, {self.steps} steps of "
            f"{self.tuples} + {self.tuples} tuples"
        )

    def plan(self, seed: int) -> ShotPlan:
        """Return the recipe ``published`` with these settings."""
        content = read_shot_recipe("published")
        content["shots"] |= {
            "loss": self.loss,
            "window": self.window,
            "rate": self.rate,
            "steps": self.steps,
            "quadlets": self.tuples,
            "triplets": self.tuples,
            "learning_rate": self.learning_rate,
            "seed": seed,
        }
        content["model"] |= {
            "backbone": self.network,
            "size": self.size,
            "hidden": self.units,
            "lstm": self.units,
            "mean": [0.5, 0.5, 0.5],
            "std": [0.5, 0.5, 0.5],
        }
        content.pop("reduced", None)  # the study sets its own sizes
        return parse_shot_recipe(content)


def train_and_detect_published(
    detector: PublishedDetector,
    weights: Path | None,
    composed: Sequence[LabelledVideo],
    highlights: Sequence[VideoAnnotation],
    videos: Sequence[LabelledVideo],
    *,
    seed: int,
    save: Path | None,
    on_progress: OnStudyProgress,
) -> TrainedCuts:
    """Train the full encoder on the same data as the other methods, and find cuts with the published rule.

    Args:
        detector: The reduced settings.
        weights: Safetensors file with the weights of the frame network; None downloads them from the hub.
        composed: Composed videos, to which the threshold is also fitted.
        highlights: Highlight videos.
        videos: The videos to evaluate.
        seed: Random seed for weights and sampling.
        save: Folder to save the detector in; None does not save it.
        on_progress: Callback called while frames are read.
    """
    plan = detector.plan(seed)
    model = build_model(plan.model, weights=weights, seed=seed)
    assert isinstance(model, ClipEncoder)
    sources, labels = [], []
    labeled = [(video.path, video) for video in composed] + [(one.video, one) for one in highlights]
    for done, (path, own) in enumerate(labeled):
        on_progress(done, len(labeled), path.name)
        frames, count = read_video_frames(path, size=plan.model.size, rate=detector.rate)
        annotation = own if isinstance(own, VideoAnnotation) else annotation_of(own, count)
        sources.append(frames)
        labels.append(count_in(annotation, frames.numbers, fps=detector.rate))
    clips = ShotClips(sources, labels, window=detector.window)
    report = train_on_shots(
        model,
        clips,
        plan.shots,
        on_progress=lambda step, terms: on_progress(step, plan.shots.steps, f"loss {terms['loss']:.3f}"),
    )
    encode = encode_with(model)
    rules = fit_shot_rules(
        [video_features(model, video.path, size=detector.size, rate=detector.rate).rows for video in composed],
        [[(shot.start, shot.end) for shot in label.shots] for label in labels[: len(composed)]],
        encode,
        window=detector.window,
        rate=detector.rate,
        method="slope",
        fitted_on="training split of the composed videos of `vidkin benchmark shots`",
    )
    if save is not None:
        save_model(model, save, notes={"trained_by": "vidkin benchmark shots", "loss": detector.loss})
        rules.save(save)
    cuts = {}
    for done, video in enumerate(videos):
        on_progress(done, len(videos), video.path.name)
        features = video_features(model, video.path, size=detector.size, rate=detector.rate)
        shots = find_shots(features.rows, encode, rules)
        cuts[video.path] = list(shots.detected_cuts(features.numbers.tolist()).cuts)
    assert rules.cut is not None
    training = {
        "seconds": report.seconds,
        "collapsed": report.collapsed,
        "distance": report.distance,
        "thresholds": {"cut": rules.cut.threshold, "gradual": None},
    }
    return TrainedCuts(cuts, training)

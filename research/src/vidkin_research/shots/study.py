"""Compare shot detectors: published methods, the default detector, and detectors trained with each loss."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

from vidkin._base.values import as_json
from vidkin.metric.measures import DetectionScores
from vidkin.rendering.machine import describe_machine
from vidkin.shots import DetectedCut, VideoAnnotation, read_shot_annotations
from vidkin_research.heads import FRAME_NETWORK, HeadStore
from vidkin_research.learned.judging import BoundaryLabels, evaluate_cuts
from vidkin_research.learned.objective import ShotRecipe
from vidkin_research.learned.windows import CUT_NUMBERS
from vidkin_research.made.highlights import build_highlights
from vidkin_research.made.negatives import NEGATIVE_FAMILIES
from vidkin_research.made.transitions import TRANSITION_FAMILIES
from vidkin_research.runs import OnStudyProgress, Report, check_same_data, load_or_run, run_path
from vidkin_research.shots.composed import build_transitions, score_families
from vidkin_research.shots.detectors import detect_by_name, train_and_detect, train_and_detect_segments
from vidkin_research.shots.extents import score_transitions
from vidkin_research.shots.material import (
    LabelledVideo,
    composed_part,
    edited_videos,
    labeled_collection,
    test_takes,
    with_whole_fades,
)
from vidkin_research.shots.published import PublishedDetector, train_and_detect_published
from vidkin_research.spread import spread

__all__ = ["FAMILIES", "ShotStudy", "count_labels", "run_shot_study", "score_detector", "summarize_shots"]

FAMILIES = "transitions"
"""Name of the set of composed transitions and negatives, whose rows have additional metrics."""

_DEEP_SBD = "DeepSBD, 1/8 width"

_DEEP_SBD_WIDTH = 0.125
_SVM = "SVM"

_LEARNED = "extended rule (ours), "

_SAVED_LOSS = "quadlet"


@dataclass(frozen=True, kw_only=True)
class ShotStudy:
    """Settings of the comparison.

    Attributes:
        detectors: Registered detectors that need no training.
        losses: Losses used to train a detector.
        seeds: Number of runs per loss and of DeepSBD; 0 evaluates only detectors that need no training.
        steps: Training steps per run of the losses.
        segment_steps: Training steps per run of DeepSBD.
        window: Number of frames per clip.
        train_videos: Number of composed videos in the training split.
        test_videos: Number of composed videos in the test split.
        frames: Number of frames per composed video.
        size: Height and width of composed videos.
        segment_size: Side of DeepSBD's square input in pixels.
        highlight_videos: Number of highlight videos that are also used in training.
        network: The frame network, frozen in the rows of the extended rule.
        published: Settings of the reduced published rule and training; None omits its row.
        published_seeds: Number of its runs.
        family_videos: Number of composed videos per family of transitions and negatives, which measure the extents,
            kinds and false detections of detectors that need no training; 0 omits them.
        families: The families to compose.
    """

    detectors: tuple[str, ...] = (*("content", "adaptive", "shotdetect", "shotdetect?threshold=75", "svd", "default"),)
    losses: tuple[str, ...] = ("triplet", "quadlet", "radial", "radial_detached")
    seeds: int = 3
    steps: int = 250
    segment_steps: int = 150
    window: int = 10
    train_videos: int = 16
    test_videos: int = 12
    frames: int = 400
    size: tuple[int, int] = (144, 256)
    segment_size: int = 48
    highlight_videos: int = 12
    network: str = FRAME_NETWORK
    published: PublishedDetector | None = PublishedDetector(network=FRAME_NETWORK)  # noqa: RUF009 - frozen
    published_seeds: int = 1
    family_videos: int = 6
    families: tuple[str, ...] = (*TRANSITION_FAMILIES, *NEGATIVE_FAMILIES)


@dataclass(frozen=True, slots=True)
class _Material:
    """The evaluation sets, and the data for training detectors."""

    sets: Mapping[str, Sequence[LabelledVideo]]
    composed: Sequence[LabelledVideo] = ()
    highlights: Sequence[VideoAnnotation] = ()
    published_highlights: Sequence[VideoAnnotation] = ()

    @property
    def videos(self) -> list[LabelledVideo]:
        """All evaluated videos, without duplicates."""
        return list({video.path: video for videos in self.sets.values() for video in videos}.values())


def run_shot_study(
    study: ShotStudy,
    data: Path,
    *,
    videos: Path | None = None,
    photographs: Path | None = None,
    weights: Path | None = None,
    work: Path,
    save: Path | None = None,
    output: Path | None = None,
    labels: tuple[str, Path] | None = None,
    on_progress: OnStudyProgress = lambda done, total, what: None,
) -> Report:
    """Evaluate every detector; runs that need training are stored and not repeated.

    Args:
        study: Settings of the comparison.
        data: Folder of edited videos with ``truth.json``.
        videos: Folder of single-shot clips to compose videos from; None evaluates only detectors that need no
            training.
        photographs: Folder of photographs that add scenes to the composed videos.
        weights: Safetensors file with the weights of the frame network; None downloads them from the hub.
        work: Folder for composed videos, features and runs.
        save: Folder for the model of the extended rule trained with quadlets and the first seed; the model of the
            published rule is saved next to it with ``-published`` appended. Models of stored runs are not saved again.
        output: File the caller will write the results to; not counted as data if it is in the data folder.
        labels: Name of a public collection and the path of its labels (`vidkin_research.shots.labels`), whose videos
            are in ``data``; None uses ``truth.json`` in ``data``.
        on_progress: Callback that receives the number of steps done, the total (0 if unknown) and the current step.

    Raises:
        InvalidArgumentError: Labels or clips are missing, or ``work`` contains results from other data.
    """
    began = time.monotonic()
    if videos is not None:
        inputs = {"--data": data, "--videos": videos, "--photographs": photographs, "--weights": weights}
        check_same_data(work, "shots", inputs, outputs=(output, save))
    material = _gather(study, data, videos, photographs, work, on_progress, labels)
    rows: list[dict[str, Any]] = []
    for name in study.detectors:
        on_progress(len(rows), 0, name)
        rows += score_detector(name, None, material.sets, detect_by_name(name, material.videos))
    if videos is not None and study.family_videos:
        rows += _judge_families(study, videos, photographs, work, on_progress)
    if material.composed:
        rows += _train_all(study, material, weights, work, save, on_progress)
    return Report(
        what="shot boundaries",
        machine=describe_machine(),
        settings={
            "window": study.window,
            "seeds": study.seeds,
            "steps": {"learned": study.steps, "DeepSBD": study.segment_steps},
            "composed": {"train": study.train_videos, "test": study.test_videos, "frames": study.frames},
            "sets": {name: count_labels(labelled) for name, labelled in material.sets.items()},
        },
        minutes=(time.monotonic() - began) / 60,
        summary=summarize_shots(rows),
        runs=rows,
    )


def _judge_families(
    study: ShotStudy, videos: Path, photographs: Path | None, work: Path, on_progress: OnStudyProgress
) -> Iterator[dict[str, Any]]:
    """Yield one row per detector that needs no training: extents, kinds, and false detections by family."""
    composed = build_transitions(
        test_takes(videos, photographs),
        work / "transitions",
        count=study.family_videos,
        families=study.families,
        on_progress=lambda done, total: on_progress(done, total, "composing transitions"),
    )
    for name in study.detectors:
        on_progress(0, 0, f"{name}, transitions")
        cuts = detect_by_name(name, [LabelledVideo(video.path, BoundaryLabels(())) for video in composed])
        yield {"detector": name, "seed": None, "set": FAMILIES, **score_families(composed, cuts)}


def _gather(
    study: ShotStudy,
    data: Path,
    videos: Path | None,
    photographs: Path | None,
    work: Path,
    on_progress: OnStudyProgress,
    labels: tuple[str, Path] | None = None,
) -> _Material:
    edited = edited_videos(data) if labels is None else labeled_collection(data, *labels)
    # Videos without labeled cuts can only have false detections, which are reported separately.
    cut = [video for video in edited if video.labels.boundaries]
    name = "edited" if labels is None else labels[0]
    sets: dict[str, Sequence[LabelledVideo]] = {name: cut} if cut else {}
    if labels is None:
        whole = [with_whole_fades(video) for video in cut]
        if whole != cut:
            sets[f"{name}, a fade through black as one"] = whole
        for video in edited:
            sets[video.path.name] = [video]
    if videos is None:
        return _Material(sets)
    compose = partial(composed_part, videos, photographs, frames=study.frames, size=study.size, on_progress=on_progress)
    sets["composed"] = compose(work / "composed-test", test=True, videos=study.test_videos)
    if not study.seeds:
        return _Material(sets)
    train = compose(work / "composed-train", test=False, videos=study.train_videos)
    highlights = partial(_highlights, videos, study.highlight_videos, on_progress=on_progress)
    published: Sequence[VideoAnnotation] = ()
    if study.published is not None:
        # Two different windows of 40 frames at 20 frames per second need more than two calm seconds before a change.
        rate = round(study.published.rate)
        published = highlights(work / "highlights-published" / "train", rate=rate, calm_before=(3.0, 6.0))
    return _Material(sets, train, highlights(work / "highlights" / "train"), published)


def _highlights(
    recordings: Path,
    videos: int,
    folder: Path,
    *,
    rate: int = 10,
    calm_before: tuple[float, float] = (1.5, 3.5),
    on_progress: OnStudyProgress,
) -> Sequence[VideoAnnotation]:
    """Read the labels of the highlight videos in the folder, composing the videos if they are missing."""
    if (folder / "labels.json").is_file():
        return read_shot_annotations(folder / "labels.json")
    on_progress(0, 0, "composing highlight videos")
    return build_highlights(recordings, folder, part="train", videos=videos, seed=0, rate=rate, calm_before=calm_before)


def _train_all(
    study: ShotStudy,
    material: _Material,
    weights: Path | None,
    work: Path,
    save: Path | None,
    on_progress: OnStudyProgress,
) -> list[dict[str, Any]]:
    """Train every detector with every seed and return their rows."""
    store = HeadStore(weights, work / "features", window=study.window, network=study.network)
    rows: list[dict[str, Any]] = []
    fixed = (study.window, study.train_videos, study.test_videos, study.frames, study.segment_size)
    deep_sbd = f"{_DEEP_SBD}, {study.segment_size} px"
    for name in (*(f"{_LEARNED}{loss}" for loss in study.losses), deep_sbd):
        for seed in range(study.seeds):
            on_progress(len(rows), 0, f"{name}, seed {seed}")
            settings: tuple[object, ...] = (name, seed, study.steps, study.segment_steps, *fixed)
            # Repeat stored runs that lack the second classifier.
            settings += (_SVM,) if name == deep_sbd else CUT_NUMBERS
            keep = save if (name, seed) == (f"{_LEARNED}{_SAVED_LOSS}", 0) else None
            run = partial(_train_and_score, study, store, material, name, seed, keep, on_progress)
            rows += load_or_run(run_path(work / "runs", settings), run)
    if study.published is not None:
        for seed in range(min(study.published_seeds, study.seeds)):
            on_progress(len(rows), 0, f"{study.published.title}, seed {seed}")
            run = partial(_train_published, study.published, material, weights, seed, save, on_progress)
            rows += load_or_run(run_path(work / "runs", (study.published, seed, *fixed)), run)
    return rows


def _train_published(
    detector: PublishedDetector,
    material: _Material,
    weights: Path | None,
    seed: int,
    save: Path | None,
    on_progress: OnStudyProgress,
) -> Any:
    trained = train_and_detect_published(
        detector,
        weights,
        material.composed,
        material.published_highlights,
        material.videos,
        seed=seed,
        save=save.with_name(f"{save.name}-published") if save is not None and seed == 0 else None,
        on_progress=on_progress,
    )
    return as_json(list(score_detector(detector.title, seed, material.sets, trained.cuts, trained.training)))


def _train_and_score(
    study: ShotStudy,
    store: HeadStore,
    material: _Material,
    name: str,
    seed: int,
    save: Path | None,
    on_progress: OnStudyProgress,
) -> Any:
    videos = material.videos
    if name.startswith(_DEEP_SBD):
        variants = train_and_detect_segments(
            material.composed,
            videos,
            size=study.segment_size,
            width=_DEEP_SBD_WIDTH,
            steps=study.segment_steps,
            seed=seed,
        )
        named = zip((name, f"{name}, {_SVM}"), variants, strict=True)
        rows = [score_detector(title, seed, material.sets, own.cuts, own.training) for title, own in named]
        return as_json([row for own in rows for row in own])
    loss = name.removeprefix(_LEARNED)
    recipe = ShotRecipe.from_mapping({"loss": loss, "window": study.window, "steps": study.steps, "seed": seed})
    trained = train_and_detect(
        store,
        recipe,
        material.composed,
        material.highlights,
        videos,
        save=save,
        on_progress=on_progress,
    )
    return as_json(list(score_detector(name, seed, material.sets, trained.cuts, trained.training)))


# Metrics of the comparison: one row per detector, seed and set, and means over seeds.


TOLERANCES = (0, 1, 2)

"""Maximum distances in frames between a detected and a labeled cut."""

RULES = ("nearest", "overlap")

"""Rules for matching detected and labeled cuts."""


def score_detector(
    name: str,
    seed: int | None,
    sets: Mapping[str, Sequence[LabelledVideo]],
    cuts: Mapping[Path, Sequence[DetectedCut]],
    training: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield one row of JSON values per set: scores by matching rule and tolerance, extents and kinds.

    If labels do not distinguish jumps, a detected jump counts as a cut.

    Args:
        name: Name of the detector.
        seed: Seed of its training run; None for a detector that needs no training.
        sets: Videos by set name.
        cuts: Detected cuts by video.
        training: Training report.
    """
    for which, videos in sets.items():
        pairs = [(cuts[video.path], video.labels) for video in videos]
        scores: dict[str, dict[str, Any]] = {rule: {} for rule in RULES}
        for rule, tolerance in product(RULES, TOLERANCES):
            result = evaluate_cuts(pairs, tolerance=tolerance, rule=rule)  # type: ignore[arg-type]
            scores[rule][str(tolerance)] = {
                "all": _counts(result.every),
                "hard": _counts(result.hard),
                "gradual_found": result.gradual_found,
                "gradual": result.gradual_total,
            }
        yield {
            "detector": name,
            "seed": seed,
            "set": which,
            **scores,
            "transitions": score_transitions(
                (_as_labeled(cuts[video.path], video), video.transitions) for video in videos
            ).to_dict(),
            "reported": {
                kind: sum(cut.is_gradual == (kind == "gradual") for detected, _ in pairs for cut in detected)
                for kind in ("hard", "gradual")
            },
            **({"training": dict(training)} if training else {}),
        }


def _as_labeled(cuts: Sequence[DetectedCut], video: LabelledVideo) -> list[DetectedCut]:
    return [replace(cut, kind="hard") if cut.kind == "jump" and video.jumps is None else cut for cut in cuts]


def count_labels(videos: Iterable[LabelledVideo]) -> dict[str, int]:
    """Count videos, labeled hard cuts and labeled gradual transitions."""
    listed = list(videos)
    return {
        "videos": len(listed),
        "hard": sum(len(video.labels.hard) for video in listed),
        "gradual": sum(len(video.labels.gradual) for video in listed),
    }


def counts_of_run(run: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a run to the counts per rule and tolerance, from which the rates follow, for publication."""
    counts = ("right", "false", "missed")
    short = {**run, "counts": ", ".join(counts)} if set(RULES) & run.keys() else dict(run)
    for rule in set(RULES) & run.keys():
        short[rule] = {
            tolerance: {
                part: [given[name] for name in counts] if isinstance(given, Mapping) else given
                for part, given in scores.items()
            }
            for tolerance, scores in run[rule].items()
        }
    return short


def summarize_shots(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compute means and standard deviations over seeds, one entry per set and detector."""
    summary = []
    rows = [row for row in rows if row["set"] != FAMILIES]
    for which in dict.fromkeys(row["set"] for row in rows):
        for name in dict.fromkeys(row["detector"] for row in rows):
            runs = [row for row in rows if row["set"] == which and row["detector"] == name]
            line: dict[str, Any] = {"set": which, "detector": name}
            for rule in RULES:
                for tolerance in TOLERANCES:
                    line[f"f1_{rule}_{tolerance}"] = spread([run[rule][str(tolerance)]["all"]["f1"] for run in runs])
            two = [run["nearest"]["2"] for run in runs]
            for part in ("all", "hard"):
                for figure in ("precision", "recall", "f1", "right", "false"):
                    line[f"{part}_{figure}"] = spread([run[part][figure] for run in two])
            # These are missing in runs stored by an earlier version, and undefined without labels.
            for figure in ("extent", "kinds_right"):
                shares = [run.get("transitions", {}).get(figure) for run in runs]
                known = [share for share in shares if share is not None and isfinite(share)]
                line[figure] = spread(known) if len(known) == len(runs) else None
            line["gradual_found"] = spread([run["gradual_found"] for run in two])
            line["gradual"] = two[0]["gradual"]
            line["reported"] = {kind: spread([run["reported"][kind] for run in runs]) for kind in ("hard", "gradual")}
            summary.append(line)
    return summary


def _counts(scores: DetectionScores) -> dict[str, float]:
    return {
        "precision": scores.precision,
        "recall": scores.recall,
        "f1": scores.f1,
        "right": scores.true_positives,
        "false": scores.false_positives,
        "missed": scores.false_negatives,
    }

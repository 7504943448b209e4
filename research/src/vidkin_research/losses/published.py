"""Train comparators with each loss using the published recipe, and evaluate them on public benchmarks."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.errors import DatasetError
from vidkin.features import open_extractor
from vidkin.training import load_recipe, train
from vidkin.training.evaluation import CACHE_FOLDER
from vidkin.training.recipe import Recipe
from vidkin_research.losses.methods import LossMethod
from vidkin_research.losses.study import method_objectives
from vidkin_research.public.features import StoredFeatures, describe_videos, find_videos, has_features
from vidkin_research.public.names import open_benchmark
from vidkin_research.public.study import run_benchmark
from vidkin_research.public.systems import choose_system
from vidkin_research.runs import OnStudyProgress, load_or_run, run_path
from vidkin_research.spread import spread

__all__ = ["TRAIN_FOLDER", "PublishedRun", "PublishedStudy", "method_recipe", "published_page", "run_published_study"]

_LOG = logging.getLogger(__name__)

RECIPE = "published-self-supervised"
TRAIN_FOLDER, WHITENING_FILE = "vcdb", "whitening.safetensors"
"""Names in the data folder: the training videos, and the whitening of their features."""


@dataclass(frozen=True, kw_only=True)
class PublishedStudy:
    """Methods, benchmarks and settings of the study.

    Attributes:
        methods: Methods to train.
        benchmarks: Names for :func:`vidkin_research.public.names.open_benchmark`; the videos or features of each
            are in the folder with its name, its annotations in ``annotations``.
        steps: Training steps per run.
        every: Use only every n-th video in the training folder, sorted by name: 10 uses a tenth.
        seeds: Random seeds for weights and sampling, one run each.
        device: ``auto``, ``cpu`` or ``cuda``.
        weights: Weights of the frame network; None downloads them from the hub.
    """

    methods: Sequence[LossMethod]
    benchmarks: Sequence[str] = ("fivr-5k",)
    steps: int = 10_000
    every: int = 10
    seeds: Sequence[int] = (0,)
    device: str = "auto"
    weights: Path | None = None


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """Results of one training run.

    Attributes:
        method: Name of the method.
        seed: Random seed for weights and sampling.
        figures: Metric values by ``benchmark: metric``.
    """

    method: str
    seed: int
    figures: Mapping[str, float]


def method_recipe(
    study: PublishedStudy, method: LossMethod, seed: int, sources: Sequence[Path], whitening: Path
) -> Recipe:
    """Return the published recipe with a method's loss terms and a study's settings."""
    recipe = load_recipe(RECIPE)
    first, *others = map(str, sources)
    return replace(
        recipe,
        name=method.name,
        data=replace(recipe.data, source=first, folders=tuple(others)),
        model={**recipe.model, **method.model},
        objectives=tuple(method_objectives(method)),
        schedule=replace(recipe.schedule, steps=study.steps, seed=seed, device=study.device.partition(":")[0]),  # type: ignore[arg-type]
        weights="" if study.weights is None else str(study.weights),
        whitening=str(whitening),
    )


def run_published_study(
    study: PublishedStudy, data: Path, output: Path, *, on_progress: OnStudyProgress = lambda *told: None
) -> list[PublishedRun]:
    """Train and evaluate every method; finished runs are not repeated, and an interrupted run resumes.

    Args:
        study: Methods, benchmarks and settings of the study.
        data: Folder with the videos, whitening, annotations and benchmarks.
        output: Folder for models, features and runs.
        on_progress: Callback that receives the runs done, the total number of runs, and the current step.

    Raises:
        DatasetError: There are no videos to train on.
        InvalidArgumentError: Annotations, videos or the whitening are missing.
    """
    folder = data / TRAIN_FOLDER
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in VIDEO_EXTENSIONS)[:: study.every]
    if len(files) < 2:
        raise DatasetError(f"{folder}: must contain training videos (VCDB's distractors), got {len(files)}")
    whitening = data / WHITENING_FILE
    runs = [(method, seed) for method in study.methods for seed in study.seeds]
    results = []
    for done, (method, seed) in enumerate(runs):
        told = f"{method.name}, seed {seed}"
        on_progress(done, len(runs), told)
        recipe = method_recipe(study, method, seed, files, whitening)
        key = (asdict(method), seed, study.steps, len(files), tuple(study.benchmarks))

        def run(recipe: Recipe = recipe, key: tuple[Any, ...] = key, method: LossMethod = method) -> dict[str, float]:
            model = output / "models" / run_path(Path(), key).stem
            if method.terms:
                _share_cache(model, output / "videos")
                train(recipe, output=model)
            return _measure(study, method, recipe, model, data, output)

        figures = load_or_run(run_path(output / "runs", key), run)
        results.append(PublishedRun(method=method.name, seed=seed, figures=figures))
    on_progress(len(runs), len(runs), "done")
    return results


def _share_cache(model: Path, videos: Path) -> None:
    """Share cached frames between training runs, which works because they are named by content."""
    videos.mkdir(parents=True, exist_ok=True)
    model.mkdir(parents=True, exist_ok=True)
    link = model / CACHE_FOLDER
    if not link.exists():
        link.symlink_to(videos.absolute(), target_is_directory=True)


def _measure(
    study: PublishedStudy, method: LossMethod, recipe: Recipe, model: Path, data: Path, output: Path
) -> dict[str, float]:
    # All comparators on the same extractor share its features.
    config = recipe.comparator()
    maker = open_extractor(
        config.extractor, weights=recipe.weights or None, whitening=recipe.whitening, device=study.device
    )
    if method.terms:
        system = choose_system(open_extractor(str(model), device=study.device), device=study.device)
    else:
        shares = {"spatial_share": config.spatial_share, "temporal_share": config.temporal_share}
        system = choose_system(maker, "chamfer", **shares, device=study.device)
    figures: dict[str, float] = {}
    for name in study.benchmarks:
        benchmark = open_benchmark(name, data / "annotations")
        folder = data / name
        if has_features(folder):
            features = StoredFeatures.open(folder)
        else:
            features, broken = describe_videos(find_videos(folder, benchmark.videos), maker, output / "features")
            for video, cause in broken.items():
                _LOG.warning("%s: %s cannot be read: %s", name, video, cause)
        report = run_benchmark(benchmark, features, system)
        figures |= {f"{name}: {figure.name}": figure.value for figure in report.figures}
    return figures


def published_page(title: str, runs: Sequence[PublishedRun], *, differs: str = "") -> str:
    """Return a Markdown table of the runs in percent, with mean and standard deviation over the seeds."""
    names = list(dict.fromkeys(name for run in runs for name in run.figures))
    lines = [f"# {title}", "", *([f"Differs from the source: {differs}.", ""] if differs else [])]
    lines += [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for method in dict.fromkeys(run.method for run in runs):
        cells = []
        for name in names:
            figure = spread([100 * run.figures[name] for run in runs if run.method == method])
            more = "" if figure["deviation"] is None else f" ± {figure['deviation']:.2f}"
            cells.append(f"{figure['mean']:.2f}{more}")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])

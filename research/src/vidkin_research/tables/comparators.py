"""Tables of HAP-VR: losses, modules, k, and sweeps over settings, each trained with the published recipe."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import torch

from vidkin._base.files import create_output_folder, write_text
from vidkin.datasets.augmentation.clip_views import strong_view
from vidkin.models import EncoderConfig, build_model
from vidkin.models.comparator import build_comparator
from vidkin.models.config import ComparatorConfig
from vidkin.training import load_recipe
from vidkin.training.clip_views import clip_settings
from vidkin_research.losses import (
    ABLATION,
    LOSSES,
    SWEEPS,
    LossMethod,
    LossStudy,
    PublishedStudy,
    as_page,
    published_page,
    run_loss_study,
    run_published_study,
)
from vidkin_research.losses.published import RECIPE, TRAIN_FOLDER, WHITENING_FILE
from vidkin_research.runs import OnStudyProgress, write_figures
from vidkin_research.tables.contract import DataNeed, PaperTable, TableOptions
from vidkin_research.tables.needs import StepCost, Workload, cost_of_forward

__all__ = ["COMPARATOR_TABLES"]

_DIFFERS = (
    "the similarity regularizer (from S2VS) is part of the base objective; where the paper does not state the steps "
    "and the fraction of videos, those of table 2 are used"
)
_REDUCED_STEPS = 60
# Number of queries, which are all in memory, and of videos, whose features are on disk.
_QUERIES = {"fivr-5k": 50, "evve": 620, "svd": 206, "fivr-200k": 100}
_VIDEOS = {"fivr-5k": 5_050, "evve": 2_993, "svd": 526_993, "fivr-200k": 225_960}
_TRAINED = 100_000
# Frames per video at one per second: VCDB's distractors last 2,000 hours, and the other sets have similar lengths.
_FRAMES = 72
_FRAME_GIB = 256 * 256 * 3 / 2**30
_FEATURES_GIB = _FRAMES * 9 * 512 * 4 / 2**30
_BENCHMARKS = {
    "fivr-5k": "50 queries and 5,000 videos of FIVR-200K, or their features (ID.safetensors)",
    "evve": "620 queries and 2,373 videos, or their features",
    "svd": "206 queries and 526,787 videos, or their features",
    "fivr-200k": "100 queries and 225,960 videos, or their features",
}
_WHERE = {
    "fivr-5k": "ndd.iti.gr/fivr",
    "fivr-200k": "ndd.iti.gr/fivr",
    "evve": "pascal.inrialpes.fr/data/evve",
    "svd": "svdbase.github.io",
}
_PARTS = {method.name: method for method in ABLATION}
# In the publication, every row has attention, and TopK uses the recipe's k. For the short clips of --reduced this k is
# 1, so TopK uses 2 frames.
_REDUCED_MODULES = tuple(_PARTS[name] for name in ("base", "base, top 2", "+ video AP", "+ frame AP"))
_ONE = {"spatial_share": 0.0, "temporal_share": 0.0}
_MODULES = (
    LossMethod("base", _PARTS["base"].terms, _ONE),
    LossMethod("base, TopK", _PARTS["base"].terms),
    *(LossMethod(name, _PARTS[name].terms) for name in ("+ video AP", "+ frame AP")),
)
_TIMES = (0.0, 0.03, 0.06, 0.1, 0.2, 0.3, 1.0)
_K = tuple(replace(_PARTS["+ video AP"], name=f"k_t {share:g}", model={"temporal_share": share}) for share in _TIMES)


def _table(
    name: str,
    source: str,
    about: str,
    methods: Sequence[LossMethod],
    *,
    reduced: Sequence[LossMethod] | None = None,
    benchmarks: Sequence[str] = ("fivr-5k",),
    steps: int = 10_000,
    every: int = 10,
    differs: str = _DIFFERS,
) -> PaperTable:
    def data(options: TableOptions) -> Sequence[DataNeed]:
        if options.reduced:
            return [DataNeed(path="", what="a folder of at least four unrelated videos", where="your own data")]
        fit = f"vidkin whiten DATA/{TRAIN_FOLDER} --kind pca --dimension 512 --extractor '{_extractor()}'"
        return [
            DataNeed(path=TRAIN_FOLDER, what="VCDB's 100,000 distractors", where="fvl.fudan.edu.cn/dataset/vcdb"),
            DataNeed(path=WHITENING_FILE, what="whitening to 512 dimensions", where=f"{fit} -o DATA/{WHITENING_FILE}"),
            DataNeed(
                path="annotations", what=f"annotations of {', '.join(benchmarks)}", where="the websites of the sets"
            ),
            *(DataNeed(path=each, what=_BENCHMARKS[each], where=_WHERE[each]) for each in benchmarks),
        ]

    def workloads(options: TableOptions) -> Sequence[Workload]:
        cost, editing = (_reduced_cost(), 0.0) if options.reduced else (_step_cost(), _editing_seconds())
        trained = sum(bool(method.terms) for method in methods)
        return [
            Workload(
                what="comparator" + ("" if options.reduced else ", with ResNet-50 and DINO on every view"),
                runs=trained * (options.seeds or 1),
                steps=_REDUCED_STEPS if options.reduced else steps,
                cost=cost,
                core_seconds=editing,
            )
        ]

    def gib(options: TableOptions) -> float:
        return 1.0 if options.reduced else max(_QUERIES[each] for each in benchmarks) * _FEATURES_GIB + 1.0

    def disk(options: TableOptions) -> float:
        if options.reduced:
            return 0.0
        return _TRAINED / every * _FRAMES * _FRAME_GIB + sum(_VIDEOS[each] for each in benchmarks) * _FEATURES_GIB / 2

    def run(options: TableOptions, on_progress: OnStudyProgress) -> Sequence[Path]:
        assert options.data is not None
        output = create_output_folder(options.output / name)
        seeds = tuple(range(options.seeds or 1))
        page, figures = output / f"{name}.md", output / f"{name}.json"
        if options.reduced:
            study = LossStudy(methods=reduced or methods, steps=_REDUCED_STEPS, seeds=seeds)
            report = run_loss_study(study, [options.data], output, on_progress=on_progress)
            write_text(page, as_page(report))
            write_figures(report, figures)
            return [page, figures]
        published = PublishedStudy(
            methods=methods,
            benchmarks=benchmarks,
            steps=steps,
            every=every,
            seeds=seeds,
            device=options.device,
            weights=options.weights,
        )
        runs = run_published_study(published, options.data, output, on_progress=on_progress)
        write_text(page, published_page(f"{source}: {about}", runs, differs=differs))
        write_figures({"table": name, "source": source, "runs": runs}, figures)
        return [page, figures]

    return PaperTable(
        name=name,
        source=source,
        about=about,
        differs=differs,
        has_backbone=False,
        data=data,
        workloads=workloads,
        gib=gib,
        disk=disk,
        run=run,
    )


def _extractor() -> str:
    return load_recipe(RECIPE).comparator().extractor


@cache
def _step_cost() -> StepCost:
    """Estimate the cost of both networks' forward passes on all frames of two views of 64 clips, and of the comparator
    on all pairs."""
    recipe = load_recipe(RECIPE)
    settings, pairs = clip_settings(recipe.data.options), recipe.schedule.pairs
    frames = 2 * pairs * settings.length
    networks = 0.0
    for backbone in ("timm:resnet50.tv_in1k", "timm:vit_small_patch16_224.dino"):
        config = EncoderConfig(kind="image", backbone=backbone, trainable="head", size=224, hidden=8)
        model = build_model(config, weights="random").to("meta")
        image = torch.empty((1, 3, 224, 224), device="meta")
        networks += cost_of_forward(model, partial(model.embed, image), scale=frames).operations
    comparator = build_comparator(recipe.comparator(), weights="random").to("meta")
    network = comparator.visil_head
    assert network is not None
    maps = torch.empty((1, settings.length, settings.length), device="meta")
    own = cost_of_forward(network, lambda: network(maps), scale=(2 * pairs) ** 2)
    # Activations are recomputed for a few pairs at a time, so only the maps and frames stay in memory.
    held = (2 * pairs) ** 2 * settings.length**2 * 4 * 4 + frames * 9 * recipe.comparator().dimension * 4 * 8
    return StepCost(operations=networks + own.operations, gib=4.0 + held / 2**30)


@cache
def _reduced_cost() -> StepCost:
    study = LossStudy()
    clips = study.clips
    comparator = build_comparator(ComparatorConfig(), weights="random").to("meta")
    network = comparator.visil_head
    assert network is not None
    maps = torch.empty((1, clips.length, clips.length), device="meta")
    return cost_of_forward(network, lambda: network(maps), scale=(2 * study.pairs) ** 2)


@cache
def _editing_seconds() -> float:
    """Estimate the CPU seconds for editing the views of a step, from one strong view; weak views cost a fifth."""
    recipe = load_recipe(RECIPE)
    settings = clip_settings(recipe.data.options)
    clip = torch.rand(settings.window, 3, settings.side, settings.side, generator=torch.Generator().manual_seed(0))
    donors = clip[None].expand(3, -1, -1, -1, -1)
    began = time.process_time()
    strong_view(clip, donors, 0, settings=settings.strong, length=settings.length)
    return 1.2 * (time.process_time() - began) * recipe.schedule.pairs


COMPARATOR_TABLES: tuple[PaperTable, ...] = (
    _table(
        "hap-methods",
        "HAP-VR, table 1 and figure 5",
        "the full objective on four benchmarks",
        [_PARTS["+ frame AP"]],
        benchmarks=("evve", "svd", "fivr-200k"),
        steps=30_000,
        every=1,
    ),
    _table("hap-losses", "HAP-VR, table 2 and figures 6 and 7", "ten losses in addition to the base objective", LOSSES),
    _table(
        "hap-modules",
        "HAP-VR, table 3",
        "base objective, TopK-Chamfer, video AP and frame AP",
        _MODULES,
        reduced=_REDUCED_MODULES,
        benchmarks=("evve", "fivr-5k"),
    ),
    _table("hap-k", "HAP-VR, table 4", "k over frames", _K, benchmarks=("evve", "fivr-5k")),
    *(
        _table(name, f"HAP-VR, table {number}", about, SWEEPS[name])
        for number, (name, about) in enumerate(
            {
                "hap-delta-video": "delta of the video term",
                "hap-delta-frame": "delta of the frame term",
                "hap-rho-video": "rho of the video term",
                "hap-rho-frame": "rho of the frame term",
                "hap-lambda-frame": "weight of the frame term",
                "hap-rates": "fractions of positive and negative frames",
            }.items(),
            start=7,
        )
    ),
)

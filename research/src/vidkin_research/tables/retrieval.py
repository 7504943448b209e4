"""Tables of the Radial loss paper: fine-grained video and image retrieval with every loss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vidkin.training.inputs import MAX_BYTES
from vidkin_research.readers.collections import PUBLIC_COLLECTIONS
from vidkin_research.retrieval import (
    ComparisonPlan,
    RunSchedule,
    VolumeSettings,
    comparison_set,
    method_named,
    run_comparison,
    summarize,
    write_report,
)
from vidkin_research.retrieval.prepared import encoder_config, volume_config
from vidkin_research.runs import OnStudyProgress
from vidkin_research.tables.contract import DataNeed, PaperTable, TableOptions
from vidkin_research.tables.needs import Workload, cost_of_step

__all__ = ["RETRIEVAL_TABLES"]

_LOSSES = ("triplet", "quadruplet1", "quadruplet2a", "quadruplet2b", "quadlet", "radial", "radial_detached")
_MODE = "Adam, 16 items per step, 2,000 steps and a rate of 0.00001 for AlexNet are ours: the paper states none of them"
# As in the recipe `published-clips`; --reduced uses settings for a CPU.
_PUBLISHED = RunSchedule(
    steps=2000, quadlets=4, learning_rate=1e-5, weight_decay=2e-3, clip=0.0, optimizer="adam", head_factor=10.0
)
_REDUCED = RunSchedule(steps=100, quadlets=4)
_REDUCED_BACKBONE = "timm:mobilenetv2_100?pad_type=same&mean=0.5&std=0.5"


def _plan(options: TableOptions, sets: tuple[str, ...], methods: tuple[str, ...]) -> ComparisonPlan:
    chosen = options.sets or sets
    if options.reduced:
        return ComparisonPlan(
            sets=chosen,
            methods=methods,
            seeds=tuple(range(options.seeds or 1)),
            schedule=_REDUCED,
            learning_rates=(1e-3,),
            backbone=options.backbone or _REDUCED_BACKBONE,
            frames=10,
            size=64,
            device=options.device,
        )
    return ComparisonPlan(
        sets=chosen,
        methods=methods,
        seeds=tuple(range(options.seeds or 3)),
        schedule=_PUBLISHED,
        learning_rates=(_PUBLISHED.learning_rate,),
        backbone=options.backbone or "torchvision:alexnet",
        trainable="all",
        hidden=512,
        units=512,
        frames=100,
        size=224,
        volume=VolumeSettings(width=1.0, size=112, share=1),
        device=options.device,
    )


def _table(
    name: str, source: str, about: str, *, command: str, title: str, sets: tuple[str, ...], methods: tuple[str, ...]
) -> PaperTable:
    def data(options: TableOptions) -> Sequence[DataNeed]:
        return [public_need(chosen) for chosen in options.sets or sets]

    def workloads(options: TableOptions) -> Sequence[Workload]:
        plan, schedule = _plan(options, sets, methods), _REDUCED if options.reduced else _PUBLISHED
        loads = []
        for chosen in map(comparison_set, plan.sets):
            of_networks = [method for method in map(method_named, plan.methods) if method.input == "features"]
            if of_networks:
                cost = cost_of_step(encoder_config(plan, chosen), items=4 * schedule.quadlets)
                runs = len(of_networks) * len(plan.seeds)
                loads.append(Workload(what=f"{chosen.name}, losses", runs=runs, steps=schedule.steps, cost=cost))
            if chosen.video and "c3d" in plan.methods:
                cost = cost_of_step(
                    volume_config(plan, chosen, _classes(chosen.name)), items=plan.volume.items(schedule)
                )
                loads.append(
                    Workload(what=f"{chosen.name}, 3D-CNN", runs=len(plan.seeds), steps=schedule.steps, cost=cost)
                )
        return loads

    def gib(options: TableOptions) -> float:
        plan = _plan(options, sets, methods)
        sizes = []
        for chosen in map(comparison_set, plan.sets):
            frames = plan.frames if chosen.video else 1
            moving = MAX_BYTES / 2**30 if chosen.rate is not None else 0.0
            sizes.append(_items(chosen.name) * frames * (plan.size or chosen.size) ** 2 * 3 / 2**30 + moving)
        return max(sizes)

    def run(options: TableOptions, on_progress: OnStudyProgress) -> Sequence[Path]:
        plan = _plan(options, sets, methods)
        assert options.data is not None
        output = options.output / name
        runs = run_comparison(
            plan,
            options.data,
            weights=options.weights,
            output=output,
            on_progress=lambda text, share: on_progress(round(100 * share), 100, text),
        )
        write_report(command, plan, options.data, runs, summarize(runs, plan), output, title=title)
        return [output / f"{command}.md", output / f"{command}.json"]

    return PaperTable(
        name=name, source=source, about=about, differs=_MODE, data=data, workloads=workloads, gib=gib, run=run
    )


def public_need(name: str) -> DataNeed:
    """Return the data requirement of a public collection, or of the user's own collection with this name."""
    for public in PUBLIC_COLLECTIONS:
        if public.name == name:
            return DataNeed(path=name, what=f"{public.about}: {public.items:,} items", where=public.where)
    return DataNeed(path="", what=f"the set {name!r}, or its parent folder", where="your own data")


def _items(name: str) -> int:
    return next((public.items for public in PUBLIC_COLLECTIONS if public.name == name), 1000)


def _classes(name: str) -> int:
    return next((public.classes for public in PUBLIC_COLLECTIONS if public.name == name), 100)


RETRIEVAL_TABLES: tuple[PaperTable, ...] = (
    _table(
        "radial-videos",
        "Radial loss, table 2; ICIP form, table 2",
        "fine-grained video retrieval with every loss, and 3D-CNN",
        command="fgvr",
        title="Fine-grained video retrieval",
        sets=("vb100",),
        methods=("c3d", *_LOSSES),
    ),
    _table(
        "radial-images",
        "Radial loss, table 3",
        "fine-grained image retrieval with every loss",
        command="fgir",
        title="Fine-grained image retrieval",
        sets=("pet", "head_pose", "zappos"),
        methods=_LOSSES,
    ),
    _table(
        "c3d",
        "Radial loss, table 2, row 3D-CNN",
        "3D-CNN at its published width, 112 pixels and 16 frames",
        command="fgvr",
        title="3D-CNN",
        sets=("vb100",),
        methods=("c3d",),
    ),
)

"""Tables and figures of the two-head classifier and deep ranking, on public image sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vidkin._base.files import create_output_folder, write_text
from vidkin.datasets import LabelledSet
from vidkin_research.images import (
    BACKBONE,
    IMAGE_SETS,
    ROWS,
    ImagePart,
    ImageRow,
    ImageTask,
    SweepPart,
    as_page,
    draw_sweeps,
    open_task,
    read_rankings,
    run_image_study,
    run_sweeps,
    sweeps_page,
)
from vidkin_research.images.sweeps import SETTINGS_SWEPT
from vidkin_research.images.two_head_rows import TWO_HEAD_ROWS, VARIANTS, two_head_config
from vidkin_research.ranking_picture import draw_retrieval
from vidkin_research.readers.collections import PUBLIC_COLLECTIONS
from vidkin_research.runs import OnStudyProgress, write_figures
from vidkin_research.tables.contract import PaperTable, TableOptions
from vidkin_research.tables.needs import Workload, cost_of_step
from vidkin_research.tables.retrieval import public_need

__all__ = ["IMAGE_TABLES"]

_SETS = ("cars", "flowers102", "dogs", "aircraft", "nabirds")
# Published number of steps per network; --backbone uses the first one.
_NETWORKS = {
    "timm:resnet50.tv_in1k": 40_000,
    "timm:inception_v4.tf_in1k": 80_000,
    "timm:densenet161.tv_in1k": 40_000,
}
_PUBLISHED_ROWS = ("softmax alone", "two-head, hard (soft margin)", "two-head, semi-hard", "two-head, center")
_RANKED_ROWS = ("ConvNet features, MobileNetV2", "classical: OASIS", "single-scale ranking", "deep ranking")
_RATE, _REDUCED_RATE = 0.01, 0.002
_REDUCED_STEPS, _REDUCED_SIZE, _REDUCED_EACH = 40, 64, 8
_BATCH = 32


def _networks(options: TableOptions, networks: dict[str, int]) -> dict[str, int]:
    """Return the number of steps by backbone."""
    if options.reduced:
        return {options.backbone or BACKBONE: _REDUCED_STEPS}
    if options.backbone is not None:
        return {options.backbone: networks.get(options.backbone, next(iter(networks.values())))}
    return networks


def _shape(options: TableOptions, backbone: str, steps: int) -> ImageTask:
    """Return the task of a table, as far as it is known without data."""
    part = ImagePart(LabelledSet("none", "image", (), Path()), _REDUCED_SIZE if options.reduced else 224)
    return ImageTask(
        "none",
        part,
        part,
        options.weights,
        steps,
        _REDUCED_RATE if options.reduced else _RATE,
        backbone,
        # The backbone of --reduced has its batch norms folded into its convolutions.
        backbone == BACKBONE,
        options.device,
    )


def _open(options: TableOptions, name: str, backbone: str, steps: int, *, validation: bool = False) -> ImageTask:
    shape = _shape(options, backbone, steps)
    assert options.data is not None
    return open_task(
        next(chosen for chosen in IMAGE_SETS if chosen.name == name),
        options.data,
        size=shape.train.size,
        per_class=_REDUCED_EACH if options.reduced else 0,
        weights=shape.weights,
        steps=steps,
        learning_rate=shape.learning_rate,
        validation=validation,
        backbone=backbone,
        frozen_batch_norm=shape.frozen_batch_norm,
        device=options.device,
    )


def _items(names: Sequence[str]) -> int:
    return max(next((each.items for each in PUBLIC_COLLECTIONS if each.name == name), 5000) for name in names)


def _classes(name: str) -> int:
    return next((each.classes for each in PUBLIC_COLLECTIONS if each.name == name), 100)


def _gib(options: TableOptions, sets: tuple[str, ...]) -> float:
    side = _REDUCED_SIZE if options.reduced else 224
    names = options.sets or sets
    count = max(map(_classes, names)) * 2 * _REDUCED_EACH if options.reduced else _items(names)
    return float(count * side**2 * 3 / 2**30)


def _rows_table(
    name: str,
    source: str,
    about: str,
    *,
    sets: tuple[str, ...],
    networks: dict[str, int],
    rows: Sequence[ImageRow],
    differs: str = "",
) -> PaperTable:
    """Create a table that compares rows on sets, for each network."""

    def workloads(options: TableOptions) -> Sequence[Workload]:
        loads = []
        seeds, sets_of = options.seeds or 1, options.sets or sets
        for backbone, steps in _networks(options, networks).items():
            task = _shape(options, backbone, steps)
            config = two_head_config(task, VARIANTS["two-head, semi-hard"], classes=max(map(_classes, sets_of)))
            cost, runs = cost_of_step(config, items=_BATCH), seeds * len(rows) * len(sets_of)
            loads.append(Workload(what=f"{backbone} on {', '.join(sets_of)}", runs=runs, steps=steps, cost=cost))
        return loads

    def run(options: TableOptions, on_progress: OnStudyProgress) -> Sequence[Path]:
        output = create_output_folder(options.output / name)
        files = []
        for backbone, steps in _networks(options, networks).items():
            tasks = [_open(options, each, backbone, steps) for each in options.sets or sets]
            seeds = range(options.seeds or 1)
            report = run_image_study(rows, tasks, output, seeds=seeds, on_progress=on_progress)
            stem = backbone.partition("?")[0].rpartition(":")[2]
            write_text(output / f"{stem}.md", as_page(report))
            write_figures(report, output / f"{stem}.json")
            files += [output / f"{stem}.md", output / f"{stem}.json"]
            for task in tasks:
                picture = output / f"rankings-{task.name.replace(', ', '-')}.png"
                draw_retrieval(task.test.labelled, read_rankings(rows, task, output), picture, gallery_split="test")
                files.append(picture)
        return files

    return PaperTable(
        name=name,
        source=source,
        about=about,
        differs=differs,
        data=lambda options: [public_need(each) for each in options.sets or sets],
        workloads=workloads,
        gib=lambda options: _gib(options, sets),
        run=run,
    )


def _sweep_table(
    name: str,
    source: str,
    about: str,
    *,
    part: SweepPart,
    sets: tuple[str, ...],
    networks: dict[str, int],
    longer: int = 1,
    differs: str = "",
) -> PaperTable:
    """Create a table from one part of the sweeps over settings, on validation images."""
    trainings = {"settings": SETTINGS_SWEPT, "collapse": 2, "time": len(VARIANTS)}[part]

    def workloads(options: TableOptions) -> Sequence[Workload]:
        loads = []
        for backbone, steps in _networks(options, networks).items():
            task = _shape(options, backbone, steps)
            names = options.sets or sets
            config = two_head_config(task, VARIANTS["two-head, semi-hard"], classes=max(map(_classes, names)))
            runs = trainings * (1 if part == "time" else len(names))
            taken = 6 if part == "time" else steps * longer
            cost = cost_of_step(config, items=_BATCH)
            loads.append(Workload(what=f"{backbone} on {', '.join(names)}", runs=runs, steps=taken, cost=cost))
        return loads

    def run(options: TableOptions, on_progress: OnStudyProgress) -> Sequence[Path]:
        output = create_output_folder(options.output / name)
        files = []
        for backbone, steps in _networks(options, networks).items():
            for each in options.sets or sets:
                task = _open(options, each, backbone, steps, validation=part == "settings")
                seeds = range(options.seeds or 1)
                report = run_sweeps(task, output, parts=(part,), seeds=seeds, longer=longer, on_progress=on_progress)
                page = output / f"{task.name.replace(', ', '-')}.md"
                write_text(page, sweeps_page(report))
                draw_sweeps(report, page.with_suffix(".png"))
                files += [page, page.with_suffix(".png")]
        return files

    return PaperTable(
        name=name,
        source=source,
        about=about,
        differs=differs,
        data=lambda options: [public_need(each) for each in options.sets or sets],
        workloads=workloads,
        gib=lambda options: _gib(options, sets),
        run=run,
    )


IMAGE_TABLES: tuple[PaperTable, ...] = (
    _rows_table(
        "two-heads",
        "two heads, tables 2, 5, 6, S1 and S2, figure S4",
        "softmax alone and two heads with three losses: three networks on five sets, accuracy and what each layer "
        "retrieves",
        sets=_SETS,
        networks=_NETWORKS,
        rows=[row for row in TWO_HEAD_ROWS if row.name in _PUBLISHED_ROWS],
    ),
    _sweep_table(
        "two-heads-lambda",
        "two heads, figure 11",
        "lambda and embedding size on validation images of Flowers-102",
        part="settings",
        sets=("flowers102",),
        networks={"timm:resnet50.tv_in1k": 2000},
        differs="semi-hard triplets; the paper does not name the loss used for its figure",
    ),
    _sweep_table(
        "two-heads-time",
        "two heads, figure 12",
        "training step time of every variant and network",
        part="time",
        sets=("flowers102",),
        networks=dict.fromkeys(_NETWORKS, 6),
    ),
    _sweep_table(
        "two-heads-collapse",
        "two heads, figure S3",
        "400,000 steps with the hardest triplets, with a soft and a hard margin, on Stanford Dogs",
        part="collapse",
        sets=("dogs",),
        networks={"timm:densenet161.tv_in1k": 40_000},
        longer=10,
        differs="shows the mean pairwise distance of embeddings over tenths of the run instead of accuracy",
    ),
    _rows_table(
        "deep-ranking",
        "deep ranking supplement, figure 3",
        "network features, OASIS, single-scale and deep ranking, with the top results of each",
        sets=("pet",),
        networks={"torchvision:alexnet": 20_000},
        rows=[row for row in ROWS if row.name in _RANKED_ROWS],
        differs="the paper's photographs and golden feature are not public, so relevance comes from labels",
    ),
)

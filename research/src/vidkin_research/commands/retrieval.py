"""``vidkin benchmark fgvr`` and ``fgir``: compare retrieval losses on labeled videos and images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import meter, note, table, wrote
from vidkin.cli.options import JsonFormat, JsonOption
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.text import print_json

if TYPE_CHECKING:
    from vidkin_research.retrieval import ComparisonPlan

__all__ = ["fgir", "fgvr"]

_Command = Literal["fgvr", "fgir"]
_SETS = {"fgvr": ("fruit", "strokes"), "fgir": ("omniglot", "grocery")}
# A folder without any of these collections is taken to hold the user's own items.
_OWN = {"fgvr": "videos", "fgir": "pictures"}
_TITLES = {"fgvr": "Fine-grained video retrieval", "fgir": "Fine-grained image retrieval"}
_QUICK_SEEDS, _QUICK_STEPS, _QUICK_RATES = 2, 150, (1e-3,)
_COLUMNS = {"qp": "QP", "tp": "TP", "ndcg": "NDCG", "map": "MAP", "qp_gallery": "QP gallery"}

DataOption = Annotated[
    Path,
    typer.Option(
        "--data",
        help="Your own folder (category/subcategory/file), or a folder with public collections, each in a subfolder "
        "with its name.",
        file_okay=False,
        exists=True,
    ),
]
FrozenWeightsOption = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        help="Weights of the frozen network, a safetensors file.",
        show_default="from the hub",
        dir_okay=False,
        exists=True,
    ),
]
SetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        help="Collection; repeatable. 'videos' and 'pictures' are your own items.",
        show_default="those of the stored results, or your own",
    ),
]
MethodsOption = Annotated[
    list[str] | None, typer.Option("--method", "-m", help="Method; repeatable.", show_default="all")
]
FolderOption = Annotated[
    Path, typer.Option("--output", "-o", help="Folder for the features, runs and report.", file_okay=False)
]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="Number of runs (seeds) per method.")]
StepsOption = Annotated[int, typer.Option("--steps", min=1, help="Training steps per run.")]
RatesOption = Annotated[
    list[float] | None,
    typer.Option(
        "--rate",
        help="Learning rate; repeatable. Each method uses the rate with the best validation result.",
        show_default="0.001, 0.003, 0.0003 and 0.0001",
    ),
]
BackboneOption = Annotated[str | None, typer.Option("--backbone", help="Frozen network.", show_default="MobileNetV2")]
QuickOption = Annotated[
    bool,
    typer.Option("--quick", help="One collection, 2 seeds, 150 steps, one learning rate. Takes a few minutes."),
]


def fgvr(
    data: DataOption,
    weights: FrozenWeightsOption = None,
    sets: SetsOption = None,
    methods: MethodsOption = None,
    output: FolderOption = Path("vidkin-benchmark/fgvr"),
    seeds: SeedsOption = 3,
    steps: StepsOption = 500,
    rates: RatesOption = None,
    backbone: BackboneOption = None,
    quick: QuickOption = False,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Compare retrieval losses on labeled videos: QP, NDCG, TP and MAP.

    Each run is saved when it finishes. Run the same command again to resume an interrupted comparison.
    """
    plan = _plan("fgvr", data, sets, methods, seeds, steps, rates, backbone, quick)
    _compare("fgvr", plan, data, weights, output, format == "json")


def fgir(
    data: DataOption,
    weights: FrozenWeightsOption = None,
    sets: SetsOption = None,
    methods: MethodsOption = None,
    output: FolderOption = Path("vidkin-benchmark/fgir"),
    seeds: SeedsOption = 3,
    steps: StepsOption = 500,
    rates: RatesOption = None,
    backbone: BackboneOption = None,
    quick: QuickOption = False,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Compare retrieval losses on labeled images: QP, NDCG, TP and MAP.

    Each run is saved when it finishes. Run the same command again to resume an interrupted comparison.
    """
    plan = _plan("fgir", data, sets, methods, seeds, steps, rates, backbone, quick)
    _compare("fgir", plan, data, weights, output, format == "json")


def _plan(
    command: _Command,
    data: Path,
    sets: list[str] | None,
    methods: list[str] | None,
    seeds: int,
    steps: int,
    rates: list[float] | None,
    backbone: str | None,
    quick: bool,
) -> ComparisonPlan:
    from vidkin_research.retrieval import ComparisonPlan, RunSchedule, comparison_set

    usual = map(comparison_set, _SETS[command])
    is_own = not any((data / each.folder).is_dir() or (data / Path(each.folder).name).is_dir() for each in usual)
    chosen = tuple(sets or ((_OWN[command],) if is_own else _SETS[command]))
    for name in chosen:
        if comparison_set(name).video is not (command == "fgvr"):
            other = "fgir" if command == "fgvr" else "fgvr"
            raise InvalidArgumentError(
                f"set {name} cannot be used with {command}; run `vidkin benchmark {other} --set {name}`"
            )
    settings: dict[str, Any] = {}
    if methods:
        settings["methods"] = tuple(methods)
    if backbone is not None:
        settings["backbone"] = backbone
    if rates:
        settings["learning_rates"] = tuple(rates)
    if quick:
        chosen, seeds, steps = chosen[:1], min(seeds, _QUICK_SEEDS), min(steps, _QUICK_STEPS)
        settings.setdefault("learning_rates", _QUICK_RATES)
    return ComparisonPlan(sets=chosen, seeds=tuple(range(seeds)), schedule=RunSchedule(steps=steps), **settings)


def _compare(
    command: _Command, plan: ComparisonPlan, data: Path, weights: Path | None, output: Path, json: bool
) -> None:
    from vidkin_research.retrieval import run_comparison, summarize, write_report

    broken: list[MediaError] = []
    with meter(command) as bar:
        runs = run_comparison(
            plan,
            data,
            weights=weights,
            output=output,
            on_progress=lambda text, share: bar.update(round(100 * share), 100, detail=text),
            on_broken=broken.append,
        )
    summaries = summarize(runs, plan)
    figures = write_report(command, plan, data, runs, summaries, output, title=_TITLES[command], broken=broken)
    if json:
        print_json(figures)
    else:
        for summary in summaries:
            rows = [
                [
                    row.title,
                    *(f"{row.mean[name]:.1f} +- {row.deviation[name]:.1f}" for name in _COLUMNS),
                    f"{row.learning_rate:g}" if row.learning_rate else "",
                    f"{row.collapsed} of {row.seeds}" if row.collapsed else "",
                ]
                for row in summary.chosen or summary.common
            ]
            titles = (*_COLUMNS.values(), "rate", "collapsed")
            columns = [("method", "left"), *((title, "right") for title in titles)]
            table(f"{summary.set}: {summary.about}", columns, rows)
            note(
                "QP and TP: all four items from the test split, as in the paper. "
                "QP gallery: p, i and n from the training split."
            )
            verdict = summary.verdict
            if verdict.radial_over_triplet is not None and verdict.needed is not None:
                note(
                    f"Radial (no gradient through R) minus Triplet: {verdict.radial_over_triplet:+.1f} points of QP; "
                    f"two standard deviations are {verdict.needed:.1f}."
                )
            if verdict.ours is not None and verdict.ours_over_radial is not None:
                note(
                    f"Ours, chosen on validation ({verdict.ours}), minus Radial: "
                    f"{verdict.ours_over_radial:+.1f} points."
                )
        for error in broken:
            note(f"Left out: {error.path}: {error.cause}", style="yellow")
        wrote(output / f"{command}.md", "the full report")
    if broken:
        raise typer.Exit(Status.SOME_FAILED)

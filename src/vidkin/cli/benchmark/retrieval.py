"""``vidkin benchmark fgvr`` and ``fgir``: the comparison of the source on videos and on pictures."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.cli.options import JsonOption
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.json_values import as_json, print_json

if TYPE_CHECKING:
    from vidkin.experiments.retrieval import ComparisonPlan, Run, Summary

__all__ = ["fgir", "fgvr"]

_SETS = {"fgvr": ("fruit", "strokes"), "fgir": ("omniglot", "grocery")}
_TITLES = {"fgvr": "Fine-grained video retrieval", "fgir": "Fine-grained image retrieval"}
# What the picture shows beside each other, and the method of ours that validation chose.
_PICTURED = ("triplet", "quadlet", "radial_detached")
_QUICK_SEEDS, _QUICK_STEPS = 2, 150

DataArgument = Annotated[
    Path,
    typer.Option(
        "--data",
        help="Folder that holds the collections (fruit, omniglot, aerial, grocery; or category/subcategory/file "
        "for the sets 'videos' and 'pictures').",
        file_okay=False,
        exists=True,
    ),
]
WeightsArgument = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        help="Weights of the frozen network, a safetensors file; default the hub's.",
        dir_okay=False,
        exists=True,
    ),
]
SetsOption = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="A collection; may be repeated. Default: all that were compared."),
]
MethodsOption = Annotated[
    list[str] | None,
    typer.Option("--method", "-m", help="A method; may be repeated. Default: all."),
]
OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="Folder of features, runs and report.", file_okay=False)
]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="Trainings of every method.")]
StepsOption = Annotated[int, typer.Option("--steps", min=1, help="Steps of a training.")]
RatesOption = Annotated[
    list[float] | None,
    typer.Option(
        "--rate",
        help="A learning rate; may be repeated: then every method is tried at each, and validation chooses.",
        show_default="0.001, 0.003, 0.0003 and 0.0001",
    ),
]
BackboneOption = Annotated[
    str | None,
    typer.Option("--backbone", help="The frozen network.", show_default="MobileNetV2 of the weights file"),
]
QuickOption = Annotated[
    bool,
    typer.Option("--quick", help="One collection, 2 seeds, 150 steps, one learning rate: some minutes."),
]


def fgvr(
    data: DataArgument,
    weights: WeightsArgument = None,
    sets: SetsOption = None,
    methods: MethodsOption = None,
    output: OutputOption = Path("vidkin-benchmark/fgvr"),
    seeds: SeedsOption = 3,
    steps: StepsOption = 500,
    rates: RatesOption = None,
    backbone: BackboneOption = None,
    quick: QuickOption = False,
    json: JsonOption = False,
) -> None:
    """Fine-grained video retrieval: every loss of the source on labelled videos, with QP, NDCG, TP and MAP.

    Runs are stored one by one in the output folder: an interrupted comparison goes on where it was.
    """
    plan = _plan("fgvr", sets, methods, seeds, steps, rates, backbone, quick)
    _compare("fgvr", plan, data, weights, output, json)


def fgir(
    data: DataArgument,
    weights: WeightsArgument = None,
    sets: SetsOption = None,
    methods: MethodsOption = None,
    output: OutputOption = Path("vidkin-benchmark/fgir"),
    seeds: SeedsOption = 3,
    steps: StepsOption = 500,
    rates: RatesOption = None,
    backbone: BackboneOption = None,
    quick: QuickOption = False,
    json: JsonOption = False,
) -> None:
    """Fine-grained image retrieval: the same comparison on labelled pictures.

    Runs are stored one by one in the output folder: an interrupted comparison goes on where it was.
    """
    plan = _plan("fgir", sets, methods, seeds, steps, rates, backbone, quick)
    _compare("fgir", plan, data, weights, output, json)


def _plan(
    command: str,
    sets: list[str] | None,
    methods: list[str] | None,
    seeds: int,
    steps: int,
    rates: list[float] | None,
    backbone: str | None,
    quick: bool,
) -> ComparisonPlan:
    from vidkin.experiments.retrieval import ComparisonPlan, Schedule, comparison_set

    chosen = tuple(sets or _SETS[command])
    for name in chosen:
        if comparison_set(name).video is not (command == "fgvr"):
            other = "fgir" if command == "fgvr" else "fgvr"
            raise InvalidArgumentError(
                f"set {name} is not for {command}; run `vidkin benchmark {other} --set {name}`"
            )
    given: dict[str, Any] = {}
    if methods:
        given["methods"] = tuple(methods)
    if backbone is not None:
        given["backbone"] = backbone
    if rates:
        given["learning_rates"] = tuple(rates)
    if quick:
        chosen, seeds, steps = chosen[:1], min(seeds, _QUICK_SEEDS), min(steps, _QUICK_STEPS)
        given.setdefault("learning_rates", (1e-3,))
    return ComparisonPlan(sets=chosen, seeds=tuple(range(seeds)), schedule=Schedule(steps=steps), **given)


def _compare(
    command: str, plan: ComparisonPlan, data: Path, weights: Path | None, output: Path, json: bool
) -> None:
    from vidkin.experiments.retrieval import as_page, run_comparison, summarise
    from vidkin.rendering.machine import describe_machine

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
    summaries = summarise(runs, plan)
    found = {"command": command, "machine": describe_machine(), "plan": plan, "sets": summaries}
    found["broken"] = [(error.path, error.cause) for error in broken]
    text = json_module.dumps(as_json(found), indent=1, ensure_ascii=False)
    (output / f"{command}.json").write_text(text + "\n", encoding="utf-8")
    page = as_page(summaries, plan, title=_TITLES[command], machine=describe_machine())
    page += "\n".join(_pictures(command, plan, data, runs, summaries, output))
    (output / f"{command}.md").write_text(page.rstrip() + "\n", encoding="utf-8")
    if json:
        print_json(found)
    else:
        for summary in summaries:
            _print(summary)
        for error in broken:
            note(f"Left out: {error.path}: {error.cause}", style="yellow")
        say(path_text(output / f"{command}.md").append(" holds the whole report."))
    if broken:
        raise typer.Exit(Status.SOME_FAILED)


def _print(summary: Summary) -> None:
    rows = [
        [
            row.title,
            *(f"{row.mean[name]:.1f} +- {row.deviation[name]:.1f}" for name in ("qp", "ndcg", "tp", "map")),
            f"{row.learning_rate:g}" if row.learning_rate else "",
            f"{row.collapsed} of {row.seeds}" if row.collapsed else "",
        ]
        for row in summary.chosen or summary.common
    ]
    columns = [("method", "left")]
    columns += [(name, "right") for name in ("QP", "NDCG", "TP", "MAP", "rate", "collapsed")]
    table(f"{summary.set}: {summary.about}", columns, rows)
    verdict = summary.verdict
    if verdict.radial_over_triplet is not None and verdict.needed is not None:
        note(
            f"Radial (no gradient through R) minus Triplet: {verdict.radial_over_triplet:+.1f} points of QP; two "
            f"standard deviations are {verdict.needed:.1f}."
        )
    if verdict.ours is not None and verdict.ours_over_radial is not None:
        note(
            f"Ours, chosen on validation ({verdict.ours}), minus Radial: {verdict.ours_over_radial:+.1f} points."
        )


def _pictures(
    command: str,
    plan: ComparisonPlan,
    data: Path,
    runs: list[Run],
    summaries: list[Summary],
    output: Path,
) -> list[str]:
    """Draw one picture a collection; the lines that show them on the page."""
    from vidkin.experiments.retrieval import comparison_set, method_named, open_set
    from vidkin.rendering.retrieval_picture import draw_retrieval

    lines = []
    for summary in summaries:
        wanted = [*_PICTURED, *([summary.verdict.ours] if summary.verdict.ours else [])]
        rates = {row.method: row.learning_rate for row in summary.chosen or summary.common}
        ranked = {
            method_named(run.method).title: {int(number): row for number, row in run.ranked.items()}
            for name in wanted
            for run in runs
            if run.set == summary.set
            and run.method == name
            and run.seed == plan.seeds[0]
            and run.learning_rate == rates[name]
        }
        if not ranked:
            continue
        picture = output / f"{command}-{summary.set}.png"
        draw_retrieval(open_set(comparison_set(summary.set), data), ranked, picture)
        lines += [
            "",
            f"Retrieval on {summary.set}: queries at the left (evenly spaced test items, not picked), results of the "
            f"first seed; green the same subcategory, blue the same category, red another.",
            "",
            f"![Retrieval on {summary.set}]({picture.name})",
        ]
    return lines

"""``vidkin benchmark losses``: compare losses for training a comparator without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.console import meter, table, wrote
from vidkin.cli.options import JsonFormat, JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import print_json

__all__ = ["losses"]


def losses(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders or files of videos that share no footage.", exists=True),
    ],
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Training method; repeatable.", show_default="all"),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of runs (seeds) per method.")] = 3,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Training steps per run.")] = 120,
    views: Annotated[int, typer.Option("--views", min=2, help="Number of edited views per clip.")] = 6,
    extractor: Annotated[str, typer.Option("--extractor", "-e", help="Frame feature extractor.")] = "classical",
    teacher: Annotated[
        str, typer.Option("--teacher", help="Extractor whose similarities label the frames; empty to use --extractor.")
    ] = "vidkin",
    test: Annotated[float, typer.Option("--test", help="Fraction of the videos used for testing.")] = 0.4,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder for the report, plot, features and runs. A second call resumes.",
            file_okay=False,
        ),
    ] = Path("vidkin-benchmark/losses"),
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Train video comparators without labels, one per loss, and evaluate them on other videos.

    Each run is saved when it finishes. Run the same command again to resume an interrupted comparison.
    """
    from dataclasses import replace

    from vidkin._base.files import create_output_folder, write_text
    from vidkin_research.losses import METHODS, LossStudy, as_page, draw_losses, run_loss_study
    from vidkin_research.runs import write_figures
    from vidkin_research.spread import spread

    known = {method.name: method for method in METHODS}
    unknown = sorted(set(methods or ()) - set(known))
    if unknown:
        raise InvalidArgumentError(f"unknown method {unknown[0]!r}; choose from {', '.join(known)}")
    study = LossStudy(
        methods=tuple(known[name] for name in methods or known),
        clips=replace(LossStudy().clips, views=views, teacher=teacher),
        extractor=extractor,
        steps=steps,
        seeds=tuple(range(seeds)),
        test=test,
    )
    create_output_folder(output)
    with meter("losses") as bar:
        report = run_loss_study(
            study,
            folders,
            output,
            on_progress=lambda done, total, what: bar.update(done, total, detail=what),
        )
    write_text(output / "losses.md", as_page(report))
    draw_losses(report, output / "losses.png")
    # The maps of individual clips are only for the plot.
    plain = [replace(run, own_map=(), other_map=()) for run in report.runs]
    write_figures(replace(report, runs=plain), output / "losses.json")
    if format == "json":
        print_json(report)
        return
    rows = []
    for method in study.methods:
        runs = [run for run in report.runs if run.method == method.name]
        figures = [spread([run.map for run in runs]), spread([run.micro_ap for run in runs])]
        rows.append([method.name, *(f"{figure['mean']:.3f}" for figure in figures)])
    table(
        f"{report.test[1]} clips of {report.test[0]} videos",
        [("method", "left"), ("mAP", "right"), ("micro-AP", "right")],
        rows,
    )
    wrote(output / "losses.md", "the full report, next to losses.png and losses.json")

"""``vidkin benchmark images``: compare classical features, networks and trained models on the same images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.console import meter, table, wrote
from vidkin.cli.options import JsonFormat, JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import print_json
from vidkin_research.commands.study_options import FrameWeightsOption

if TYPE_CHECKING:
    from vidkin_research.images import ImageReport, ImageRow, ImageTask

__all__ = ["images"]


def images(
    data: Annotated[
        Path,
        typer.Argument(help="Folder with the sets (photos/flowers, labelled/grocery, ...).", exists=True),
    ],
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            help="Set: flowers, grocery, fruit, omniglot, aerial, or pictures (DATA/class/file); repeatable.",
            show_default="flowers and grocery",
        ),
    ] = None,
    chosen_rows: Annotated[
        list[str] | None,
        typer.Option("--row", "-r", help="Measure only rows whose name contains this; repeatable.", show_default="all"),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Number of runs (seeds) of each row that uses a seed.")
    ] = 3,
    size: Annotated[int, typer.Option("--size", min=32, help="Side in pixels of the square images.")] = 112,
    per_class: Annotated[
        int, typer.Option("--per-class", min=0, help="Number of images per class and split; 0 for all.")
    ] = 0,
    long_tail: Annotated[
        float, typer.Option("--long-tail", help="Size of the smallest training class relative to the largest.")
    ] = 1.0,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Training steps of rows that train.")] = 300,
    learning_rates: Annotated[
        list[float] | None,
        typer.Option(
            "--learning-rate",
            help="Learning rate of two-head rows; repeatable. The best one is chosen on the validation split.",
            show_default="0.002",
        ),
    ] = None,
    weights: FrameWeightsOption = None,
    sweeps: Annotated[
        bool,
        typer.Option(
            "--sweeps",
            help="Sweep lambda and the embedding size and measure collapse and step time, instead of the rows.",
        ),
    ] = False,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the report and the runs. A second call resumes.", file_okay=False
        ),
    ] = Path("vidkin-benchmark/images"),
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Compare classical features, network features and trained models on labeled images.

    Reports top-1, triplet precision, Recall@K and the time per image, and shows the top results of every row for the
    same test images. Each run is saved when it finishes. Run the same command again to resume an interrupted
    comparison.
    """
    with meter("starting"):
        from vidkin._base.files import create_output_folder, write_text
        from vidkin_research.images import IMAGE_SETS, ROWS, as_page, choose_rates, open_task, run_image_study
        from vidkin_research.runs import write_figures

    known = {chosen.name: chosen for chosen in IMAGE_SETS}
    names = sets or ["flowers", "grocery"]
    if unknown := sorted(set(names) - set(known)):
        raise InvalidArgumentError(f"a set must be one of {', '.join(known)}, got {unknown[0]!r}")
    rows = [row for row in ROWS if not chosen_rows or any(part in row.name for part in chosen_rows)]
    if not rows:
        listed = "; ".join(row.name for row in ROWS)
        raise InvalidArgumentError(
            f"--row must be part of a row name, got {', '.join(chosen_rows or ())}; rows are {listed}"
        )
    create_output_folder(output)
    tried = tuple(learning_rates or (0.002,))

    def task(name: str, *, validation: bool) -> ImageTask:
        return open_task(
            known[name],
            data,
            size=size,
            per_class=per_class,
            long_tail=long_tail,
            weights=weights,
            steps=steps,
            learning_rate=tried[0],
            validation=validation,
        )

    if sweeps:
        # Settings are chosen on the validation split.
        _sweep([task(name, validation=True) for name in names], output, seeds, json=format == "json")
        return
    tasks = [task(name, validation=False) for name in names]
    chosen: dict[tuple[str, str], float] = {}
    with meter("images") as bar:

        def show(done: int, total: int, what: str) -> None:
            bar.update(done, total, detail=what)

        tuned = [row for row in rows if row.group == "two-head"]
        if len(tried) > 1 and tuned:
            judged = {own.name: task(name, validation=True) for own, name in zip(tasks, names, strict=True)}
            chosen = choose_rates(tuned, judged, output, rates=tried, on_progress=show)
        report = run_image_study(rows, tasks, output, seeds=range(seeds), rates=chosen, on_progress=show)
        report = replace(report, rates=tried if chosen else ())
    write_text(output / "images.md", as_page(report))
    write_figures(report, output / "images.json")
    drawn = _draw_rankings(rows, tasks, output, chosen)
    if format == "json":
        print_json(report)
        return
    _print(report, rows)
    for picture in drawn:
        wrote(picture, "the top results of each row")
    wrote(output / "images.md", "the full report, next to images.json")


def _print(report: ImageReport, rows: Sequence[ImageRow]) -> None:
    from vidkin_research.spread import spread

    for name, sizes in report.sets.items():
        lines = []
        for row in rows:
            runs = [run for run in report.runs if (run.set, run.row) == (name, row.name)]
            figures = [[run.top_1 for run in runs], [run.triplet_precision for run in runs]]
            figures.append([run.recalls[0] for run in runs])
            lines.append([row.name, *(f"{100 * spread(values)['mean']:.1f}" for values in figures)])
        table(
            f"{name}: {sizes[0]} classes, {sizes[2]} test images",
            [("row", "left"), ("top-1 %", "right"), ("triplets %", "right"), ("R@1 %", "right")],
            lines,
        )


def _draw_rankings(
    rows: Sequence[ImageRow],
    tasks: Sequence[ImageTask],
    output: Path,
    rates: Mapping[tuple[str, str], float],
) -> list[Path]:
    """Draw the top results of every row, one image per set, and return the image files."""
    from vidkin_research.images import read_rankings
    from vidkin_research.ranking_picture import draw_retrieval

    drawn = []
    for task in tasks:
        # Runs stored by earlier versions have no rankings.
        if rankings := read_rankings(rows, task, output, rates=rates):
            drawn.append(output / f"rankings-{task.name.replace(', ', '-')}.png")
            draw_retrieval(task.test.labelled, rankings, drawn[-1], gallery_split="test")
    return drawn


def _sweep(tasks: Sequence[ImageTask], output: Path, seeds: int, *, json: bool) -> None:
    from vidkin._base.files import write_text
    from vidkin_research.images import draw_sweeps, run_sweeps, sweeps_page

    reports = []
    for task in tasks:
        with meter("sweeps") as bar:
            reports.append(
                run_sweeps(
                    task,
                    output,
                    seeds=range(seeds),
                    on_progress=lambda done, total, what: bar.update(done, total or None, detail=what),
                )
            )
        path = output / f"sweeps-{task.name.replace(', ', '-')}.md"
        write_text(path, sweeps_page(reports[-1]))
        draw_sweeps(reports[-1], path.with_suffix(".png"))
        if not json:
            wrote(path, "with a chart in the .png file next to it")
    if json:
        print_json({"sweeps": reports})

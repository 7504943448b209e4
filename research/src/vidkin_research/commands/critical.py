"""``vidkin benchmark critical``: compare losses by how well their trained metrics find critical clips."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.console import meter, note, table, wrote
from vidkin.cli.options import JsonFormat, JsonOption
from vidkin.rendering.text import percent, print_json
from vidkin_research.commands.study_options import (
    FiguresOption,
    FrameWeightsOption,
    SaveModelOption,
    WorkOption,
)

__all__ = ["critical"]

_QUICK_SEEDS, _QUICK_STEPS = 1, 100
_COLUMNS = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "average_precision": "AP",
    "spotting": "spotting",
    "found_f1": "F1, learned cuts",
    "found_cuts_f1": "learned cuts F1",
    "default_f1": "F1, default cuts",
    "default_cuts_f1": "default cuts F1",
}


def critical(
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            help="Folder searched at any depth for the recordings (intel-iot-devkit sample videos, mdn learning-area).",
            file_okay=False,
            exists=True,
        ),
    ],
    weights: FrameWeightsOption = None,
    work: WorkOption = Path("vidkin-benchmark"),
    output: FiguresOption = None,
    save: SaveModelOption = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of runs (seeds) per loss.")] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, 100 steps, no held-out locations. Takes a few minutes.")
    ] = False,
    held_out: Annotated[
        bool,
        typer.Option("--held-out/--no-held-out", help="Also train without each location in turn and test on it."),
    ] = True,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Measure how well trends in a learned distance detect shots in which something happens.

    Highlight videos are composed of recordings in which something happens. Each loss is trained on one part of every
    recording and evaluated on the rest, then trained without one location and evaluated on that location.
    """
    from vidkin.cli.options import check_output_file
    from vidkin_research.critical import CriticalStudy, run_critical_study
    from vidkin_research.runs import FIGURES, write_figures

    check_output_file(output, FIGURES)
    study = CriticalStudy(seeds=seeds, held_out=held_out)
    if quick:
        study = CriticalStudy(seeds=_QUICK_SEEDS, steps=_QUICK_STEPS, held_out=False)
    with meter("critical clips") as bar:
        report = run_critical_study(
            study,
            data,
            weights=weights,
            work=work,
            save=save,
            output=output,
            on_progress=lambda done, total, what: bar.update(done, total, detail=what),
        )
    write_figures(report, output)
    if output is not None:
        wrote(output, "the results")
    if format == "json":
        print_json(report)
    else:
        columns = [("loss", "left"), *((title, "right") for title in _COLUMNS.values())]
        for split in dict.fromkeys(line["split"] for line in report.summary):
            rows = [
                [line["loss"], *(percent(line[name]["mean"], line[name]["deviation"]) for name in _COLUMNS)]
                for line in report.summary
                if line["split"] == split
            ]
            table(split, columns, rows)
        note(
            "Percent. Precision, recall and F1: clips detected by the combined trend test. AP: clips ranked by score. "
            "Spotting: AP of moments, with a tolerance of 2 s."
        )

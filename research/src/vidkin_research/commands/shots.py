"""``vidkin benchmark shots``: each detector on composed and on edited videos."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.console import meter, note, table
from vidkin.cli.options import JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import percent, print_json
from vidkin_research.commands.study_options import (
    FiguresOption,
    FrameWeightsOption,
    SaveModelOption,
    WorkOption,
)

__all__ = ["shots"]

_QUICK_SEEDS, _QUICK_STEPS, _QUICK_SEGMENT_STEPS = 1, 80, 50
_COLUMNS = {
    "f1_nearest_0": "F1, 0",
    "f1_nearest_1": "F1, 1",
    "f1_nearest_2": "F1, 2",
    "f1_overlap_2": "F1 overlap",
    "hard_precision": "hard P",
    "hard_recall": "hard R",
}


def shots(
    data: Annotated[
        Path,
        typer.Option("--data", help="Folder of edited videos with truth.json.", file_okay=False, exists=True),
    ],
    videos: Annotated[
        Path | None,
        typer.Option(
            "--videos", help="Folder of single-shot clips to compose videos of.", file_okay=False, exists=True
        ),
    ] = None,
    photographs: Annotated[
        Path | None,
        typer.Option(
            "--photographs",
            help="Folder of photographs that add scenes to the composed videos.",
            file_okay=False,
            exists=True,
        ),
    ] = None,
    detector: Annotated[
        list[str] | None,
        typer.Option("--detector", "-d", help="Judge this detector as well, such as transnetv2 or band."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            help="Labels of a public collection whose videos are in --data, instead of truth.json: clipshots, bbc, "
            "rai, shot or omnishotcut, then = and the file or folder.",
            metavar="COLLECTION=PATH",
        ),
    ] = None,
    weights: FrameWeightsOption = None,
    work: WorkOption = Path("vidkin-benchmark"),
    output: FiguresOption = None,
    save: SaveModelOption = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=0, help="Runs of each loss and of DeepSBD; 0 trains nothing.")
    ] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="One seed and a third of the steps.")] = False,
    json: JsonOption = False,
) -> None:
    """Compare shot detectors: published peers, the default, and detectors trained with each loss.

    Without --videos only detectors that need no training are judged, on the edited videos. With --videos, videos are
    composed of single-shot clips: one part of the clips trains the detectors, the other part judges them. These also
    make the families of transitions and of what looks like one, in which the extents, kinds and false transitions of
    detectors that need no training are measured.
    """
    from vidkin.cli.paths import check_output_file
    from vidkin_research.runs import write_figures
    from vidkin_research.shots import FAMILIES, ShotStudy, run_shot_study, summarize_families

    check_output_file(output)
    study = ShotStudy(seeds=seeds)
    if quick:
        study = ShotStudy(seeds=_QUICK_SEEDS, steps=_QUICK_STEPS, segment_steps=_QUICK_SEGMENT_STEPS)
    study = replace(study, detectors=(*study.detectors, *(detector or ())))
    with meter("shots") as bar:
        report = run_shot_study(
            study,
            data,
            videos=videos,
            photographs=photographs,
            weights=weights,
            work=work,
            save=save,
            output=output,
            labels=_parse_labels(labels),
            on_progress=lambda done, total, what: bar.update(done, total, detail=what),
        )
    write_figures(report, output)
    if json:
        print_json(report)
    else:
        columns = [("detector", "left"), *((title, "right") for title in (*_COLUMNS.values(), "gradual"))]
        for which in dict.fromkeys(line["set"] for line in report.summary):
            rows = [
                [
                    line["detector"],
                    *(percent(line[name]["mean"], line[name]["deviation"]) for name in _COLUMNS),
                    f"{line['gradual_found']['mean']:.1f} of {line['gradual']}",
                ]
                for line in report.summary
                if line["set"] == which
            ]
            table(which, columns, rows)
        for row in report.runs:
            if row.get("set") == FAMILIES:
                columns = [("family", "left"), *((title, "right") for title in ("F1", "right / false / missed"))]
                columns += [("extent", "right"), ("kinds right", "right")]
                table(f"transitions: {row['detector']}", columns, summarize_families(row))
        note(
            "Percent. F1 over hard cuts and gradual transitions, within 0, 1 or 2 frames of the label; hard P and "
            "hard R: precision and recall of hard cuts within 2 frames."
        )


def _parse_labels(text: str | None) -> tuple[str, Path] | None:
    """Name of a collection and path of its labels, from ``clipshots=test.json``."""
    if text is None:
        return None
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise InvalidArgumentError(f"--labels must be COLLECTION=PATH, such as clipshots=test.json, got {text!r}")
    return name, Path(path)

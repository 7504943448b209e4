"""``vidkin benchmark shots``: evaluate detectors on composed and edited videos."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import meter, note, table, wrote
from vidkin.cli.options import JsonFormat, JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import number, percent, print_json
from vidkin_research.commands.study_options import (
    FiguresOption,
    FrameWeightsOption,
    SaveModelOption,
    WorkOption,
)

if TYPE_CHECKING:
    from vidkin_research.runs import Report
    from vidkin_research.shots.labels import ShotCollection

__all__ = ["shots"]

_QUICK_SEEDS, _QUICK_STEPS, _QUICK_SEGMENT_STEPS = 1, 80, 50
_COLUMNS = {
    "f1_nearest_0": "F1, 0",
    "f1_nearest_1": "F1, 1",
    "f1_nearest_2": "F1, 2",
    "f1_overlap_2": "F1 overlap",
    "hard_precision": "hard P",
    "hard_recall": "hard R",
    "extent": "extent",
    "kinds_right": "kinds",
}


def shots(
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            help="Folder of edited videos, with their transitions in truth.json (see research/README.md).",
            file_okay=False,
            exists=True,
        ),
    ],
    videos: Annotated[
        Path | None,
        typer.Option(
            "--videos", help="Folder of single-shot clips to compose videos from.", file_okay=False, exists=True
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
        typer.Option("--detector", "-d", help="Also evaluate this detector, such as transnetv2."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            help="Labels of a public collection (clipshots, bbc, rai, shot or omnishotcut) to use instead of "
            "truth.json, with the file or folder after the =; its videos are in --data.",
            metavar="COLLECTION=PATH",
        ),
    ] = None,
    weights: FrameWeightsOption = None,
    work: WorkOption = Path("vidkin-benchmark"),
    output: FiguresOption = None,
    save: SaveModelOption = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=0, help="Number of runs (seeds) per loss and of DeepSBD; 0 trains nothing.")
    ] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="One seed and a third of the steps.")] = False,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Compare shot detectors: published methods, the default, and detectors trained with each loss.

    Without --videos, only detectors that need no training are evaluated, on the edited videos. With --videos, videos
    are composed from single-shot clips, with separate clips for training and evaluation. The evaluation clips also form
    families of transitions and look-alikes, which measure the extents, kinds and false detections of the detectors that
    need no training.
    """
    from vidkin.cli.options import check_output_file
    from vidkin_research.runs import FIGURES, write_figures
    from vidkin_research.shots import ShotStudy, run_shot_study
    from vidkin_research.shots.study import counts_of_run

    check_output_file(output, FIGURES)
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
    write_figures(replace(report, runs=[counts_of_run(run) for run in report.runs]), output)
    if output is not None:
        wrote(output, "the results")
    if format == "json":
        print_json(report)
    else:
        _print_report(report)


def _print_report(report: Report) -> None:
    from vidkin_research.shots import FAMILIES
    from vidkin_research.shots.labels import SHOT_COLLECTIONS

    columns = [("detector", "left"), *((title, "right") for title in (*_COLUMNS.values(), "gradual"))]
    for which in dict.fromkeys(line["set"] for line in report.summary):
        rows = [
            [
                line["detector"],
                *("" if (share := line.get(name)) is None else _measure_cell(share) for name in _COLUMNS),
                f"{line['gradual_found']['mean']:.1f} of {line['gradual']}",
            ]
            for line in report.summary
            if line["set"] == which
        ]
        table(which, columns, rows)
        if which in SHOT_COLLECTIONS:
            note(_published(SHOT_COLLECTIONS[which]))
    for row in report.runs:
        if row.get("set") == FAMILIES:
            _print_families(row)
    for row in report.runs:
        # Only the first run of each detector: the single videos of its other runs would add little.
        if row.get("set") in {"edited", *SHOT_COLLECTIONS} and not row.get("seed") and "transitions" in row:
            _print_kinds(f"{row['set']}: {row['detector']}", row["transitions"])
    note(
        "Percent. F1 over hard cuts and gradual transitions, within 0, 1 or 2 frames of the label; hard P and "
        "hard R: precision and recall of hard cuts within 2 frames; extent: mean intersection over union with the "
        "labels, 0 if missed; kinds: percentage of detected labels with the correct kind."
    )


def _measure_cell(share: Mapping[str, Any]) -> str:
    return percent(share["mean"], share["deviation"])


def _published(collection: ShotCollection) -> str:
    """Say which column corresponds to a collection's published result."""
    if collection.rule is None:
        words = f"No column follows the evaluation rule of {collection.title}."
    else:
        column = _COLUMNS[f"f1_{collection.rule}_{collection.tolerance}"]
        within = number(collection.tolerance, "frame")
        words = f"{column} corresponds to the published result of {collection.title}: within {within}."
    return words if collection.has_kinds else f"{words} Its labels only distinguish cuts from gradual transitions."


def _print_families(row: Mapping[str, Any]) -> None:
    from vidkin_research.shots.composed import summarize_families

    columns = [("family", "left"), *((title, "right") for title in ("F1", "right / false / missed"))]
    columns += [("extent", "right"), ("kinds right", "right")]
    table(f"transitions: {row['detector']}", columns, summarize_families(row))
    _print_kinds(f"transitions: {row['detector']}", row["all"])


def _print_kinds(title: str, scores: Mapping[str, Any]) -> None:
    """Print F1 per kind, and the detected kinds for each labeled kind."""
    from vidkin_research.shots.composed import summarize_confusion, summarize_kinds

    columns = [("kind", "left"), ("labels", "right"), ("F1", "right")]
    table(f"{title}, by kind", columns, summarize_kinds(scores))
    headings, rows = summarize_confusion(scores)
    table(f"{title}, found as", [(headings[0], "left"), *((name, "right") for name in headings[1:])], rows)


def _parse_labels(text: str | None) -> tuple[str, Path] | None:
    """Parse ``clipshots=test.json`` into the name of a collection and the path of its labels."""
    if text is None:
        return None
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise InvalidArgumentError(f"--labels must be COLLECTION=PATH, such as clipshots=test.json, got {text!r}")
    return name, Path(path)

"""``vidkin benchmark copies``: measure how many edited copies of your own videos are found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.console import meter, note, table, wrote
from vidkin.cli.options import DeviceOption, JsonFormat, JsonOption, WeightsOption, WhiteningOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import print_json
from vidkin.similarity.scale import UNRELATED

if TYPE_CHECKING:
    from vidkin_research.copies.figures import CopyFigures
    from vidkin_research.copies.study import CopyReport


def copies(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder of unrelated videos.", file_okay=False, exists=True),
    ],
    extractors: Annotated[
        list[str] | None,
        typer.Option(
            "--extractor",
            "-e",
            help="Extractor to measure; repeatable. --weights and --whitening apply to the last one.",
            show_default="default",
        ),
    ] = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    edits: Annotated[
        list[str] | None, typer.Option("--edit", help="Edit to apply; repeatable.", show_default="all")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            "-t",
            min=0.0,
            max=1.0,
            help="Minimum score of a found copy; default: a score that unrelated pairs should not reach.",
        ),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option("--peers", help="Also measure pHash per frame, and vPDQ if installed."),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Use at most 6 videos, 8 s of each, at 12 frames per second. Takes a few minutes."
        ),
    ] = False,
    work: Annotated[
        Path,
        typer.Option("--work", help="Folder for the edited videos. A second call reuses them.", file_okay=False),
    ] = Path("vidkin-benchmark/copies"),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write a page with images to this HTML file.")
    ] = None,
    device: DeviceOption = "auto",
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Edit your videos in many ways, search for the copies, and report which are found.

    All videos in the folder are assumed to be unrelated.
    """
    from vidkin._base.outputs import describe_source, open_output
    from vidkin.cli.options import check_output_file
    from vidkin.rendering.machine import describe_machine
    from vidkin_research.copies.edits import EDITS
    from vidkin_research.copies.page import as_image_page
    from vidkin_research.copies.recordings import FULL, QUICK, find_recordings
    from vidkin_research.copies.sound_edits import SOUND_EDITS
    from vidkin_research.copies.study import CopyStudy, choose_extractors, run_copy_study

    unknown = sorted(set(edits or ()) - {*EDITS, *SOUND_EDITS})
    if unknown:
        raise InvalidArgumentError(f"unknown edit {unknown[0]!r}; choose from {', '.join([*EDITS, *SOUND_EDITS])}")
    chosen = edits or [*EDITS, *SOUND_EDITS]
    source = describe_source("benchmark", folder)
    check_output_file(output, source)
    study = CopyStudy(
        size=QUICK if quick else FULL,
        edits=tuple(name for name in chosen if name in EDITS),
        sound_edits=tuple(name for name in chosen if name in SOUND_EDITS),
        extractors=choose_extractors(extractors or (), weights=weights, whitening=whitening),
        peers=peers,
        threshold=UNRELATED if threshold is None else threshold,
        threads=os.cpu_count() or 1,
    )
    with meter("copies") as bar:
        results = run_copy_study(
            study,
            find_recordings(folder),
            work,
            machine=describe_machine(),
            on_progress=lambda done, total, what: bar.update(done, total, detail=what),
        )
    if output is not None:
        with open_output(output, source=source) as partial:
            partial.write_text(as_image_page(results), encoding="utf-8")
    if format == "json":
        print_json(results.report)
        return
    for figures in results.report.figures:
        _print(figures, results.report)
    if results.report.witnesses:
        _print_sound_rules(results.report.witnesses)
    if output is not None:
        wrote(output, "an example of each edit, with images")


def _print_sound_rules(results: Sequence[CopyFigures]) -> None:
    """Print how many copies each rule finds (by frames, by sound), over all copies and for each sound edit."""
    rows = []
    for figures in results:
        everything = figures.everything
        found = f"{everything.reported} of {everything.copies}"
        rows.append([figures.system, found, f"{everything.strict.map:.3f}", f"{everything.strict.micro_ap:.3f}"])
    titles = [(title, "right") for title in ("found", "mAP", "micro-AP")]
    table("clips with sound: copies of the frames, the sound, or both", [("by", "left"), *titles], rows)
    edits = zip(*([group for group in figures.edits if group.family == "sound"] for figures in results), strict=True)
    rows = [[groups[0].name, *(f"{group.reported} of {group.copies}" for group in groups)] for groups in edits]
    rules = [(figures.system, "right") for figures in results]
    table("sound edits over unrelated frames: copies found, by rule", [("edit", "left"), *rules], rows)


def _print(figures: CopyFigures, report: CopyReport) -> None:
    rows = []
    for group in (*figures.edits, *figures.families, figures.everything):
        times = group.times
        rows.append(
            [
                group.name,
                group.family or "",
                f"{group.reported} of {group.copies}",
                f"{group.lowest:.2f}",
                f"{group.median:.2f}",
                f"{group.strict.map:.3f}",
                f"{group.strict.micro_ap:.3f}",
                f"{times.start_median:.2f} s" if times else "",
                f"{group.boxes.both:.2f}" if group.boxes else "",
            ]
        )
    titles = ("found", "lowest", "median", "mAP", "micro-AP", "start error", "boxes")
    columns = [("edit", "left"), ("family", "left"), *((title, "right") for title in titles)]
    table(f"{figures.system}: {report.queries} clips against {report.videos} videos", columns, rows)
    note("Start error: median, in seconds. Boxes: mean overlap with the true boxes; 1 is exact.")
    for unrelated in figures.unrelated:
        note(
            f"Unrelated, {unrelated.which}: {unrelated.above} of {unrelated.pairs:,} pairs have a score of "
            f"{unrelated.threshold:g} or more; the highest is {unrelated.highest:.2f} "
            f"({' and '.join(unrelated.highest_pair)})."
        )

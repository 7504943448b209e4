"""``vidkin index``: take videos into an index."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import error_line, meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.cli.options import (
    DEFAULT_INDEX,
    ExtractorOption,
    IndexOption,
    JsonOption,
    ModelOption,
    WeightsOption,
    WhiteningOption,
    extractor_name,
)
from vidkin.cli.paths import open_index_for_writing
from vidkin.rendering.json_values import as_json, print_json
from vidkin.rendering.text import number, printable

if TYPE_CHECKING:
    from vidkin.index import Index, IngestReport, Progress

__all__ = ["fill", "index", "print_report"]


def index(
    paths: Annotated[list[Path], typer.Argument(help="Folders and videos.", metavar="PATH...")],
    index: IndexOption = DEFAULT_INDEX,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-w", min=1, help="Processes that decode.", show_default="processors"),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Forget videos that are gone from these folders.")
    ] = False,
    retry_broken: Annotated[
        bool, typer.Option("--retry-broken", help="Try broken files again although they did not change.")
    ] = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0.0, help="Wait so many seconds for another writer to finish.")
    ] = 0.0,
    json: JsonOption = False,
) -> None:
    """Take folders and videos into the index: only what is new or changed is read.

    Interrupted at any point, the same command goes on where it stopped.
    """
    name = extractor_name(extractor, model)
    with open_index_for_writing(
        index, extractor=name, weights=weights, whitening=whitening, create=True
    ) as collection:
        report = fill(collection, paths, workers=workers, prune=prune, retry_broken=retry_broken, wait=wait)
        info = collection.info()
    if json:
        print_json({"index": index, **_report_as_json(report), "videos": info.videos})
    else:
        print_report(report)
        say(path_text(index).append(f": {number(info.videos, 'video')}"))
        if info.extractor == "classical":
            from vidkin.features import better_extractor_hint

            note(f"Hint: {better_extractor_hint()}")
    _leave(report)


def fill(
    collection: Index,
    paths: Sequence[Path],
    *,
    workers: int | None = None,
    prune: bool = False,
    retry_broken: bool = False,
    wait: float = 0.0,
) -> IngestReport:
    """Add paths to a collection with a progress bar."""
    with meter("indexing") as bar:
        began: float | None = None

        def show(progress: Progress) -> None:
            # Starting the workers takes seconds that say nothing about the rate.
            nonlocal began
            began = began or time.monotonic()
            passed = max(time.monotonic() - began, 0.5)
            rate = (
                f"{progress.seconds_of_video / passed:,.0f}x realtime, {progress.done / passed:,.1f} files/s"
            )
            bar.update(progress.done, progress.total, detail=f"{rate}  {os.path.basename(progress.path)}")

        return collection.add(
            [os.fspath(path.expanduser()) for path in paths],
            workers=workers,
            prune=prune,
            retry_broken=retry_broken,
            wait=wait,
            on_progress=show,
        )


def print_report(report: IngestReport) -> None:
    """Counts as a table, and every broken file with its cause."""
    counts = [(name, len(found)) for name, found in _outcomes(report)]
    table(None, [(name, "right") for name, _ in counts], [[f"{count:,}" for _, count in counts]])
    if report.broken:
        columns = [("broken", "left"), ("cause", "left")]
        table(None, columns, [[path_text(item.path), printable(item.cause)] for item in report.broken])


def _outcomes(report: IngestReport) -> list[tuple[str, Sequence[Any]]]:
    return [(name, getattr(report, name)) for name in ("added", "unchanged", "moved", "broken", "removed")]


def _report_as_json(report: IngestReport) -> dict[str, Any]:
    return {name: as_json(found) for name, found in _outcomes(report)}


def _leave(report: IngestReport) -> None:
    if not report.usable and not report.removed:
        if not report.broken:
            error_line("no video was found there; give folders or files with videos")
        raise typer.Exit(Status.NOTHING_USABLE)
    if report.broken:
        raise typer.Exit(Status.SOME_FAILED)

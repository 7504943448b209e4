"""``vidkin index``: add videos to an index."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import error_line, meter, path_text, say, table
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
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number, printable

if TYPE_CHECKING:
    from vidkin.index import Index, IngestReport, Progress

__all__ = ["fill", "index", "print_report"]


def index(
    paths: Annotated[list[Path], typer.Argument(help="Folders and video files.", metavar="PATH")],
    index: IndexOption = DEFAULT_INDEX,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-w", min=1, help="Worker processes.", show_default="one per processor"),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove videos from the index whose files are gone from these folders."),
    ] = False,
    retry_broken: Annotated[
        bool, typer.Option("--retry-broken", help="Read broken files again even if they have not changed.")
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0.0, help="Seconds to wait for another process that is writing to the index."
        ),
    ] = 0.0,
    json: JsonOption = False,
) -> None:
    """Add videos to the index; only new and changed files are read.

    Run the same command again to resume after an interruption.
    """
    name = extractor_name(extractor, model)
    with open_index_for_writing(
        index, extractor=name, weights=weights, whitening=whitening, create=True
    ) as collection:
        report = fill(collection, paths, workers=workers, prune=prune, retry_broken=retry_broken, wait=wait)
        info = collection.info()
    if json:
        print_json({"index": index, **dict(_outcomes(report)), "videos": info.videos})
    else:
        print_report(report)
        say(path_text(index).append(f": {number(info.videos, 'video')}"))
    if not report.usable and not report.removed:
        if not report.broken:
            error_line("no videos found; name folders or files with videos")
        raise typer.Exit(Status.NOTHING_USABLE)
    if report.broken:
        raise typer.Exit(Status.SOME_FAILED)


def fill(
    collection: Index,
    paths: Sequence[Path],
    *,
    workers: int | None = None,
    prune: bool = False,
    retry_broken: bool = False,
    wait: float = 0.0,
) -> IngestReport:
    """Add files and folders to an index, with a progress bar."""
    with meter("indexing") as bar:
        began: float | None = None

        def show(progress: Progress) -> None:
            # Starting the workers takes seconds that are not part of the rate.
            nonlocal began
            began = began or time.monotonic()
            passed = max(time.monotonic() - began, 0.5)
            speed = f"{progress.seconds_of_video / passed:,.0f}x real time"
            bar.update(progress.done, progress.total, detail=f"{speed}  {os.path.basename(progress.path)}")

        return collection.add(
            [os.fspath(path.expanduser()) for path in paths],
            workers=workers,
            prune=prune,
            retry_broken=retry_broken,
            wait=wait,
            on_progress=show,
        )


def print_report(report: IngestReport) -> None:
    """Print the counts, and every broken file with its cause."""
    counts = [(name, len(files)) for name, files in _outcomes(report)]
    table(None, [(name, "right") for name, _ in counts], [[f"{count:,}" for _, count in counts]])
    if report.broken:
        columns = [("broken", "left"), ("cause", "left")]
        table(None, columns, [[path_text(item.path), printable(item.cause)] for item in report.broken])


def _outcomes(report: IngestReport) -> list[tuple[str, Sequence[Any]]]:
    return [(name, getattr(report, name)) for name in ("added", "unchanged", "moved", "broken", "removed")]

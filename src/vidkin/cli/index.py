"""``vidkin index``: add videos to an index."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, meter, note, path_text, plain_text, say, table
from vidkin.cli.options import (
    DEFAULT_INDEX,
    DeviceOption,
    ExtractorOption,
    IndexOption,
    JsonFormat,
    JsonOption,
    ModelOption,
    WorkersOption,
    check_some_exist,
    extractor_name,
    open_index_for_writing,
)
from vidkin.rendering.text import number, print_json, printable

if TYPE_CHECKING:
    from vidkin.index import Index, IngestReport, Progress, Prune

# What is rarely needed is not in the help; the guide describes it.
# Seconds: --watch waits for a writer that is there when it begins, as for any later one.
_FOREVER = 1e9
_RareFile = Annotated[Path | None, typer.Option(dir_okay=False, hidden=True)]
_RareText = Annotated[str | None, typer.Option(hidden=True)]


def index(
    paths: Annotated[list[Path], typer.Argument(help="Folders and video files.", metavar="PATH")],
    index: IndexOption = DEFAULT_INDEX,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    workers: WorkersOption = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PATTERN",
            help="Skip files and folders of this name, for example '*proxy*' or Trash/. May be repeated; "
            "remembered by the index.",
        ),
    ] = None,
    images: Annotated[
        bool | None,
        typer.Option(
            "--images/--no-images",
            help="Also add the photographs in folders. Remembered by the index.",
            show_default="no",
        ),
    ] = None,
    sound: Annotated[
        bool | None,
        typer.Option("--sound/--no-sound", hidden=True),
    ] = None,
    list_skipped: Annotated[
        bool, typer.Option("--list-skipped", help="List the files and folders that were skipped, and why.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove videos of these folders from the index whose files are gone or excluded."),
    ] = False,
    prune_anyway: Annotated[bool, typer.Option("--prune-anyway", hidden=True)] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then keep the index up to date with these folders until Ctrl-C.")
    ] = False,
    format: JsonOption = JsonFormat.TABLE,
    weights: _RareFile = None,
    whitening: _RareFile = None,
    views: _RareText = None,
    rate: Annotated[float | None, typer.Option("--rate", min=0.0, hidden=True)] = None,
    device: DeviceOption = "auto",
    no_exclude: Annotated[bool, typer.Option("--no-exclude", hidden=True)] = False,
    follow_links: Annotated[bool | None, typer.Option("--follow-links/--no-follow-links", hidden=True)] = None,
    include_bins: Annotated[bool | None, typer.Option("--include-bins/--no-include-bins", hidden=True)] = None,
    retry_broken: Annotated[bool, typer.Option("--retry-broken", hidden=True)] = False,
    wait: Annotated[float, typer.Option("--wait", min=0.0, hidden=True)] = 0.0,
    cluster: str | None = None,
    store: str | None = None,
) -> None:
    """Add videos to the index; only new and changed files are read.

    Run the same command again to resume after an interruption. Bins, snapshots and previews of NAS systems and
    desktops are left out. Rare options are in the guide; they also go into the section [index] of the configuration
    file.
    """
    removal: Prune = "anyway" if prune_anyway else prune
    if watch:  # as it waits whenever another process writes later
        wait = max(wait, _FOREVER)
    name = extractor_name(extractor, model, views)
    if not watch and not os.path.exists(index) and "://" not in os.fspath(index):
        check_some_exist(paths)  # a wrong name makes no index
    with open_index_for_writing(
        index, extractor=name, weights=weights, whitening=whitening, rate=rate, store=store, create=True
    ) as collection:
        if sound is not None and sound != collection.manifest.sound:
            collection.use_sound(sound, wait=wait)
        remembered = () if no_exclude else collection.manifest.exclude
        report = fill(
            collection,
            # What is being written at this moment must settle first: watching adds the rest.
            [] if watch else paths,
            workers=workers,
            cluster=cluster,
            prune=removal,
            retry_broken=retry_broken,
            wait=wait,
            exclude=dict.fromkeys([*remembered, *(exclude or ())]),
            follow_links=follow_links,
            images=images,
            include_bins=include_bins,
        )
        if watch:
            _follow(collection, paths, workers=workers, prune=removal, json=format == "json")
            return
        info = collection.info()
    if format == "json":
        print_json(
            {
                "index": index,
                **_summary(report, list_skipped=list_skipped),
                "videos": info.videos,
                "photographs": info.photographs,
            }
        )
    else:
        print_report(report)
        _print_left_out(report, list_skipped=list_skipped)
        say(path_text(index).append(f": {count_files(info.videos, info.photographs)}"))
    if report.prune_refused:
        error_line(report.prune_refused)
        raise typer.Exit(Status.SOME_FAILED)
    if not report.usable and not report.removed:
        if report.missing and not report.broken:
            error_line("no videos found, and those of the index are gone; if they are on a drive, connect it")
        elif not report.broken:
            error_line("no videos found; name folders or files with videos")
        raise typer.Exit(Status.NOTHING_USABLE)
    if any(not item.known for item in report.broken):
        raise typer.Exit(Status.SOME_FAILED)


def _follow(collection: Index, paths: Sequence[Path], *, workers: int | None, prune: Prune, json: bool) -> None:
    """Keep an index up to date until Ctrl-C, which is how this ends; during an update it interrupts that."""
    from vidkin.index import IngestInterrupted, watch_folders

    note(f"Watching {number(len(paths), 'path')}; Ctrl-C ends it.")
    names = [os.fspath(path.expanduser()) for path in paths]
    missing: frozenset[str] = frozenset()
    refused = ""
    try:
        for report in watch_folders(collection, names, workers=workers, prune=prune):
            # What is known already is not said again.
            new = [item for item in (*report.added, *report.moved, *report.broken, *report.removed) if not item.known]
            new += [item for item in report.missing if item.path not in missing]
            missing = frozenset(item.path for item in report.missing)
            if report.prune_refused not in ("", refused):
                error_line(report.prune_refused)
            refused = report.prune_refused
            if json:
                facts = {"index": collection.place.uri, "changes": [item.to_dict() for item in new]}
                print_json({**facts, "videos": len(collection), "prune_refused": refused}, indent=None)
                continue
            for item in new:
                cause = f": {printable(item.cause)}" if item.cause else ""
                say(plain_text(f"{item.kind:<8} ").append_text(path_text(item.path)).append(cause))
            if new:
                say(path_text(collection.place.uri).append(f": {number(len(collection), 'video')}"))
    except IngestInterrupted:
        raise
    except KeyboardInterrupt:
        note("Stopped watching.")


def fill(
    collection: Index,
    paths: Sequence[Path],
    *,
    workers: int | None = None,
    cluster: str | None = None,
    prune: Prune = False,
    retry_broken: bool = False,
    wait: float = 0.0,
    exclude: Iterable[str] | None = None,
    follow_links: bool | None = None,
    images: bool | None = None,
    include_bins: bool | None = None,
) -> IngestReport:
    """Add files and folders to an index, with a progress bar; options as of :meth:`vidkin.Index.add`.

    ``cluster`` names machines that read the files (:mod:`vidkin.index.clusters`); None reads them in processes of this
    one.
    """
    executor = None
    if cluster is not None:
        from vidkin.index import open_cluster

        executor = open_cluster(cluster).executor(collection.worker_spec, workers=workers)
    with meter("indexing") as bar:
        began: float | None = None

        def show(progress: Progress) -> None:
            # Starting the workers takes seconds that are not part of the rate.
            nonlocal began
            began = began or time.monotonic()
            speed = progress.seconds_of_video / max(time.monotonic() - began, 0.5)
            times = f"{speed:,.0f}x real time  " if speed >= 1 else ""
            bar.update(progress.done, progress.total, detail=f"{times}{os.path.basename(progress.path)}")

        return collection.add(
            [os.fspath(path.expanduser()) for path in paths],
            workers=workers,
            prune=prune,
            retry_broken=retry_broken,
            wait=wait,
            exclude=exclude,
            follow_links=follow_links,
            images=images,
            include_bins=include_bins,
            executor=executor,
            on_progress=show,
        )


def count_files(videos: int, photographs: int) -> str:
    """Numbers of videos and photographs, in words; without the latter where there are none."""
    return " and ".join([number(videos, "video"), *([number(photographs, "photograph")] if photographs else [])])


def print_report(report: IngestReport) -> None:
    """Print the counts, and every broken file with its cause."""
    kinds = ("added", "unchanged", "moved", "broken", "removed")
    counts = [(kind, len(getattr(report, kind))) for kind in kinds]
    table(None, [(name, "right") for name, _ in counts], [[f"{count:,}" for _, count in counts]])
    if report.broken:
        columns = [("broken", "left"), ("cause", "left")]
        table(None, columns, [[path_text(item.path), printable(item.cause)] for item in report.broken])


def _summary(report: IngestReport, *, list_skipped: bool) -> dict[str, Any]:
    """The report in numbers; files are listed where something is wrong with them."""
    facts = report.to_dict()
    damaged = [item for item in facts["added"] if item["cause"]]
    counted = ("added", "unchanged", "moved", "removed", *(() if list_skipped else ("skipped",)))
    return facts | {name: len(facts[name]) for name in counted} | {"damaged": damaged}


def _print_left_out(report: IngestReport, *, list_skipped: bool) -> None:
    from vidkin.index import BIN, LINK_TO_FOLDER, PHOTOGRAPH

    if report.missing:
        table(None, [("missing", "left")], [[path_text(item.path)] for item in report.missing])
    if report.missing and not report.prune_refused:
        verb, them = ("is", "it") if len(report.missing) == 1 else ("are", "them")
        files = number(len(report.missing), "file")
        note(f"{files} of the index {verb} gone from these folders; --prune removes {them} from the index.")
    if report.excluded and not report.prune_refused:
        verb, them = ("is", "it") if len(report.excluded) == 1 else ("are", "them")
        files = number(len(report.excluded), "file")
        note(f"{files} of the index {verb} excluded now; --prune removes {them} from the index.")
    if list_skipped:
        columns = [("skipped", "left"), ("reason", "left")]
        table(None, columns, [[path_text(item.path), printable(item.cause)] for item in report.skipped])
        return
    photographs = sum(item.cause == PHOTOGRAPH for item in report.skipped)
    if photographs:
        verb, them = ("was", "it") if photographs == 1 else ("were", "them")
        note(f"{number(photographs, 'photograph')} {verb} left out; --images adds {them}.")
    bins = sum(item.cause == BIN for item in report.skipped)
    if bins:
        verb, them = ("was", "it") if bins == 1 else ("were", "them")
        folders = f"{number(bins, 'folder')} of deleted files, snapshots or previews"
        note(f"{folders} {verb} left out; --include-bins reads {them}.")
    links = sum(item.cause == LINK_TO_FOLDER for item in report.skipped)
    if links:
        text = "1 link to a folder was" if links == 1 else f"{links:,} links to folders were"
        note(f"{text} not followed; --follow-links follows {'it' if links == 1 else 'them'}.")

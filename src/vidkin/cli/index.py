"""``vidkin index``: add videos to an index."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin._base.files import create_output_folder
from vidkin.cli import options
from vidkin.cli.commands import Status
from vidkin.cli.config import DEFAULT_INDEX, cache_folder
from vidkin.cli.console import error_line, meter, note, path_text, print_data, say, table
from vidkin.cli.options import JsonFormat, rare_option
from vidkin.rendering.ingest import count_files, describe_outdated, describe_skipped, summarize_report
from vidkin.rendering.text import number, printable

if TYPE_CHECKING:
    from vidkin.index import Index, IngestReport, Progress, Prune

# Seconds to wait for another process that is writing, with --watch and for an index in the cache folder.
_FOREVER = 1e9


def index(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH")],
    index: options.IndexOption = DEFAULT_INDEX,
    extractor: options.ExtractorOption = None,
    model: options.ModelOption = None,
    workers: options.WorkersOption = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", metavar="PATTERN")] = None,
    images: Annotated[bool | None, typer.Option("--images/--no-images", show_default="no")] = None,
    sound: Annotated[bool | None, rare_option("--sound/--no-sound")] = None,
    list_skipped: Annotated[bool, typer.Option("--list-skipped")] = False,
    prune: Annotated[bool, typer.Option("--prune")] = False,
    prune_anyway: Annotated[bool, rare_option("--prune-anyway")] = False,
    watch: Annotated[bool, typer.Option("--watch")] = False,
    format: options.JsonOption = JsonFormat.TABLE,
    weights: options.WeightsOption = None,
    whitening: options.WhiteningOption = None,
    rate: Annotated[float | None, rare_option("--rate", min=0.0)] = None,
    device: options.DeviceOption = "auto",
    no_exclude: Annotated[bool, rare_option("--no-exclude")] = False,
    follow_links: Annotated[bool | None, rare_option("--follow-links/--no-follow-links")] = None,
    include_bins: Annotated[bool | None, rare_option("--include-bins/--no-include-bins")] = None,
    retry_broken: Annotated[bool, rare_option("--retry-broken")] = False,
    wait: Annotated[float, rare_option("--wait", min=0.0)] = 0.0,
    cluster: str | None = None,
    store: str | None = None,
) -> None:
    """Add videos to the index; only new and changed files are read.

    Run the same command again to resume after an interruption. Bins, snapshots and previews of NAS systems and
    desktops are left out. Rare options are in the guide; they also go into the section [index] of the configuration
    file.

    Args:
        paths: Folders and video files.
        exclude: Skip files and folders of this name, for example '*proxy*' or Trash/. May be repeated; remembered by
            the index.
        images: Also add the photographs in folders. Remembered by the index.
        list_skipped: List the files and folders that were skipped, and why.
        prune: Remove videos of these folders from the index whose files are gone or excluded.
        watch: Then keep the index up to date with these folders until Ctrl-C.
    """
    removal: Prune = "anyway" if prune_anyway else prune
    if watch:  # as it waits whenever another process writes later
        wait = max(wait, _FOREVER)
    elif not os.path.exists(index) and "://" not in os.fspath(index):
        options.check_some_exist(paths)  # a wrong name makes no index
    made_with: dict[str, Any] = {"weights": weights, "whitening": whitening, "rate": rate, "store": store}
    name = options.extractor_name(extractor, model)
    with options.open_index(index, writing=True, create=True, extractor=name, **made_with) as collection:
        if sound is not None and sound != collection.manifest.sound:
            collection.use_sound(sound, wait=wait)
        remembered = () if no_exclude else collection.manifest.exclude
        report = fill(
            collection,
            # Watching adds the files, once those that are being written are complete.
            [] if watch else paths,
            cluster=cluster,
            workers=workers,
            prune=removal,
            retry_broken=retry_broken,
            wait=wait,
            exclude=dict.fromkeys([*remembered, *(exclude or ())]),
            follow_links=follow_links,
            images=images,
            include_bins=include_bins,
        )
        if watch:
            _follow(collection, paths, workers=workers, prune=removal, format=format)
            return
        info = collection.info()
    counts = {"videos": info.videos, "photographs": info.photographs}
    if not print_data(format, {"index": index, **summarize_report(report, list_skipped=list_skipped), **counts}):
        print_report(report)
        _print_left_out(report, list_skipped=list_skipped)
        say(path_text(index), f": {count_files(**counts)}")
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


def _follow(collection: Index, paths: Sequence[Path], *, workers: int | None, prune: Prune, format: JsonFormat) -> None:
    """Keep an index up to date until Ctrl-C, which is how this ends; during an update it interrupts that."""
    from vidkin.index import IngestInterrupted, watch_folders

    note(f"Watching {number(len(paths), 'path')}; Ctrl-C ends it.")
    names = [os.fspath(path.expanduser()) for path in paths]
    missing: frozenset[str] = frozenset()
    refused = ""
    try:
        for report in watch_folders(collection, names, workers=workers, prune=prune):
            # Known items are not reported again.
            new = [item for item in (*report.added, *report.moved, *report.broken, *report.removed) if not item.known]
            new += [item for item in report.missing if item.path not in missing]
            missing = frozenset(item.path for item in report.missing)
            if report.prune_refused not in ("", refused):
                error_line(report.prune_refused)
            refused = report.prune_refused
            facts = {"index": collection.place.uri, "changes": [item.to_dict() for item in new]}
            if print_data(format, {**facts, "videos": len(collection), "prune_refused": refused}, indent=None):
                continue
            for item in new:
                say(f"{item.kind:<8} ", path_text(item.path), f": {printable(item.cause)}" if item.cause else "")
            if new:
                say(path_text(collection.place.uri), f": {number(len(collection), 'video')}")
    except IngestInterrupted:
        raise
    except KeyboardInterrupt:
        note("Stopped watching.")


def fill(collection: Index, paths: Sequence[Path], *, cluster: str | None = None, **settings: Any) -> IngestReport:
    """Add files and folders to an index, with a progress bar.

    Args:
        collection: The index.
        paths: The files and folders.
        cluster: Name of the machines that read the files (:mod:`vidkin.index.clusters`); None reads them in processes
            of this one.
        settings: Further arguments of :meth:`vidkin.Index.add`.
    """
    if cluster is not None:
        from vidkin.index import open_cluster

        executor = open_cluster(cluster).executor(collection.worker_spec, workers=settings.get("workers"))
        settings["executor"] = executor
    with meter("indexing") as bar:
        began: float | None = None

        def show(progress: Progress) -> None:
            # Starting the workers takes seconds that are not part of the rate.
            nonlocal began
            began = began or time.monotonic()
            speed = progress.seconds_of_video / max(time.monotonic() - began, 0.5)
            times = f"{speed:,.0f}x real time  " if speed >= 1 else ""
            bar.update(progress.done, progress.total, detail=f"{times}{os.path.basename(progress.path)}")

        return collection.add([os.fspath(path.expanduser()) for path in paths], on_progress=show, **settings)


def cached_index(paths: Sequence[Path]) -> Path:
    """The location of the index of some files and folders in the cache folder. Each version of vidkin has its own."""
    from vidkin._version import __version__

    names = sorted({os.fsencode(path.expanduser().resolve()) for path in paths})
    key = hashlib.sha256(b"\0".join(names)).hexdigest()[:20]
    return cache_folder() / f"indexes-{__version__}" / f"{key}.vidkin"


@contextmanager
def index_in_cache(paths: Sequence[Path]) -> Iterator[tuple[Index, IngestReport]]:
    """The index of some files and folders in the cache folder, brought up to date, and the report of the update.

    Another process that is updating the same index is waited for.
    """
    options.check_some_exist(paths)
    place = cached_index(paths)
    create_output_folder(place.parent)
    with options.open_index(place, writing=True, create=True) as collection:
        yield collection, fill(collection, paths, prune=True, wait=_FOREVER)


def print_report(report: IngestReport) -> None:
    """Print the counts, and every broken file with its cause."""
    kinds = ("added", "unchanged", "moved", "broken", "removed")
    table(None, [(kind, "right") for kind in kinds], [[f"{len(getattr(report, kind)):,}" for kind in kinds]])
    if report.broken:
        rows = [(path_text(item.path), printable(item.cause)) for item in report.broken]
        table(None, [("broken", "left"), ("cause", "left")], rows)


def _print_left_out(report: IngestReport, *, list_skipped: bool) -> None:
    """List missing and skipped files, and name the options that change this."""
    if report.missing:
        table(None, [("missing", "left")], [[path_text(item.path)] for item in report.missing])
    if list_skipped:
        rows = [(path_text(item.path), printable(item.cause)) for item in report.skipped]
        table(None, [("skipped", "left"), ("reason", "left")], rows)
    for sentence in (*describe_outdated(report), *(() if list_skipped else describe_skipped(report))):
        note(sentence)

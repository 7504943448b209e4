"""``vidkin shots``: where videos are cut, and lists, images and files of their shots."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.console import error_line, meter
from vidkin.cli.exit import Status
from vidkin.cli.formats import FormatOption, OutputFormat, choose_format
from vidkin.cli.options import JsonOption, parse_time
from vidkin.cli.paths import goes_to_output
from vidkin.cli.videos.shots.options import (
    CopyOption,
    DetectorOption,
    DropFrameOption,
    EndOption,
    ExportOption,
    ImageFormatOption,
    ImageSizeOption,
    ImagesOption,
    LimitOption,
    MergeShortOption,
    MinLengthOption,
    OldExportOption,
    QualityOption,
    SplitOption,
    StartOption,
    TemplateOption,
    ThresholdOption,
    TypesOption,
    WorkersOption,
    check_companions,
    make_export_settings,
    parse_exports,
    parse_types,
    with_chosen_threshold,
)
from vidkin.cli.videos.shots.output import ShotPrinter
from vidkin.cli.videos.shots.search import ShotSearch
from vidkin.errors import MediaError

if TYPE_CHECKING:
    from vidkin.shots import ExportedShots, ExportSettings, ShotDetection, ShotExporter

__all__ = ["shots"]


def shots(
    context: typer.Context,
    videos: Annotated[list[Path], typer.Argument(help="Videos, and folders of videos.", metavar="VIDEO...")],
    detector: DetectorOption = "default",
    threshold: ThresholdOption = None,
    types: TypesOption = None,
    min_length: MinLengthOption = None,
    merge_short: MergeShortOption = False,
    start: StartOption = None,
    end: EndOption = None,
    export: ExportOption = None,
    split: SplitOption = None,
    copy: CopyOption = False,
    thumbnails: Annotated[
        Path | None, typer.Option("--thumbnails", help="Save images of every shot to this folder.")
    ] = None,
    limit: LimitOption = None,
    workers: WorkersOption = None,
    format: FormatOption = OutputFormat.TABLE,
    json: JsonOption = False,
    drop_frame: DropFrameOption = False,
    quality: QualityOption = 18,
    images: ImagesOption = 1,
    image_size: ImageSizeOption = 160,
    image_format: ImageFormatOption = "jpg",
    template: TemplateOption = None,
    csv: OldExportOption = None,
    edl: OldExportOption = None,
    otio: OldExportOption = None,
    chapters: OldExportOption = None,
    stats: OldExportOption = None,
    plot: OldExportOption = None,
    html: OldExportOption = None,
) -> None:
    """Find the shots of videos: where each begins and ends, and how it is cut in.

    With several videos, --export FORMAT=FOLDER fills a folder with files that are named after the videos; a table as
    CSV has the shots of all. Shots have the same numbers in every list and in the names of pieces and images. Defaults
    of your own and rare options (template, images, image-size, image-format, quality, drop-frame) go into the section
    [shots] of the configuration file (see the guide).
    """
    targets = parse_exports(
        export,
        {
            "csv": csv,
            "edl": edl,
            "otio": otio,
            "chapters": chapters,
            "stats": stats,
            "plot": plot,
            "html": html,
        },
    )
    check_companions(context, targets)
    form = choose_format(format, json=json)
    to_output = goes_to_output(targets.get("csv"), form)
    if to_output:
        del targets["csv"]
    targets |= {name: path for name, path in (("thumbnails", thumbnails), ("split", split)) if path}
    paths, failures = _list_videos(videos)
    settings = make_export_settings(template, image_format, image_size, images, copy, quality)
    with meter("starting"):
        exporter = _make_exporter(targets, paths, settings, drop_frame=drop_frame)
    search = ShotSearch(
        with_chosen_threshold(detector, threshold),
        parse_types(types),
        0.0 if start is None else parse_time(start),
        None if end is None else parse_time(end),
        min_length,
        merge_short,
    )
    printer = ShotPrinter(
        form,
        limit,
        csv_to_output=to_output,
        are_several=len(paths) > 1,
        min_length=None if merge_short else min_length,
    )
    count = 0
    for detection in search.run(paths, workers):
        if isinstance(detection, MediaError):
            failures.append((detection.path, detection.cause))
            continue
        count += 1
        exported = _export(
            exporter, detection, show=split is not None and not search.is_parallel(paths, workers)
        )
        failures += exported.failures
        printer.add(detection, exported)
    csv_file, csv_failures = exporter.export_table()
    failures += csv_failures
    printer.finish(detector=detector, csv_file=csv_file, failures=failures)
    for path, cause in failures:
        error_line(f"{path}: {cause}")
    if not count and not failures:
        error_line("no videos in these folders; name folders or files with videos")
    if not count:
        raise typer.Exit(Status.NOTHING_USABLE)
    if failures:
        raise typer.Exit(Status.SOME_FAILED)


def _export(exporter: ShotExporter, detection: ShotDetection, *, show: bool) -> ExportedShots:
    """All files of one video, with a progress bar unless another one is on the screen."""
    if not show:
        return exporter.export(detection)
    with meter(f"writing {os.path.basename(detection.path)}") as bar:
        return exporter.export(detection, on_progress=bar.update)


def _list_videos(arguments: Sequence[Path]) -> tuple[list[str], list[tuple[str, str]]]:
    """Files as they were named, folders as the videos in them; and (path, cause) of what cannot be read."""
    paths: list[str] = []
    problems: list[tuple[str, str]] = []
    for path in arguments:
        if os.path.isdir(path):  # False also for names that no system allows
            from vidkin.index import scan

            folder = scan([path])
            paths += [file.path for file in folder.files]
            problems += folder.problems
        else:
            paths.append(os.fspath(path))
    return list(dict.fromkeys(paths)), problems


def _make_exporter(
    targets: Mapping[str, Path], paths: Sequence[str], settings: ExportSettings, *, drop_frame: bool
) -> ShotExporter:
    """The exporter, with drop-frame time code in the EDL if that is wanted."""
    from vidkin.shots import ShotExporter, find_shot_formats, write_edl

    formats = find_shot_formats(targets)
    if drop_frame and "edl" in formats:
        formats["edl"] = replace(formats["edl"], write=partial(write_edl, drop_frame=True))
    return ShotExporter(targets, paths, formats=formats, settings=settings)

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
    ImageFormatOption,
    ImageSizeOption,
    ImagesOption,
    LimitOption,
    MergeShortOption,
    MinLengthOption,
    QualityOption,
    SplitOption,
    StartOption,
    TemplateOption,
    ThresholdOption,
    TypesOption,
    WorkersOption,
    check_companions,
    make_export_settings,
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
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write all shots as CSV; - for standard output.")
    ] = None,
    edl: Annotated[Path | None, typer.Option("--edl", help="Write an edit decision list (CMX 3600).")] = None,
    drop_frame: DropFrameOption = False,
    otio: Annotated[Path | None, typer.Option("--otio", help="Write an OpenTimelineIO timeline.")] = None,
    chapters: Annotated[
        Path | None, typer.Option("--chapters", help="Write chapters in FFmpeg's metadata format.")
    ] = None,
    stats: Annotated[
        Path | None, typer.Option("--stats", help="Write the detector's curve, frame by frame, as CSV.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the curve with the cuts as red dots (.png, .svg).")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a contact sheet: a page with an image of every shot.")
    ] = None,
    split: SplitOption = None,
    copy: CopyOption = False,
    quality: QualityOption = 18,
    thumbnails: Annotated[
        Path | None, typer.Option("--thumbnails", help="Save images of every shot to this folder.")
    ] = None,
    images: ImagesOption = 1,
    image_size: ImageSizeOption = 160,
    image_format: ImageFormatOption = "jpg",
    template: TemplateOption = None,
    limit: LimitOption = None,
    workers: WorkersOption = None,
    format: FormatOption = OutputFormat.TABLE,
    json: JsonOption = False,
) -> None:
    """Find the shots of videos: where each begins and ends, and how it is cut in.

    With several videos, options that write a file take a folder; the files in it are named after the videos. Shots have
    the same numbers in every list and in the names of pieces and images. Defaults of your own go into the section
    [shots] of the configuration file (see the guide).
    """
    check_companions(context)
    form = choose_format(format, json=json)
    to_output = goes_to_output(csv, form)
    targets = {
        "csv": None if to_output else csv,
        "edl": edl,
        "otio": otio,
        "chapters": chapters,
        "stats": stats,
        "plot": plot,
        "html": html,
        "thumbnails": thumbnails,
        "split": split,
    }
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
    targets: Mapping[str, Path | None],
    paths: Sequence[str],
    settings: ExportSettings,
    *,
    drop_frame: bool,
) -> ShotExporter:
    """The exporter with all formats of shots, and the plot of the curve."""
    from vidkin.rendering.figures import require_picture_name
    from vidkin.rendering.pictures import draw_curve
    from vidkin.shots import SHOT_FORMATS, ShotExporter, ShotFormat, write_edl

    formats = {**SHOT_FORMATS, "plot": ShotFormat(".png", draw_curve, check=require_picture_name)}
    formats["edl"] = replace(formats["edl"], write=partial(write_edl, drop_frame=drop_frame))
    return ShotExporter(
        {name: path for name, path in targets.items() if path is not None},
        paths,
        formats=formats,
        settings=settings,
    )

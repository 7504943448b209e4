"""``vidkin shots``: where videos are cut, and lists, images and files of their shots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from vidkin._base.values import as_json, check_choice
from vidkin.cli import options
from vidkin.cli.commands import Status, source_of
from vidkin.cli.console import (
    end_with_failures,
    error_line,
    is_roomy,
    meter,
    note,
    path_text,
    print_data,
    say,
    table,
    wrote,
)
from vidkin.cli.options import OutputFormat, rare_option, time_option
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering import shots as shot_words
from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.shots import ExportedShots, ImageFormat, ShotDetection, ShotExporter, ShotTable, Transition

# Formats of --output that fill a folder.
_FOLDERS = ("thumbnails", "split")
# Columns of shots that a narrow terminal has no room for.
_ROOMY_COLUMNS = ("seconds", "frame", "confidence", "black")
# Options that only matter to files made from shots: without any of them, the code that writes files is not loaded.
_OF_FILES = ("template", "images", "image_size", "image_format", "quality")


def shots(
    context: typer.Context,
    videos: Annotated[list[Path], typer.Argument(metavar="VIDEO")],
    detector: Annotated[str, typer.Option("--detector", "-d")] = "default",
    threshold: Annotated[float | None, typer.Option("--threshold", "-t", show_default="as trained")] = None,
    types: Annotated[list[str] | None, typer.Option("--types", show_default="all")] = None,
    min_length: Annotated[
        float | None, typer.Option("--min-length", min=0, metavar="SECONDS", show_default="none")
    ] = None,
    merge_short: Annotated[bool, rare_option("--merge-short")] = False,
    start: Annotated[str | None, time_option("--start", show_default="its beginning")] = None,
    end: Annotated[str | None, time_option("--end", show_default="its end")] = None,
    stream: Annotated[int | None, rare_option("--stream", min=0)] = None,
    output: Annotated[list[Path] | None, options.output_option()] = None,
    copy: Annotated[bool, rare_option("--copy")] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, show_default="all")] = None,
    format: options.FormatOption = OutputFormat.TABLE,
    workers: options.WorkersOption = None,
    timecode: Annotated[str, rare_option("--timecode")] = "embedded",
    drop_frame: Annotated[bool, rare_option("--drop-frame")] = False,
    quality: Annotated[int, rare_option("--quality", min=1, max=51)] = 18,
    images: Annotated[int, rare_option("--images", min=1)] = 1,
    image_size: Annotated[int, rare_option("--image-size", min=0)] = 160,
    image_format: Annotated[str, rare_option("--image-format")] = "jpg",
    template: Annotated[str | None, rare_option("--template")] = None,
    device: options.DeviceOption = "auto",
) -> None:
    """Find the shots of videos: where each begins and ends, and how it is cut in.

    With several videos, --output FORMAT=FOLDER fills a folder with files that are named after the videos; a CSV table
    has the shots of all. Shots have the same numbers in every list and in the names of pieces and images. Defaults
    of your own and rare options (in the guide) go into the section [shots] of the configuration file.

    Args:
        videos: Videos, and folders of videos.
        detector: Name of a shot detector, or the folder of a trained model.
        threshold: How sure the detector has to be; higher finds fewer transitions. A probability above 0 and below 1
            for the default detector, a difference for content, adaptive and shotdetect.
        types: Report only these transitions: hard, jump, dissolve, fade, wipe; several with commas or options.
        min_length: Drop shots shorter than this; with --merge-short join them to a neighbor.
        start: Start at this time: seconds, M:SS, H:MM:SS, or a frame number of each video, 250f.
        end: Stop at this time.
        output: Write the shots to this file; its ending chooses the format (.csv, .edl, .otio, .fcpxml, .html; a wrong
            one lists all), or FORMAT=FILE names it. thumbnails=FOLDER fills a folder with images of every shot,
            split=FOLDER with the shots as files, exact to the frame. Repeatable.
        limit: Show at most this many shots a video.
    """
    options.check_stretch(start, end)
    check_choice("--timecode", timecode, ("embedded", "zero"))
    targets = _parse_targets(output)
    _check_combinations(context, targets)
    paths, failures = _list_videos(videos)
    exporter = None
    if targets or any(source_of(context, name) != "DEFAULT" for name in _OF_FILES):
        from vidkin.shots import ExportSettings, ShotExporter, find_shot_formats, write_edl

        settings = ExportSettings(
            template=template,
            image_format=cast("ImageFormat", image_format),
            image_size=image_size or None,
            images=images,
            copies=copy,
            quality=quality,
        )
        formats = find_shot_formats(targets)
        if drop_frame and "edl" in formats:
            formats["edl"] = replace(formats["edl"], write=partial(write_edl, drop_frame=True))
        exporter = ShotExporter(targets, paths, formats=formats, settings=settings, table_of=videos)
    used = detector
    if threshold is not None:
        from vidkin.shots import with_threshold

        used = with_threshold(detector, threshold)
    search = {"types": _parse_types(types), "start": start or 0.0, "end": end, "stream": stream}
    at_once = len(paths) > 1 and workers != 1 and (os.cpu_count() or 1) > 1
    dropped_below = None if merge_short else min_length
    printer = ShotPrinter(format, limit, are_several=len(paths) > 1, min_length=dropped_below)
    count = 0
    for detection in _detect_at_once(paths, used, search, workers) if at_once else _detect_each(paths, used, search):
        if isinstance(detection, MediaError):
            failures.append((detection.path, detection.cause))
            continue
        count += 1
        detection = detection if timecode == "embedded" else replace(detection, time_code="")
        if min_length is not None:
            from vidkin.shots import drop_short_shots, merge_short_shots

            detection = (merge_short_shots if merge_short else drop_short_shots)(detection, min_length)
        exported = _export(exporter, detection, show_progress="split" in targets and not at_once)
        failures += exported.failures
        printer.add(detection, exported)
    tables, table_failures = ({}, []) if exporter is None else exporter.export_tables()
    failures += table_failures
    printer.finish(detector=detector, tables=tables, failures=failures)
    if not count and not failures:
        error_line("no videos in these folders; name folders or files with videos")
        raise typer.Exit(Status.NOTHING_USABLE)
    end_with_failures([f"{path}: {cause}" for path, cause in failures], some_usable=count > 0)


def _parse_targets(output: Sequence[Path] | None) -> dict[str, Path]:
    """Where to write each format of files, and images and pieces."""
    if not output:
        return {}
    from vidkin.shots import match_shot_format, shot_format_names

    return options.parse_outputs(output, dict.fromkeys((*shot_format_names(), *_FOLDERS), ()), match_shot_format)


def _parse_types(texts: Sequence[str] | None) -> tuple[Transition, ...]:
    """The transitions to report, from texts such as ``hard,fade``; all of them by default."""
    from vidkin.shots import TRANSITIONS

    words = [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in TRANSITIONS]
    if unknown:
        raise InvalidArgumentError(f"--types must be among {', '.join(TRANSITIONS)}, got {unknown[0]!r}")
    return tuple(name for name in TRANSITIONS if name in words) or TRANSITIONS


def _check_combinations(context: typer.Context, targets: Mapping[str, Path]) -> None:
    """Raise :class:`InvalidArgumentError` if an option was given without the option that it modifies."""
    given = context.params

    def is_typed(option: str) -> bool:
        # In a configuration file it is a preference for when there is something that it changes.
        return bool(given[option]) and source_of(context, option) == "COMMANDLINE"

    if "labels" in targets and given["min_length"] is not None and not given["merge_short"]:
        raise InvalidArgumentError(
            "labels have every shot: use --merge-short with --min-length, or leave out --min-length"
        )
    if is_typed("drop_frame") and "edl" not in targets:
        raise InvalidArgumentError("--drop-frame needs --output FILE.edl, whose time code it changes")
    if given["merge_short"] and given["min_length"] is None:
        raise InvalidArgumentError("--merge-short needs --min-length SECONDS, which says what is short")
    if is_typed("copy") and "split" not in targets:
        raise InvalidArgumentError("--copy needs --output split=FOLDER, where the copied pieces are written")


def _list_videos(arguments: Sequence[Path]) -> tuple[list[str], list[tuple[str, str]]]:
    """The named files, and the videos in named folders; and (path, cause) of unreadable ones."""
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


def _detect_at_once(
    paths: Sequence[str], detector: str, search: Mapping[str, Any], workers: int | None
) -> Iterator[ShotDetection | MediaError]:
    """The result of each video in order; several are read in parallel, and one line shows the progress of all."""
    from vidkin.shots import detect_many

    with meter("videos") as bar:
        for done, detection in enumerate(detect_many(paths, detector, **search, workers=workers), start=1):
            bar.update(done, len(paths))
            yield detection


def _detect_each(
    paths: Sequence[str], detector: str, search: Mapping[str, Any]
) -> Iterator[ShotDetection | MediaError]:
    """The result of each video in order, one after the other, each with its own progress line."""
    from vidkin.shots import detect

    for path in paths:
        detection: ShotDetection | MediaError
        try:
            with meter(os.path.basename(path)) as bar:
                detection = detect(path, detector, **search, on_progress=bar.update if bar.is_shown else None)
        except MediaError as error:
            detection = error
        yield detection


def _export(exporter: ShotExporter | None, detection: ShotDetection, *, show_progress: bool) -> ExportedShots:
    """Write all files of one video."""
    from vidkin.shots import ExportedShots

    if exporter is None:
        return ExportedShots()
    if not show_progress:
        return exporter.export(detection)
    with meter(f"writing {os.path.basename(detection.path)}") as bar:
        return exporter.export(detection, on_progress=bar.update)


class ShotPrinter:
    """Prints the shots of one video after another; formats for programs are printed when all are known.

    Args:
        form: The format.
        limit: Shots of a video that are printed for people, at most.
        are_several: There is more than one video.
        min_length: Seconds of the shortest shot, if shorter ones are left out.
    """

    def __init__(
        self, form: OutputFormat, limit: int | None, *, are_several: bool, min_length: float | None = None
    ) -> None:
        self._form, self._limit, self._min_length = form, limit, min_length
        self._are_several = are_several
        self._count = 0
        self._documents: list[dict[str, Any]] = []
        self._table: ShotTable | None = None
        if form is OutputFormat.TSV:
            from vidkin.shots import ShotTable

            self._table = ShotTable()

    def add(self, detection: ShotDetection, exported: ExportedShots) -> None:
        """Print a video, or keep it for the end."""
        self._count += 1
        pieces = () if exported.split is None else exported.split.pieces
        if self._form is OutputFormat.JSON:
            files = {"outputs": dict(exported.files), "thumbnails": exported.thumbnails, "split": exported.split}
            self._documents.append(detection.to_dict(short=True) | {name: as_json(one) for name, one in files.items()})
        elif self._table is not None:
            self._table.add(detection)
        elif self._form is OutputFormat.PLAIN:
            self._print_lines(detection)
        else:
            self._print_table(detection, exported)
        for name, path in exported.files:
            from vidkin.shots import find_shot_format

            wrote(path, find_shot_format(name).label)
        if exported.thumbnails:
            wrote(exported.thumbnails[0].parent, number(len(exported.thumbnails), "image"))
        if pieces:
            wrote(Path(pieces[0].path).parent, number(len(pieces), "piece"))
        if self._are_several and self._form is OutputFormat.TABLE:
            say("")

    def finish(self, *, detector: str, tables: Mapping[str, Path], failures: Sequence[tuple[str, str]]) -> None:
        """Print which files were kept, and which have the shots of all videos."""
        broken = [{"path": path, "cause": cause} for path, cause in failures]
        document = {"detector": detector, "outputs": tables, "videos": self._documents, "broken": broken}
        print_data(self._form, document, () if self._table is None else self._table.lines())
        for path in tables.values():
            wrote(path, f"the shots of {number(self._count, 'video')}")

    def _print_lines(self, detection: ShotDetection) -> None:
        if not detection.shots:
            note(path_text(detection.path), ": no shot is as long as --min-length", style=None)
        shown = detection.shots[: self._limit]
        width = max((len(shot_words.describe_transition(shot)) for shot in shown), default=0)
        for count, shot in enumerate(shown, start=1):
            times = f"{shot_words.precise_clock(shot.start)} - {shot_words.precise_clock(shot.end)}"
            transition = f"{shot_words.describe_transition(shot):<{width}}  " if width else ""
            say(f"{count:>3}  {times:<19}  {shot.kind:<8}  {transition}", path_text(detection.path))

    def _print_table(self, detection: ShotDetection, exported: ExportedShots) -> None:
        summary = shot_words.describe_shots(detection, min_length=self._min_length)
        say(path_text(detection.path), f": {summary} ({detection.detector})")
        rows = list(shot_words.shot_cells(detection))[: self._limit]
        shown = [at for at, (name, _) in enumerate(shot_words.SHOT_COLUMNS) if is_roomy() or name not in _ROOMY_COLUMNS]
        table(None, [shot_words.SHOT_COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows])
        if len(rows) < len(detection.shots):
            note(f"{number(len(detection.shots) - len(rows), 'more shot')} not shown.")
        for sentence in shot_words.describe_ends(detection):
            note(sentence, style=None)
        if exported.split is not None:
            table(
                None,
                [("piece", "left"), *shot_words.PIECE_COLUMNS],
                [[path_text(piece.path), *shot_words.piece_cells(detection, piece)] for piece in exported.split.pieces],
            )
            for stream in exported.split.left_out:
                note(f"Not in any piece: {stream}", style="yellow")

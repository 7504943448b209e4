"""``vidkin shots``: where videos are cut, and lists, images and files of their shots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from vidkin._base.values import as_json
from vidkin.cli.commands import Status
from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    choose_format,
    end_with_failures,
    error_line,
    meter,
    note,
    path_text,
    plain_text,
    say,
    table,
    write_tsv,
)
from vidkin.cli.options import (
    STANDARD_OUTPUT,
    JsonOption,
    RareDeviceOption,
    check_stretch,
    goes_to_output,
    moment_text,
    open_csv,
)
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.text import clock, number, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.media import SplitReport
    from vidkin.shots import (
        ExportedShots,
        ExportSettings,
        ImageFormat,
        Shot,
        ShotDetection,
        ShotExporter,
        ShotTable,
        Transition,
    )


def parse_types(texts: Sequence[str] | None) -> tuple[Transition, ...]:
    """The transitions to report, from texts such as ``hard,fade``; all of them by default.

    Raises:
        InvalidArgumentError: One is unknown.
    """
    from vidkin.shots import TRANSITIONS

    words = [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in TRANSITIONS]
    if unknown:
        raise InvalidArgumentError(f"--types must be among {', '.join(TRANSITIONS)}, got {unknown[0]!r}")
    return tuple(name for name in TRANSITIONS if name in words) or TRANSITIONS


def parse_exports(texts: Sequence[str] | None) -> dict[str, Path]:
    """Where to write each format, from the values of ``--export``.

    Raises:
        InvalidArgumentError: A format is unknown, or has two files.
    """
    targets: dict[str, Path] = {}
    if not texts:
        return targets
    from vidkin.shots import match_shot_format, shot_format_names

    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or name not in shot_format_names():
            name, rest = match_shot_format(text), text
        if name in targets:
            raise InvalidArgumentError(
                f"--export must name one file of a format, got {os.fspath(targets[name])!r} and {rest!r} for {name}"
            )
        targets[name] = Path(rest)
    return targets


def check_companions(context: typer.Context, targets: Mapping[str, Path]) -> None:
    """Raise :class:`InvalidArgumentError` if an option was given without the one that it changes."""
    given = context.params

    def is_typed(option: str) -> bool:
        # In a configuration file it is a preference for whenever there is something that it changes.
        return bool(given[option]) and _source(context, option) == "COMMANDLINE"

    if is_typed("drop_frame") and "edl" not in targets:
        raise InvalidArgumentError("--drop-frame needs --export FILE.edl, whose time code it changes")
    if given["merge_short"] and given["min_length"] is None:
        raise InvalidArgumentError("--merge-short needs --min-length SECONDS, which says what is short")
    if is_typed("copy") and given["split"] is None:
        raise InvalidArgumentError("--copy needs --split FOLDER, where the copied pieces are written")


def _source(context: typer.Context, option: str) -> str:
    """Where an option has its value from: ``COMMANDLINE``, ``DEFAULT_MAP`` (the configuration file) or ``DEFAULT``."""
    source = context.get_parameter_source(option)
    return "DEFAULT" if source is None else source.name


# Options that only matter to files made from shots: without either, nothing that writes files is loaded.
_OF_FILES = ("template", "images", "image_size", "image_format", "quality")


# Seconds by which a piece begins before its first shot are shown from here on.
_MIN_EARLY = 0.05


class ShotPrinter:
    """Prints the shots of one video after another; formats for programs come when all are known.

    Args:
        form: How.
        limit: Shots of a video that are printed for people, at most.
        csv_to_output: Print CSV instead.
        are_several: There is more than one video.
        min_length: Seconds of the shortest shot, if shorter ones are left out.
    """

    def __init__(
        self,
        form: OutputFormat,
        limit: int | None,
        *,
        csv_to_output: bool,
        are_several: bool,
        min_length: float | None = None,
    ) -> None:
        self._form, self._limit, self._min_length = form, limit, min_length
        self._are_several = are_several
        self._described: list[dict[str, Any]] = []
        self._table: ShotTable | None = None
        if csv_to_output or form is OutputFormat.TSV:
            from vidkin.shots import ShotTable

            self._table = ShotTable()
        self._count = 0

    def add(self, detection: ShotDetection, exported: ExportedShots) -> None:
        """Print a video, or keep it for the end."""
        self._count += 1
        # Tables say it in their heading; the others would be silent.
        if not detection.shots and self._form is OutputFormat.PLAIN:
            note(path_text(detection.path).append(": no shot is as long as --min-length"), style=None)
        if self._form is OutputFormat.JSON:
            files = {
                "files": as_json(dict(exported.files)),
                "thumbnails": as_json(exported.thumbnails),
                "split": as_json(exported.split),
            }
            self._described.append(detection.to_dict() | files)
        elif self._table is not None:
            self._table.add(detection)
        elif self._form is OutputFormat.PLAIN:
            width = max((len(_extent(shot)) for shot in detection.shots[: self._limit]), default=0)
            for place, shot in enumerate(detection.shots[: self._limit], start=1):
                times = f"{_precise(shot.start)} - {_precise(shot.end)}"
                extent = f"{_extent(shot):<{width}}  " if width else ""
                words = plain_text(f"{place:>3}  {times:<19}  {shot.kind:<8}  {extent}")
                say(words.append_text(path_text(detection.path)))
        else:
            _print_shots(detection, exported, self._limit, self._min_length)
            if self._are_several:
                say("")

    def finish(self, *, detector: str, csv_file: Path | None, failures: Sequence[tuple[str, str]]) -> None:
        """Print what was kept, and the file of CSV."""
        if self._form is OutputFormat.JSON:
            broken = [{"path": path, "cause": cause} for path, cause in failures]
            described = {"videos": self._described, "broken": broken}
            print_json({"detector": detector, "csv": csv_file, **described})
        elif self._table is not None and self._form is OutputFormat.TSV:
            for line in self._table.lines():
                write_tsv(line)
        elif self._table is not None:
            with open_csv(STANDARD_OUTPUT) as file:
                self._table.write_to(file)
        elif csv_file is not None:
            say(path_text(csv_file).append(f": the shots of {number(self._count, 'video')}"))


def _print_shots(
    detection: ShotDetection, exported: ExportedShots, limit: int | None, min_length: float | None
) -> None:
    """Print the shots of a video, at most ``limit``, and the files made of them."""
    gradual = sum(cut.is_gradual for cut in detection.cuts)
    jumps = sum(cut.kind == "jump" for cut in detection.cuts)
    counts = [
        number(len(detection.shots), "shot"),
        number(len(detection.cuts) - gradual - jumps, "hard cut"),
        *([number(jumps, "jump")] if jumps else []),
        *([number(gradual, "gradual transition")] if gradual else []),
    ]
    if min_length is None:
        length = detection.shots[-1].end - detection.shots[0].start if detection.shots else 0.0
        counts[-1] += f" in {clock(length)}"
    else:
        counts[0] += f" of at least {min_length:g} s"
    say(path_text(detection.path).append(f": {', '.join(counts)} ({detection.detector})"))
    rows: list[list[str | Text]] = []
    for place, shot in enumerate(detection.shots[:limit], start=1):
        first = shot.kind == "start"
        rows.append(
            [
                str(place),
                _precise(shot.start),
                _precise(shot.end),
                f"{shot.end - shot.start:.2f}",
                str(shot.start_frame),
                "" if first else shot.kind,
                _extent(shot),
                "" if first else f"{shot.confidence:.2f}",
                "" if shot.critical is None else f"{shot.critical:.2f}",
            ]
        )
    table(None, _COLUMNS, rows)
    if len(rows) < len(detection.shots):
        note(f"{number(len(detection.shots) - len(rows), 'more shot')} not shown.")
    for name, path in exported.files:
        from vidkin.shots import find_shot_format

        say(path_text(path).append(f": {find_shot_format(name).label}"))
    if exported.thumbnails:
        say(path_text(exported.thumbnails[0].parent).append(f": {number(len(exported.thumbnails), 'image')}"))
    if exported.split is not None:
        _print_pieces(detection, exported.split)


def _print_pieces(detection: ShotDetection, report: SplitReport) -> None:
    """Each piece, the shots in it, and by how much it begins before its first shot."""
    rows: list[list[str | Text]] = []
    for piece in report.pieces:
        parts = [part + 1 for part in piece.parts]
        numbers = "" if not parts else str(parts[0]) if len(parts) == 1 else f"{parts[0]} - {parts[-1]}"
        early = detection.shots[piece.parts[0]].start - piece.start if piece.parts else 0.0
        rows.append(
            [
                path_text(piece.path),
                numbers,
                _precise(piece.start),
                _precise(piece.end),
                f"{early:.2f} s" if early >= _MIN_EARLY else "",
                str(piece.encoded) if piece.encoded else "",
            ]
        )
    table(None, _PIECE_COLUMNS, rows)
    for stream in report.left_out:
        note(f"Not in any piece: {stream}", style="yellow")


def _extent(shot: Shot) -> str:
    """From when to when a shot comes in; "" for one that does from one frame to the next."""
    if shot.transition_start == shot.transition_end:
        return ""
    return f"{_precise(shot.transition_start)} - {_precise(shot.transition_end)}"


def _precise(seconds: float) -> str:
    """Seconds as ``m:ss.ss``: two frames of any usual rate never look the same."""
    return clock(seconds, digits=2)


_COLUMNS = (
    ("#", "right"),
    ("start", "right"),
    ("end", "right"),
    ("seconds", "right"),
    ("frame", "right"),
    ("cut in by", "left"),
    ("transition", "left"),
    ("confidence", "right"),
    ("critical", "right"),
)

_PIECE_COLUMNS = (
    ("piece", "left"),
    ("shots", "right"),
    ("begins", "right"),
    ("ends", "right"),
    ("before its shot", "right"),
    ("encoded frames", "right"),
)


class ShotSearch(NamedTuple):
    """The options that apply to every video.

    Attributes:
        detector: Name of the detector.
        types: Transitions to report.
        start: Where to begin: seconds, or text that `vidkin.shots.detect` reads.
        end: Where to end; None is the end of the video.
        min_length: Seconds of the shortest shot; None for any.
        merge_short: Shorter shots are joined to a neighbor; otherwise they are left out.
    """

    detector: str
    types: tuple[Transition, ...]
    start: float | str
    end: float | str | None
    min_length: float | None
    merge_short: bool

    @staticmethod
    def is_parallel(paths: Sequence[str], workers: int | None) -> bool:
        """Whether several videos are read at once: then one bar shows the progress of all."""
        return len(paths) > 1 and workers != 1 and (os.cpu_count() or 1) > 1

    def run(self, paths: Sequence[str], workers: int | None) -> Iterator[ShotDetection | MediaError]:
        """The result of each video in order: one after the other with its own progress, or several at once."""
        from vidkin.shots import detect, detect_many

        if self.is_parallel(paths, workers):
            many = detect_many(paths, self.detector, types=self.types, start=self.start, end=self.end, workers=workers)
            with meter("videos") as bar:
                for done, detection in enumerate(many):
                    bar.update(done + 1, len(paths))
                    yield self._without_short(detection)
            return
        for path in paths:
            try:
                with meter(os.path.basename(path)) as bar:
                    detection = detect(
                        path,
                        self.detector,
                        types=self.types,
                        start=self.start,
                        end=self.end,
                        on_progress=bar.update if bar.is_shown else None,
                    )
            except MediaError as error:
                yield error
            else:
                yield self._without_short(detection)

    def _without_short(self, detection: ShotDetection | MediaError) -> ShotDetection | MediaError:
        from vidkin.shots import drop_short_shots, merge_short_shots

        if self.min_length is None or isinstance(detection, MediaError):
            return detection
        change = merge_short_shots if self.merge_short else drop_short_shots
        return change(detection, self.min_length)


def shots(
    context: typer.Context,
    videos: Annotated[list[Path], typer.Argument(help="Videos, and folders of videos.", metavar="VIDEO...")],
    detector: Annotated[
        str,
        typer.Option("--detector", "-d", help="Name of a shot detector, or the folder of a trained model."),
    ] = "default",
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            help="How sure the detector has to be; higher finds fewer transitions. A probability above 0 and below 1 "
            "for the default detector, a difference for content, adaptive and shotdetect.",
            show_default="as trained",
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--types",
            "-t",
            help="Report only these transitions: hard, jump, dissolve, fade, wipe; several with commas or options.",
            show_default="all",
        ),
    ] = None,
    min_length: Annotated[
        float | None,
        typer.Option(
            "--min-length",
            help="Leave out shots of fewer seconds.",
            min=0,
            metavar="SECONDS",
            show_default="none",
        ),
    ] = None,
    merge_short: Annotated[
        bool,
        typer.Option(
            "--merge-short",
            help="Join shots shorter than --min-length to a neighbor instead of leaving them out.",
        ),
    ] = False,
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            parser=moment_text,
            help="Start at this time: seconds, M:SS, H:MM:SS, or a frame number of each video, 250f.",
            metavar="TIME",
            show_default="its beginning",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--end", parser=moment_text, help="Stop at this time.", metavar="TIME", show_default="its end"),
    ] = None,
    export: Annotated[
        list[str] | None,
        typer.Option(
            "--export",
            help="Write the shots to this file; its ending chooses the format (.csv, .edl, .otio, .html, .png; a wrong "
            "one lists all). May be repeated. FORMAT=PATH names the format; csv=- is standard output.",
            metavar="FILE",
        ),
    ] = None,
    split: Annotated[
        Path | None,
        typer.Option(
            "--split",
            help="Write every shot as a file in this folder, exact to the frame: only frames that cannot be copied are "
            "encoded.",
        ),
    ] = None,
    copy: Annotated[
        bool,
        typer.Option(
            "--copy",
            help="With --split: write without encoding; pieces then begin at key frames, before their shots.",
        ),
    ] = False,
    thumbnails: Annotated[
        Path | None, typer.Option("--thumbnails", help="Save images of every shot to this folder.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Show at most this many shots a video.", show_default="all"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-w", min=1, help="Processes for several videos.", show_default="one per core"),
    ] = None,
    format: FormatOption = OutputFormat.TABLE,
    json: JsonOption = False,
    drop_frame: Annotated[
        bool,
        typer.Option("--drop-frame", help="Drop-frame time code in the EDL (29.97 and 59.94 only).", hidden=True),
    ] = False,
    quality: Annotated[
        int,
        typer.Option(
            "--quality",
            help="Quality of encoded frames, 1 is best (the CRF of x264).",
            min=1,
            max=51,
            hidden=True,
        ),
    ] = 18,
    images: Annotated[
        int,
        typer.Option("--images", help="Images of each shot in --thumbnails, spread over it.", min=1, hidden=True),
    ] = 1,
    image_size: Annotated[
        int,
        typer.Option(
            "--image-size",
            help="Pixels at the shorter side of these images; 0 keeps the video's size.",
            min=0,
            hidden=True,
        ),
    ] = 160,
    image_format: Annotated[
        str, typer.Option("--image-format", help="Format of these images: jpg, png, webp.", hidden=True)
    ] = "jpg",
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            help="Names of pieces and images, with the fields name, shot, shots, image, kind, start, end, start_frame "
            "and end_frame.",
            show_default="{name}-{shot:03d}",
            hidden=True,
        ),
    ] = None,
    device: RareDeviceOption = "auto",
) -> None:
    """Find the shots of videos: where each begins and ends, and how it is cut in.

    With several videos, --export FORMAT=FOLDER fills a folder with files that are named after the videos; a table as
    CSV has the shots of all. Shots have the same numbers in every list and in the names of pieces and images. Defaults
    of your own and rare options (template, images, image-size, image-format, quality, drop-frame, device) go into
    the section [shots] of the configuration file (see the guide).
    """
    check_stretch(start, end)
    targets = parse_exports(export)
    check_companions(context, targets)
    form = choose_format(format, json=json)
    to_output = "csv" in targets and goes_to_output(targets["csv"], form)
    if to_output:
        del targets["csv"]
    targets |= {name: path for name, path in (("thumbnails", thumbnails), ("split", split)) if path}
    paths, failures = _list_videos(videos)
    exporter = None
    if targets or any(_source(context, name) != "DEFAULT" for name in _OF_FILES):
        from vidkin.shots import ExportSettings

        settings = ExportSettings(
            template=template,
            image_format=cast("ImageFormat", image_format),
            image_size=image_size or None,
            images=images,
            copies=copy,
            quality=quality,
        )
        exporter = _make_exporter(targets, paths, settings, table_of=videos, drop_frame=drop_frame)
    opened = detector
    if threshold is not None:
        from vidkin.shots import with_threshold

        opened = with_threshold(detector, threshold)
    search = ShotSearch(
        detector=opened,
        types=parse_types(types),
        start=0.0 if start is None else start,
        end=end,
        min_length=min_length,
        merge_short=merge_short,
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
        exported = _export(exporter, detection, show=split is not None and not search.is_parallel(paths, workers))
        failures += exported.failures
        printer.add(detection, exported)
    csv_file = None
    if exporter is not None:
        csv_file, csv_failures = exporter.export_table()
        failures += csv_failures
    printer.finish(detector=detector, csv_file=csv_file, failures=failures)
    if not count and not failures:
        error_line("no videos in these folders; name folders or files with videos")
        raise typer.Exit(Status.NOTHING_USABLE)
    end_with_failures([f"{path}: {cause}" for path, cause in failures], some_usable=count > 0)


def _export(exporter: ShotExporter | None, detection: ShotDetection, *, show: bool) -> ExportedShots:
    """All files of one video, with a progress bar unless another one is on the screen."""
    from vidkin.shots import ExportedShots

    if exporter is None:
        return ExportedShots()
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
    targets: Mapping[str, Path],
    paths: Sequence[str],
    settings: ExportSettings,
    *,
    table_of: Sequence[Path],
    drop_frame: bool,
) -> ShotExporter:
    """The exporter, with drop-frame time code in the EDL if that is wanted."""
    from vidkin.shots import ShotExporter, find_shot_formats, write_edl

    formats = find_shot_formats(targets)
    if drop_frame and "edl" in formats:
        formats["edl"] = replace(formats["edl"], write=partial(write_edl, drop_frame=True))
    return ShotExporter(targets, paths, formats=formats, settings=settings, table_of=table_of)

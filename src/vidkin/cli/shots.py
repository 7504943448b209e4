"""``vidkin shots``: where videos are cut, and lists, images and files of their shots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from vidkin._base.values import as_json, check_choice
from vidkin.cli.commands import Status
from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    end_with_failures,
    error_line,
    meter,
    note,
    path_text,
    plain_text,
    say,
    table,
    write_tsv,
    wrote,
)
from vidkin.cli.options import (
    DeviceOption,
    WorkersOption,
    check_stretch,
    moment_text,
    output_option,
    parse_outputs,
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


def check_companions(context: typer.Context, targets: Mapping[str, Path]) -> None:
    """Raise :class:`InvalidArgumentError` if an option was given without the one that it changes."""
    given = context.params

    def is_typed(option: str) -> bool:
        # In a configuration file it is a preference for whenever there is something that it changes.
        return bool(given[option]) and _source(context, option) == "COMMANDLINE"

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


def _source(context: typer.Context, option: str) -> str:
    """Where an option has its value from: ``COMMANDLINE``, ``DEFAULT_MAP`` (the configuration file) or ``DEFAULT``."""
    source = context.get_parameter_source(option)
    return "DEFAULT" if source is None else source.name


# What --output fills a folder with.
_FOLDERS = ("thumbnails", "split")
# Options that only matter to files made from shots: without either, nothing that writes files is loaded.
_OF_FILES = ("template", "images", "image_size", "image_format", "quality")


# Stretches of black that are listed below a table.
_MOST_BLACK = 10

# Seconds by which a piece begins before its first shot are shown from here on.
_MIN_EARLY = 0.05


class ShotPrinter:
    """Prints the shots of one video after another; formats for programs come when all are known.

    Args:
        form: How.
        limit: Shots of a video that are printed for people, at most.
        are_several: There is more than one video.
        min_length: Seconds of the shortest shot, if shorter ones are left out.
    """

    def __init__(
        self,
        form: OutputFormat,
        limit: int | None,
        *,
        are_several: bool,
        min_length: float | None = None,
    ) -> None:
        self._form, self._limit, self._min_length = form, limit, min_length
        self._are_several = are_several
        self._described: list[dict[str, Any]] = []
        self._table: ShotTable | None = None
        if form is OutputFormat.TSV:
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
                "outputs": as_json(dict(exported.files)),
                "thumbnails": as_json(exported.thumbnails),
                "split": as_json(exported.split),
            }
            self._described.append(detection.to_dict(short=True) | files)
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
        for name, path in exported.files:
            from vidkin.shots import find_shot_format

            wrote(path, find_shot_format(name).label)
        if exported.thumbnails:
            wrote(exported.thumbnails[0].parent, number(len(exported.thumbnails), "image"))
        if exported.split is not None and exported.split.pieces:
            folder = Path(exported.split.pieces[0].path).parent
            wrote(folder, number(len(exported.split.pieces), "piece"))
        if self._are_several and self._form is OutputFormat.TABLE:
            say("")

    def finish(self, *, detector: str, tables: Mapping[str, Path], failures: Sequence[tuple[str, str]]) -> None:
        """Print what was kept, and the files that have the shots of all videos."""
        if self._form is OutputFormat.JSON:
            broken = [{"path": path, "cause": cause} for path, cause in failures]
            print_json({"detector": detector, "outputs": tables, "videos": self._described, "broken": broken})
        elif self._table is not None:
            for line in self._table.lines():
                write_tsv(line)
        for path in tables.values():
            wrote(path, f"the shots of {number(self._count, 'video')}")


def _print_shots(
    detection: ShotDetection, exported: ExportedShots, limit: int | None, min_length: float | None
) -> None:
    """Print the shots of a video, at most ``limit``, and the files made of them."""
    # What the table shows: a fade at an end, or a cut to black before a fade from it, opens no shot.
    kinds = [shot.kind for shot in detection.shots if shot.kind != "start"]
    jumps = kinds.count("jump")
    gradual = len(kinds) - jumps - kinds.count("hard")
    counts = [
        number(len(detection.shots), "shot"),
        number(kinds.count("hard"), "hard cut"),
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
        black = detection.black_seconds(shot)
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
                f"{black:.2f}" if black else "",
            ]
        )
    table(None, _COLUMNS, rows)
    if len(rows) < len(detection.shots):
        note(f"{number(len(detection.shots) - len(rows), 'more shot')} not shown.")
    for remark in _remarks(detection):
        note(remark, style=None)
    if exported.split is not None:
        _print_pieces(detection, exported.split)


def _remarks(detection: ShotDetection) -> Iterator[str]:
    """What the table of shots does not show: a fade at the end, stretches of black, sound before the first frame."""
    last = len(detection.frame_times) - 1
    for cut in detection.cuts[-1:]:
        if cut.kind == "fade" and cut.end_frame >= last:
            yield f"It ends with a fade from {_precise(cut.start)} to {_precise(cut.end)}."
    if detection.black:
        spans = [f"{_precise(one.start)} - {_precise(one.end)}" for one in detection.black[:_MOST_BLACK]]
        more = len(detection.black) - len(spans)
        yield f"Black: {', '.join(spans)}{f' and {more} more' if more else ''}."
    if detection.offset * float(detection.clock().rate) >= 0.5:
        yield (
            f"The picture begins {detection.offset:.2f} s after the start of the file: times count from the picture "
            "here, and from the start of the file in what is exported."
        )


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
    ("black", "right"),
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
        stream: Number of the video's stream in the files; None for the first.
        time_code: Whether the time code of the files counts.
    """

    detector: str
    types: tuple[Transition, ...]
    start: float | str
    end: float | str | None
    min_length: float | None
    merge_short: bool
    stream: int | None = None
    time_code: bool = True

    @staticmethod
    def is_parallel(paths: Sequence[str], workers: int | None) -> bool:
        """Whether several videos are read at once: then one bar shows the progress of all."""
        return len(paths) > 1 and workers != 1 and (os.cpu_count() or 1) > 1

    def run(self, paths: Sequence[str], workers: int | None) -> Iterator[ShotDetection | MediaError]:
        """The result of each video in order: one after the other with its own progress, or several at once."""
        from vidkin.shots import detect, detect_many

        if self.is_parallel(paths, workers):
            many = detect_many(
                paths,
                self.detector,
                types=self.types,
                start=self.start,
                end=self.end,
                stream=self.stream,
                workers=workers,
            )
            with meter("videos") as bar:
                for done, detection in enumerate(many):
                    bar.update(done + 1, len(paths))
                    yield self._settle(detection)
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
                        stream=self.stream,
                        on_progress=bar.update if bar.is_shown else None,
                    )
            except MediaError as error:
                yield error
            else:
                yield self._settle(detection)

    def _settle(self, detection: ShotDetection | MediaError) -> ShotDetection | MediaError:
        from vidkin.shots import drop_short_shots, merge_short_shots

        if not (self.time_code or isinstance(detection, MediaError)):
            detection = replace(detection, time_code="")
        if self.min_length is None or isinstance(detection, MediaError):
            return detection
        change = merge_short_shots if self.merge_short else drop_short_shots
        return change(detection, self.min_length)


def shots(
    context: typer.Context,
    videos: Annotated[list[Path], typer.Argument(help="Videos, and folders of videos.", metavar="VIDEO")],
    detector: Annotated[
        str,
        typer.Option("--detector", "-d", help="Name of a shot detector, or the folder of a trained model."),
    ] = "default",
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            "-t",
            help="How sure the detector has to be; higher finds fewer transitions. A probability above 0 and below 1 "
            "for the default detector, a difference for content, adaptive and shotdetect.",
            show_default="as trained",
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--types",
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
    stream: Annotated[int | None, typer.Option("--stream", min=0, hidden=True)] = None,
    output: Annotated[
        list[Path] | None,
        output_option(
            "Write the shots to this file; its ending chooses the format (.csv, .edl, .otio, .fcpxml, .html; a "
            "wrong one lists all), or FORMAT=FILE names it. thumbnails=FOLDER fills a folder with images of every "
            "shot, split=FOLDER with the shots as files, exact to the frame."
        ),
    ] = None,
    copy: Annotated[bool, typer.Option("--copy", hidden=True)] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Show at most this many shots a video.", show_default="all"),
    ] = None,
    format: FormatOption = OutputFormat.TABLE,
    workers: WorkersOption = None,
    timecode: Annotated[str, typer.Option("--timecode", hidden=True)] = "embedded",
    drop_frame: Annotated[bool, typer.Option("--drop-frame", hidden=True)] = False,
    quality: Annotated[int, typer.Option("--quality", min=1, max=51, hidden=True)] = 18,
    images: Annotated[int, typer.Option("--images", min=1, hidden=True)] = 1,
    image_size: Annotated[int, typer.Option("--image-size", min=0, hidden=True)] = 160,
    image_format: Annotated[str, typer.Option("--image-format", hidden=True)] = "jpg",
    template: Annotated[str | None, typer.Option("--template", hidden=True)] = None,
    device: DeviceOption = "auto",
) -> None:
    """Find the shots of videos: where each begins and ends, and how it is cut in.

    With several videos, --output FORMAT=FOLDER fills a folder with files that are named after the videos; a table as
    CSV has the shots of all. Shots have the same numbers in every list and in the names of pieces and images. Defaults
    of your own and rare options (in the guide) go into the section [shots] of the configuration file.
    """
    check_stretch(start, end)
    check_choice("--timecode", timecode, ("embedded", "zero"))
    targets = _parse_targets(output)
    check_companions(context, targets)
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
        stream=stream,
        time_code=timecode == "embedded",
    )
    printer = ShotPrinter(
        format,
        limit,
        are_several=len(paths) > 1,
        min_length=None if merge_short else min_length,
    )
    count = 0
    for detection in search.run(paths, workers):
        if isinstance(detection, MediaError):
            failures.append((detection.path, detection.cause))
            continue
        count += 1
        exported = _export(exporter, detection, show="split" in targets and not search.is_parallel(paths, workers))
        failures += exported.failures
        printer.add(detection, exported)
    tables: dict[str, Path] = {}
    if exporter is not None:
        tables, table_failures = exporter.export_tables()
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

    return parse_outputs(output, dict.fromkeys((*shot_format_names(), *_FOLDERS), ()), match_shot_format)


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

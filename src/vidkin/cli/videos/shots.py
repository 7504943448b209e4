"""``vidkin shots``: where videos are cut, and lists, images and files of their shots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from vidkin.cli.console import error_line, meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.cli.options import JsonOption
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.json_values import as_json, print_json
from vidkin.rendering.text import clock, number

if TYPE_CHECKING:
    from vidkin.media import SplitReport
    from vidkin.shots import ExportedShots, ShotDetection, ShotExporter, Transition

__all__ = ["shots"]

# Seconds by which a piece begins before its first shot are shown from here on.
_MIN_EARLY = 0.05


def shots(
    videos: Annotated[list[Path], typer.Argument(help="Videos, and folders of videos.", metavar="VIDEO...")],
    detector: Annotated[
        str,
        typer.Option("--detector", "-d", help="Name of a shot detector, or the folder of a trained model."),
    ] = "default",
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the shots of all videos as CSV.")] = None,
    edl: Annotated[Path | None, typer.Option("--edl", help="Write an edit decision list (CMX 3600).")] = None,
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
    thumbnails: Annotated[
        Path | None, typer.Option("--thumbnails", help="Save an image of every shot to this folder.")
    ] = None,
    split: Annotated[
        Path | None,
        typer.Option(
            "--split", help="Split into this folder without re-encoding; pieces begin at key frames."
        ),
    ] = None,
    drop_frame: Annotated[
        bool, typer.Option("--drop-frame", help="Drop-frame time code in the EDL (29.97 and 59.94 only).")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", min=1, help="Show at most this many shots a video.", show_default="all"
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--types",
            "-t",
            help="Report only these transitions: hard, dissolve, fade, wipe; several with commas or options.",
            show_default="all",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", "-w", min=1, help="Processes for several videos.", show_default="one per core"
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find the shots of videos: where each begins and ends, and how it is cut in.

    With several videos, options that write a file take a folder; the files in it are named after the videos.
    """
    if drop_frame and edl is None:
        raise InvalidArgumentError("--drop-frame needs --edl FILE, whose time code it changes")
    targets = {
        "csv": csv,
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
    exporter = _make_exporter(targets, paths, drop_frame=drop_frame)
    detections: list[ShotDetection] = []
    described: list[dict[str, Any]] = []
    for detection in _detect(paths, detector, _parse_types(types), workers):
        if isinstance(detection, MediaError):
            failures.append((detection.path, detection.cause))
            continue
        exported = exporter.export(detection)
        failures += exported.failures
        detections.append(detection)
        if json:
            described.append(_as_json(detection, exported))
        else:
            _print(detection, exported, limit)
            if len(paths) > 1:
                say("")
    csv_file, csv_failures = exporter.export_table(detections)
    failures += csv_failures
    if json:
        broken = [{"path": path, "cause": cause} for path, cause in failures]
        print_json({"detector": detector, "csv": csv_file, "videos": described, "broken": broken})
    elif csv_file is not None:
        say(path_text(csv_file).append(f": the shots of {number(len(detections), 'video')}"))
    for path, cause in failures:
        error_line(f"{path}: {cause}")
    if not detections and not failures:
        error_line("no videos in these folders; name folders or files with videos")
    if not detections:
        raise typer.Exit(Status.NOTHING_USABLE)
    if failures:
        raise typer.Exit(Status.SOME_FAILED)


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
    targets: Mapping[str, Path | None], paths: Sequence[str], *, drop_frame: bool
) -> ShotExporter:
    """The exporter with all formats of shots, and the plot of the curve."""
    from vidkin.rendering.figures import require_picture_name
    from vidkin.rendering.pictures import draw_curve
    from vidkin.shots import SHOT_FORMATS, ShotExporter, ShotFormat, write_edl

    formats = {**SHOT_FORMATS, "plot": ShotFormat(".png", draw_curve, check=require_picture_name)}
    formats["edl"] = replace(formats["edl"], write=partial(write_edl, drop_frame=drop_frame))
    return ShotExporter(
        {name: path for name, path in targets.items() if path is not None}, paths, formats=formats
    )


def _parse_types(texts: Sequence[str] | None) -> tuple[Transition, ...]:
    """The transitions to report, from texts such as ``hard,fade``; all of them by default."""
    from vidkin.shots import TRANSITIONS

    words = [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in TRANSITIONS]
    if unknown:
        raise InvalidArgumentError(f"--types must be among {', '.join(TRANSITIONS)}, got {unknown[0]!r}")
    return tuple(name for name in TRANSITIONS if name in words) or TRANSITIONS


def _detect(
    paths: Sequence[str], detector: str, types: tuple[Transition, ...], workers: int | None
) -> Iterator[ShotDetection | MediaError]:
    """The result of each video in order: one after the other with its own progress, or several at once."""
    from vidkin.shots import detect, detect_many

    if len(paths) > 1 and workers != 1 and (os.cpu_count() or 1) > 1:
        with meter("videos") as bar:
            for done, detection in enumerate(detect_many(paths, detector, types=types, workers=workers)):
                bar.update(done + 1, len(paths))
                yield detection
        return
    for path in paths:
        try:
            with meter(os.path.basename(path)) as bar:
                detection = detect(path, detector, types=types, on_progress=bar.update)
        except MediaError as error:
            yield error
        else:
            yield detection


def _as_json(detection: ShotDetection, exported: ExportedShots) -> dict[str, Any]:
    from vidkin.shots import detection_as_dict

    return {
        **detection_as_dict(detection),
        "files": {name: as_json(path) for name, path in exported.files},
        "thumbnails": as_json(exported.thumbnails),
        "split": as_json(exported.split),
    }


def _print(detection: ShotDetection, exported: ExportedShots, limit: int | None) -> None:
    gradual = sum(cut.is_gradual for cut in detection.cuts)
    counts = [
        number(len(detection.shots), "shot"),
        number(len(detection.cuts) - gradual, "hard cut"),
        *([number(gradual, "gradual transition")] if gradual else []),
    ]
    length = clock(detection.shots[-1].end) if detection.shots else clock(0)
    say(path_text(detection.path).append(f": {', '.join(counts)} in {length} ({detection.detector})"))
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
                "" if first else f"{shot.confidence:.2f}",
                "" if shot.critical is None else f"{shot.critical:.2f}",
            ]
        )
    table(None, _COLUMNS, rows)
    if len(rows) < len(detection.shots):
        note(f"{number(len(detection.shots) - len(rows), 'more shot')} not shown.")
    for name, path in exported.files:
        say(path_text(path).append(f": {_DESCRIPTIONS[name]}"))
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
            ]
        )
    table(None, _PIECE_COLUMNS, rows)
    for stream in report.left_out:
        note(f"Not in any piece: {stream}", style="yellow")


def _precise(seconds: float) -> str:
    """Seconds as ``m:ss.ss``: two frames of any usual rate never look the same."""
    hundredths = int(seconds * 100 + 0.5 + 1e-9)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest // 100:02d}.{rest % 100:02d}"
    return f"{hours}:{minutes:02d}:{tail}" if hours else f"{minutes}:{tail}"


_COLUMNS = (
    ("#", "right"),
    ("start", "right"),
    ("end", "right"),
    ("seconds", "right"),
    ("frame", "right"),
    ("cut in by", "left"),
    ("confidence", "right"),
    ("critical", "right"),
)
_PIECE_COLUMNS = (
    ("piece", "left"),
    ("shots", "right"),
    ("begins", "right"),
    ("ends", "right"),
    ("before its shot", "right"),
)
_DESCRIPTIONS = {
    "edl": "edit decision list",
    "otio": "OpenTimelineIO timeline",
    "chapters": "chapters",
    "stats": "the curve as a table",
    "plot": "the curve as an image",
    "html": "contact sheet",
}

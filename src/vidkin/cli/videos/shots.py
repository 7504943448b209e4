"""``vidkin shots``: where videos are cut, and lists, pictures and files of their shots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from vidkin.cli.console import error_line, meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.cli.options import JsonOption
from vidkin.cli.videos.shot_files import ShotFiles, Written
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.json_values import as_json, print_json
from vidkin.rendering.text import clock, number

if TYPE_CHECKING:
    from vidkin.shots import Cut, Shot, ShotDetection, Transition

__all__ = ["shots"]

_SHOWN_ENDS = 0.05


def shots(
    videos: Annotated[list[Path], typer.Argument(help="Videos, and folders of them.", metavar="VIDEO...")],
    detector: Annotated[
        str,
        typer.Option(
            "--detector", "-d", help="What finds the cuts: a name, or the folder of a trained model."
        ),
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
        Path | None,
        typer.Option("--html", help="Write a contact sheet: a page with a picture of every shot."),
    ] = None,
    thumbnails: Annotated[
        Path | None, typer.Option("--thumbnails", help="Save a picture of every shot into this folder.")
    ] = None,
    split: Annotated[
        Path | None,
        typer.Option(
            "--split", help="Split into this folder without encoding anew; pieces begin at key frames."
        ),
    ] = None,
    drop_frame: Annotated[
        bool, typer.Option("--drop-frame", help="Drop-frame time code in the EDL (29.97 and 59.94 only).")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Show at most so many shots a video.", show_default="all"),
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
            "--workers", "-w", min=1, help="Processes for several videos.", show_default="one a core"
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find the shots of videos: where each begins and ends, and how it is cut in.

    With several videos the options that write a file take a folder; the files in it are named after the videos.
    """
    paths, failures = _videos(videos)
    files = ShotFiles(
        csv=csv,
        edl=edl,
        otio=otio,
        chapters=chapters,
        stats=stats,
        plot=plot,
        html=html,
        thumbnails=thumbnails,
        split=split,
        drop_frame=drop_frame,
        sources=tuple(paths),
    )
    files.check()
    found: list[ShotDetection] = []
    described: list[dict[str, Any]] = []
    for detection in _detect(paths, detector, _transitions(types), workers):
        if isinstance(detection, MediaError):
            failures.append((detection.path, detection.cause))
            continue
        written = files.write(detection)
        failures += written.failures
        found.append(detection)
        if json:
            described.append(_as_json(detection, written))
        else:
            _print(detection, written, limit, several=len(paths) > 1)
    table_of_all, unwritten = files.write_csv(found)
    failures += unwritten
    if json:
        print_json(
            {
                "detector": detector,
                "csv": table_of_all,
                "videos": described,
                "broken": [{"path": path, "cause": cause} for path, cause in failures],
            }
        )
    elif table_of_all is not None:
        say(path_text(table_of_all).append(f": the shots of {number(len(found), 'video')}"))
    _leave(failures, bool(found))


def _videos(given: Sequence[Path]) -> tuple[list[str], list[tuple[str, str]]]:
    """Files as they were named, folders by the videos in them; and what could not be looked at."""
    paths: list[str] = []
    problems: list[tuple[str, str]] = []
    for path in given:
        if os.path.isdir(path):  # False too for names that no system allows
            from vidkin.index import scan

            listed = scan([path])
            paths += [file.path for file in listed.files]
            problems += listed.problems
        else:
            paths.append(os.fspath(path))
    return list(dict.fromkeys(paths)), problems


def _transitions(given: Sequence[str] | None) -> tuple[Transition, ...]:
    from vidkin.shots import TRANSITIONS

    words = [word.strip() for text in given or () for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in TRANSITIONS]
    if unknown:
        raise InvalidArgumentError(f"--types must be among {', '.join(TRANSITIONS)}, got {unknown[0]!r}")
    return tuple(name for name in TRANSITIONS if name in words) or TRANSITIONS


def _detect(
    paths: Sequence[str], detector: str, types: tuple[Transition, ...], workers: int | None
) -> Iterator[ShotDetection | MediaError]:
    """What was found in each video, in their order: one after the other with its progress, or several at once."""
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


def _print(detection: ShotDetection, written: Written, limit: int | None, *, several: bool) -> None:
    hard = sum(cut.kind == "hard" for cut in detection.cuts)
    counts = [number(len(detection.shots), "shot"), number(hard, "hard cut")]
    if len(detection.cuts) > hard:
        counts.append(number(len(detection.cuts) - hard, "gradual transition"))
    length = clock(detection.shots[-1].end) if detection.shots else clock(0)
    say(path_text(detection.path).append(f": {', '.join(counts)} in {length} ({detection.detector})"))
    shown = detection.shots[:limit]
    opening = {cut.frame: cut for cut in detection.cuts}
    cells = [_cells(place, shot, opening.get(shot.start_frame)) for place, shot in enumerate(shown, start=1)]
    table(None, _COLUMNS, cells)
    if len(shown) < len(detection.shots):
        note(f"{number(len(detection.shots) - len(shown), 'more shot')} not shown.")
    for option, path in written.files:
        say(path_text(path).append(f": {_WHAT[option]}"))
    if written.thumbnails:
        say(path_text(written.thumbnails[0].parent).append(f": {number(len(written.thumbnails), 'picture')}"))
    if written.split is not None:
        _print_pieces(detection, written)
    if several:
        say("")


def _cells(place: int, shot: Shot, cut: Cut | None) -> list[str | Text]:
    return [
        str(place),
        _precise(shot.start),
        _precise(shot.end),
        f"{shot.end - shot.start:.2f}",
        str(shot.start_frame),
        cut.kind if cut is not None else "",
        f"{shot.confidence:.2f}" if shot.kind != "start" else "",
        f"{shot.critical:.2f}" if shot.critical is not None else "",
    ]


def _print_pieces(detection: ShotDetection, written: Written) -> None:
    """Each piece, the shots in it, and by how much it begins before its first shot."""
    assert written.split is not None
    rows: list[list[str | Text]] = []
    for piece in written.split.pieces:
        parts = [part + 1 for part in piece.parts]
        held = "" if not parts else str(parts[0]) if len(parts) == 1 else f"{parts[0]} - {parts[-1]}"
        early = detection.shots[piece.parts[0]].start - piece.start if piece.parts else 0.0
        rows.append(
            [
                path_text(piece.path),
                held,
                _precise(piece.start),
                _precise(piece.end),
                f"{early:.2f} s" if early >= _SHOWN_ENDS else "",
            ]
        )
    table(None, _PIECE_COLUMNS, rows)
    for stream in written.split.left_out:
        note(f"In no piece: {stream}", style="yellow")


def _precise(seconds: float) -> str:
    """Seconds as ``m:ss.ss``: two frames of any usual rate never look the same."""
    hundredths = int(seconds * 100 + 0.5 + 1e-9)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest // 100:02d}.{rest % 100:02d}"
    return f"{hours}:{minutes:02d}:{tail}" if hours else f"{minutes}:{tail}"


def _as_json(detection: ShotDetection, written: Written) -> dict[str, Any]:
    from vidkin.shots import detection_as_dict

    described: dict[str, Any] = detection_as_dict(detection)
    described["files"] = {option: as_json(path) for option, path in written.files}
    described["thumbnails"] = as_json(written.thumbnails)
    described["split"] = as_json(written.split)
    return described


def _leave(failures: Sequence[tuple[str, str]], usable: bool) -> None:
    for path, cause in failures:
        error_line(f"{path}: {cause}")
    if not usable:
        if not failures:
            error_line("no video was found there; give folders or files with videos")
        raise typer.Exit(Status.NOTHING_USABLE)
    if failures:
        raise typer.Exit(Status.SOME_FAILED)


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
    ("really begins", "right"),
    ("ends", "right"),
    ("before its shot", "right"),
)
_WHAT = {
    "edl": "edit decision list",
    "otio": "OpenTimelineIO timeline",
    "chapters": "chapters",
    "stats": "the curve as a table",
    "plot": "the curve as a picture",
    "html": "contact sheet",
}

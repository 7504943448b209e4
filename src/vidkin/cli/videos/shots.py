"""``vidkin shots``: where videos are cut, and lists, pictures and files of their shots."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from vidkin.cli.console import error_line, meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.cli.options import JsonOption
from vidkin.cli.videos.shot_files import ShotFiles, Written
from vidkin.errors import MediaError
from vidkin.rendering.json_values import as_json, print_json
from vidkin.rendering.text import clock, number

if TYPE_CHECKING:
    from vidkin.shots import Shot, ShotDetection

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
        thumbnails=thumbnails,
        split=split,
        drop_frame=drop_frame,
        sources=tuple(paths),
    )
    files.check()
    found: list[ShotDetection] = []
    described: list[dict[str, Any]] = []
    for path in paths:
        try:
            detection = _found(path, detector)
        except MediaError as error:
            failures.append((error.path, error.cause))
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


def _found(path: str, detector: str) -> ShotDetection:
    from vidkin.shots import detect

    with meter(os.path.basename(path)) as bar:
        return detect(path, detector=detector, on_progress=bar.update)


def _print(detection: ShotDetection, written: Written, limit: int | None, *, several: bool) -> None:
    hard = sum(cut.kind == "hard" for cut in detection.cuts)
    counts = [number(len(detection.shots), "shot"), number(hard, "hard cut")]
    if len(detection.cuts) > hard:
        counts.append(number(len(detection.cuts) - hard, "gradual transition"))
    length = clock(detection.shots[-1].end) if detection.shots else clock(0)
    say(path_text(detection.path).append(f": {', '.join(counts)} in {length} ({detection.detector})"))
    shown = detection.shots[:limit]
    table(None, _COLUMNS, [_cells(place, shot) for place, shot in enumerate(shown, start=1)])
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


def _cells(place: int, shot: Shot) -> list[str | Text]:
    return [
        str(place),
        _precise(shot.start),
        _precise(shot.end),
        f"{shot.end - shot.start:.2f}",
        str(shot.start_frame),
        shot.kind if shot.kind != "start" else "",
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
}

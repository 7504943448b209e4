"""``vidkin labels``: create shot labels from several annotators or from SoccerNet-v2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin._base.outputs import check_outputs, describe_source
from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, meter, wrote
from vidkin.cli.options import JsonFormat, JsonOption
from vidkin.rendering.text import number, print_json

if TYPE_CHECKING:
    from vidkin.shots import VideoAnnotation


def soccernet(
    folder: Annotated[
        Path,
        typer.Argument(
            help="SoccerNet-v2 folder (league/season/game), or a single game's folder.", exists=True, file_okay=False
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file for the labels.", dir_okay=False)] = Path(
        "labels.json"
    ),
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            help="Action that makes its shot critical; repeatable.",
            show_default="goals, penalties, shots on and off target",
        ),
    ] = None,
    before: Annotated[
        float, typer.Option("--before", help="Maximum length in seconds of the critical part before an event.")
    ] = 2.0,
    detector: Annotated[
        str | None,
        typer.Option(
            "--detector",
            "-d",
            help="Detector that finds the shots, such as cuts.",
            show_default="camera changes of Labels-cameras.json",
        ),
    ] = None,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Convert the labels of SoccerNet-v2 games to labels for `vidkin train-shots`.

    Every half under FOLDER that has a video (1_224p.mkv, 1_720p.mkv, ...) and Labels-v2.json becomes a labeled video:
    its shots lie between camera changes, and a shot that contains an event is critical up to the event.
    """
    from vidkin.errors import DatasetError, VidkinError
    from vidkin.shots import write_shot_annotations
    from vidkin_research.readers.soccernet import SOCCERNET_EVENTS, find_soccernet_halves, read_soccernet_half

    def find_shots(video: Path) -> list[tuple[int, int]]:
        from vidkin.shots import detect

        return [(shot.start_frame, shot.end_frame) for shot in detect(video, detector or "").shots]

    halves = find_soccernet_halves(folder)
    annotations, failed = [], []
    with meter("reading labels") as bar:
        for done, half in enumerate(halves):
            bar.update(done, len(halves), detail=half.video.name)
            try:
                annotations.append(
                    read_soccernet_half(
                        half,
                        find_shots=find_shots if detector else None,
                        events=tuple(event or SOCCERNET_EVENTS),
                        before=before,
                    )
                )
            except VidkinError as error:
                failed.append((half.video, str(error)))
    for _, cause in failed:
        error_line(cause)
    if not annotations:
        raise DatasetError(f"{folder}: none of the {number(len(halves), 'half', 'halves')} can be used")
    write_shot_annotations(output, annotations)
    words, counts = summarize_labels(annotations)
    if format == "json":
        failures = [{"video": video, "cause": cause} for video, cause in failed]
        print_json({"labels": output, **counts, "failed": failures})
    else:
        wrote(output, words)
    if failed:
        raise typer.Exit(Status.SOME_FAILED)


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(help="Label files, one per annotator.", metavar="LABELS.json...", exists=True, dir_okay=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file for the merged labels.", dir_okay=False)],
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Merge the labels of several annotators into one file.

    All annotators must label the same shots of the same videos. A shot is critical if more than half of them mark it
    as critical; its critical frames are those marked by most of them.
    """
    from vidkin.shots import read_shot_annotations, write_shot_annotations
    from vidkin_research.learned.annotations import merge_annotators

    merged = merge_annotators([read_shot_annotations(file) for file in files])
    source = describe_source("labels", *(annotation.video for annotation in merged))
    check_outputs({"--output": (output, source)}, inputs=files)
    write_shot_annotations(output, merged)
    words, counts = summarize_labels(merged)
    if format == "json":
        print_json({"labels": output, "annotators": len(files), **counts})
    else:
        wrote(output, f"{words}, by {number(len(files), 'annotator')}")


def summarize_labels(annotations: Sequence[VideoAnnotation]) -> tuple[str, dict[str, int]]:
    """Count videos, shots and critical shots; return the counts as text and as values."""
    shots = [shot for annotation in annotations for shot in annotation.shots]
    critical = sum(shot.critical is not None for shot in shots)
    words = f"{number(len(annotations), 'video')}, {number(len(shots), 'shot')}, {critical} of them critical"
    return words, {"videos": len(annotations), "shots": len(shots), "critical": critical}

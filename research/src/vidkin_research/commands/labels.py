"""``vidkin labels soccernet``: labels of SoccerNet-v2 as labels of shots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, meter, path_text, say
from vidkin.cli.options import JsonOption
from vidkin.cli.train_shots import summarize_labels
from vidkin.rendering.text import number, print_json


def soccernet(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder of SoccerNet-v2, league/season/game, or of a game.", exists=True, file_okay=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the labels.", dir_okay=False)] = Path(
        "labels.json"
    ),
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            help="An action that makes its shot critical; repeatable.",
            show_default="goals, penalties, shots on and off target",
        ),
    ] = None,
    before: Annotated[
        float, typer.Option("--before", help="Maximum number of critical seconds before an event.")
    ] = 2.0,
    detector: Annotated[
        str | None,
        typer.Option(
            "--detector",
            "-d",
            help="Find the shots with this detector, such as cuts.",
            show_default="camera changes of Labels-cameras.json",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Turn the labels of SoccerNet-v2 games into labels for `vidkin train-shots`.

    Every half below FOLDER that has a video (1_224p.mkv, 1_720p.mkv...) and Labels-v2.json becomes a labeled video:
    its shots are those between camera changes, and a shot with an event in it is critical up to the event.
    """
    from vidkin.datasets import write_shot_annotations
    from vidkin.errors import DatasetError, VidkinError
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
        raise DatasetError(f"{folder}: none of {number(len(halves), 'half', 'halves')} can be used")
    write_shot_annotations(output, annotations)
    words, counts = summarize_labels(annotations)
    if json:
        failures = [{"video": video, "cause": cause} for video, cause in failed]
        print_json({"labels": output, **counts, "failed": failures})
    else:
        say(path_text(output).append(f": {words}"))
    if failed:
        raise typer.Exit(Status.SOME_FAILED)

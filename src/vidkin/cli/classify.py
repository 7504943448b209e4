"""``vidkin classify``: the class of files, with the nearest training items as the reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, meter, table
from vidkin.cli.options import JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import print_json


def classify(
    model: Annotated[
        Path, typer.Argument(help="Folder of a model that `vidkin train two-head` made.", metavar="MODEL")
    ],
    files: Annotated[list[Path], typer.Argument(help="Images or videos, or folders with such files.", metavar="FILES")],
    classes: Annotated[int, typer.Option("--classes", min=1, help="Most likely classes to show.")] = 3,
    neighbors: Annotated[int, typer.Option("--neighbors", min=0, help="Training items to show.")] = 3,
    json: JsonOption = False,
) -> None:
    """Classify files with a trained MODEL, and show the nearest training items.

    A model of images takes the middle frame of a video.
    """
    files = _expand(files)
    with meter("starting"):
        from vidkin.training import classify as classify_files

    done, broken = classify_files(model, files, classes=classes, neighbors=neighbors)
    if json:
        print_json(
            {
                "model": model,
                "files": [entry.to_dict() for entry in done],
                "broken": [{"path": error.path, "cause": error.cause} for error in broken],
            }
        )
    elif done:
        rows = [
            [
                str(entry.path),
                entry.label,
                f"{entry.probability:.2f}",
                ", ".join(f"{label} {share:.2f}" for label, share in entry.others),
                "\n".join(
                    f"{neighbor.path} ({neighbor.label}, {neighbor.distance:.2f})" for neighbor in entry.neighbors
                ),
            ]
            for entry in done
        ]
        columns = [("file", "left"), ("class", "left"), ("probability", "right"), ("next", "left")]
        table("", [*columns, ("nearest training items (class, squared distance)", "left")], rows)
    for error in broken:
        error_line(str(error))
    if broken:
        raise typer.Exit(Status.SOME_FAILED if done else Status.NOTHING_USABLE)


def _expand(files: Sequence[Path]) -> list[Path]:
    """The files, with the images and videos in each folder and below in its place, by name.

    Raises:
        InvalidArgumentError: There is none in a folder.
    """
    expanded: list[Path] = []
    for file in files:
        if not file.is_dir():
            expanded.append(file)
            continue
        media = IMAGE_EXTENSIONS | VIDEO_EXTENSIONS
        inside = sorted(each for each in file.rglob("*") if each.suffix.lower() in media and each.is_file())
        if not inside:
            raise InvalidArgumentError(f"{file}: there are no images and no videos in this folder")
        expanded += inside
    return expanded

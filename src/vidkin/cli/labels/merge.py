"""``vidkin labels merge``: one file of labels from those of several annotators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.console import path_text, say
from vidkin.cli.options import JsonOption
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number

__all__ = ["merge"]


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Labels of each annotator.", metavar="LABELS.json...", exists=True, dir_okay=False
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File of the merged labels.", dir_okay=False)
    ],
    json: JsonOption = False,
) -> None:
    """Make one file of labels from those of several annotators.

    All label the same shots of the same videos. A shot is critical if more than half of them say so; where they
    disagree about its critical frames, only the frames of the greatest agreement are.
    """
    from vidkin.datasets import merge_annotators, read_shot_annotations, write_shot_annotations

    merged = merge_annotators([read_shot_annotations(file) for file in files])
    write_shot_annotations(output, merged)
    shots = [shot for annotation in merged for shot in annotation.shots]
    critical = sum(shot.critical is not None for shot in shots)
    if json:
        print_json(
            {
                "labels": output,
                "annotators": len(files),
                "videos": len(merged),
                "shots": len(shots),
                "critical": critical,
            }
        )
        return
    summary = f"{number(len(merged), 'video')}, {number(len(shots), 'shot')}, {critical} of them critical"
    say(path_text(output).append(f": {summary}, by {number(len(files), 'annotator')}"))

"""``vidkin labels``: labels of shots of several annotators as one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.console import path_text, say
from vidkin.cli.options import JsonOption
from vidkin.rendering.text import number, print_json

if TYPE_CHECKING:
    from vidkin.datasets import VideoAnnotation


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(help="Labels of each annotator.", metavar="LABELS.json...", exists=True, dir_okay=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the merged labels.", dir_okay=False)],
    json: JsonOption = False,
) -> None:
    """Make one file of labels from those of several annotators.

    All label the same shots of the same videos. A shot is critical if more than half of them say so; where they
    disagree about its critical frames, only the frames of the greatest agreement are.
    """
    from vidkin.datasets import merge_annotators, read_shot_annotations, write_shot_annotations

    merged = merge_annotators([read_shot_annotations(file) for file in files])
    write_shot_annotations(output, merged)
    words, counts = summarize_labels(merged)
    if json:
        print_json({"labels": output, "annotators": len(files), **counts})
    else:
        say(path_text(output).append(f": {words}, by {number(len(files), 'annotator')}"))


def summarize_labels(annotations: Sequence[VideoAnnotation]) -> tuple[str, dict[str, int]]:
    """How many videos, shots and critical shots there are, in words and as numbers."""
    shots = [shot for annotation in annotations for shot in annotation.shots]
    critical = sum(shot.critical is not None for shot in shots)
    words = f"{number(len(annotations), 'video')}, {number(len(shots), 'shot')}, {critical} of them critical"
    return words, {"videos": len(annotations), "shots": len(shots), "critical": critical}

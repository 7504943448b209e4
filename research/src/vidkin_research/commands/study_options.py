"""Options shared by the benchmarks, and formatting of durations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidkin.rendering.text import number

__all__ = ["FiguresOption", "FrameWeightsOption", "SaveModelOption", "WorkOption", "duration"]

FiguresOption = Annotated[Path | None, typer.Option("--output", "-o", help="Also write the results to this JSON file.")]
FrameWeightsOption = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        help="MobileNetV2 weights, a safetensors file.",
        show_default="from the hub",
        dir_okay=False,
        exists=True,
    ),
]
SaveModelOption = Annotated[
    Path | None,
    typer.Option(
        "--save",
        help="Save the model trained with quadlets in this folder, for `vidkin shots --detector`. "
        "If its run is already stored in --work, it is not repeated and nothing is saved.",
    ),
]
WorkOption = Annotated[
    Path,
    typer.Option("--work", help="Folder for composed videos, features and runs. A second call reuses them."),
]


def duration(hours: float) -> str:
    """Format hours in a suitable unit: minutes, hours or days."""
    if hours >= 48:
        return number(round(hours / 24), "day")
    return number(round(hours), "hour") if hours >= 2 else number(max(1, round(60 * hours)), "minute")

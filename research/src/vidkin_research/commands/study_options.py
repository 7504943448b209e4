"""Options shared by the benchmarks, and the format of durations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidkin.rendering.text import number

__all__ = ["FiguresOption", "FrameWeightsOption", "SaveModelOption", "WorkOption", "duration"]

FiguresOption = Annotated[Path | None, typer.Option("--output", "-o", help="Also write the figures to this JSON file.")]
FrameWeightsOption = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        help="Weights of MobileNetV2, a safetensors file.",
        show_default="from the hub",
        dir_okay=False,
        exists=True,
    ),
]
SaveModelOption = Annotated[
    Path | None,
    typer.Option(
        "--save",
        help="Save the model trained with quadlets here, for `vidkin shots --detector`. "
        "A run that is already stored in --work is not repeated and saves nothing.",
    ),
]
WorkOption = Annotated[
    Path,
    typer.Option("--work", help="Folder of composed videos, features and runs. A second call reuses them."),
]


def duration(hours: float) -> str:
    """Format hours in a suitable unit: minutes, hours or days."""
    if hours >= 48:
        return number(round(hours / 24), "day")
    return number(round(hours), "hour") if hours >= 2 else number(max(1, round(60 * hours)), "minute")

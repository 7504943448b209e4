"""Options that the benchmarks share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["FiguresOption", "FrameWeightsOption", "SaveModelOption", "WorkOption"]

FiguresOption = Annotated[Path | None, typer.Option("--output", "-o", help="Also write the figures to this JSON file.")]
FrameWeightsOption = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        help="Weights of MobileNetV2, a safetensors file.",
        show_default="those of the hub",
        dir_okay=False,
        exists=True,
    ),
]
SaveModelOption = Annotated[
    Path | None,
    typer.Option(
        "--save",
        help="Save the model trained with quadlets here, for `vidkin shots --detector`. "
        "A run that is already stored in --work is not trained again and saves nothing.",
    ),
]
WorkOption = Annotated[
    Path,
    typer.Option("--work", help="Folder of composed videos, features and runs. A second call reuses them."),
]

"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "DEFAULT_INDEX",
    "ExtractorOption",
    "IndexOption",
    "JsonOption",
    "MirrorOption",
    "ModelOption",
    "WeightsOption",
    "WhiteningOption",
    "extractor_name",
    "parse_time",
]

DEFAULT_INDEX = Path("collection.vidkin")


def parse_time(text: str | float) -> float:
    """Seconds from ``90``, ``90.5``, ``1:30``, ``1:30.5`` or ``1:02:03``.

    Raises:
        typer.BadParameter: The text is none of these.
    """
    parts = str(text).strip().split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    small = all(0 <= number < 60 for number in numbers[1:])
    finite = all(number == number and abs(number) != float("inf") for number in numbers)
    whole = all(number == int(number) for number in numbers[:-1]) if finite else False
    if not 1 <= len(numbers) <= 3 or not finite or not small or not whole or numbers[0] < 0:
        raise typer.BadParameter(
            f"{text!r} is no time; write seconds (90.5), minutes and seconds (1:30.5) or h:mm:ss (1:02:03)"
        )
    seconds = 0.0
    for number in numbers:
        seconds = seconds * 60 + number
    return seconds


def extractor_name(extractor: str | None, model: Path | None) -> str | None:
    """One name for both options.

    Raises:
        typer.BadParameter: Both are given.
    """
    if model is None:
        return extractor
    if extractor is not None:
        raise typer.BadParameter("--model and --extractor both say what makes the features; give one of them")
    return f"model:{model.expanduser()}"


ExtractorOption = Annotated[
    str | None,
    typer.Option(
        "--extractor",
        "-e",
        help="What makes the features: classical, timm:<model>, torchvision:<model>.",
        show_default="classical",
    ),
]
IndexOption = Annotated[
    Path,
    typer.Option(
        "--index",
        "-i",
        envvar="VIDKIN_INDEX",
        help="The folder of the index.",
        show_default=str(DEFAULT_INDEX),
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write the result to standard output as JSON.")]
MirrorOption = Annotated[
    bool, typer.Option("--mirror/--no-mirror", help="Also look for copies that are flipped left to right.")
]
ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "-m",
        help="Folder of a trained model, instead of an extractor: finds the same kind of thing.",
        file_okay=False,
    ),
]
WeightsOption = Annotated[
    Path | None, typer.Option("--weights", help="Weights of the network, a safetensors file.", dir_okay=False)
]
WhiteningOption = Annotated[
    Path | None,
    typer.Option("--whitening", help="Whitening of the features, a safetensors file.", dir_okay=False),
]

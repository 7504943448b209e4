"""``vidkin export``: write a trained model for other runtimes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from vidkin.cli.console import path_text, say
from vidkin.cli.options import JsonOption
from vidkin.cli.paths import check_output_path
from vidkin.rendering.json_values import print_json

__all__ = ["export"]


class _Format(StrEnum):
    onnx = "onnx"
    torch = "torch"


def export(
    model: Annotated[Path, typer.Argument(help="Folder of a trained model.", metavar="MODEL")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", dir_okay=False)],
    format: Annotated[
        _Format, typer.Option("--format", help="ONNX, or a program for torch.export.load.")
    ] = _Format.onnx,
    json: JsonOption = False,
) -> None:
    """Write MODEL as one file that runs without vidkin: images or clips in, unit vectors out.

    The input has values from 0 to 1; the file normalizes it. The metadata "vidkin" of the file describes the input.
    """
    from vidkin.models import export_model, load_model

    check_output_path(output, inputs=[model / "model.safetensors", model / "config.toml"])
    loaded = load_model(model)
    path = export_model(loaded, output, format=format.value)
    config = loaded.config
    if json:
        facts: dict[str, Any] = {"model": model, "output": path, "format": format.value}
        print_json({**facts, "kind": config.kind, "size": config.size, "dimension": loaded.dimension})
        return
    shape = f"{config.frames} frames of " if config.takes_clips else ""
    size = f"{config.size} x {config.size} pixels"
    say(path_text(path).append(f": {config.kind}, {shape}{size} to {loaded.dimension} values"))

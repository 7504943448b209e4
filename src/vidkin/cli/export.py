"""``vidkin export`` and ``vidkin import-model``: write trained models for other runtimes, import public checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vidkin._base.outputs import check_outputs, describe_source, open_output
from vidkin.cli.console import note, wrote
from vidkin.cli.options import JsonFormat, JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import print_json, printable

_FORMATS: dict[str, Literal["onnx", "torch"]] = {".onnx": "onnx", ".pt2": "torch"}


def export(
    model: Annotated[Path, typer.Argument(help="Folder of a trained model.", metavar="MODEL")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File to write: ONNX (.onnx), or a program for torch.export.load (.pt2).",
            dir_okay=False,
        ),
    ],
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Write MODEL as one file that runs without vidkin: images or clips in, unit vectors out.

    The input has values from 0 to 1; the file normalizes it. The metadata "vidkin" of the file describes the input.
    MODEL can also be the weights of a frame encoder, FILE.safetensors; its ONNX file belongs beside it as FILE.onnx.
    """
    if model.is_file():
        _export_frame_encoder(model, output, json=format == "json")
        return
    from vidkin.models import export_model, load_model

    kind = _FORMATS.get(output.suffix.lower())
    source = describe_source(f"export as {kind}", model)
    check_outputs({"--output": (output, source)}, inputs=[model / "model.safetensors", model / "config.toml"])
    if kind is None:
        raise InvalidArgumentError(f"{output}: the ending chooses the format and must be one of {', '.join(_FORMATS)}")
    loaded = load_model(model)
    path = export_model(loaded, output, format=kind, source=source)
    config = loaded.config
    if format == "json":
        facts: dict[str, Any] = {"model": model, "output": path, "format": kind}
        print_json({**facts, "kind": config.kind, "size": config.size, "dimension": loaded.dimension})
        return
    shape = f"{config.frames} frames of " if config.takes_clips else ""
    size = f"{config.size} x {config.size} pixels"
    wrote(path, f"{config.kind}, {shape}{size} to {loaded.dimension} values")


def _export_frame_encoder(weights: Path, output: Path, *, json: bool) -> None:
    from vidkin.features.frame_encoder import export_frame_encoder, load_frame_encoder

    source = describe_source("export as onnx", weights)
    check_outputs({"--output": (output, source)}, inputs=[weights])
    encoder = load_frame_encoder(weights)
    with open_output(output, source=source) as partial:
        export_frame_encoder(encoder, partial)
    side, dimension = encoder.settings.side, encoder.settings.dimension
    if json:
        facts = {"model": weights, "output": output, "format": "onnx", "kind": "frame_encoder"}
        print_json({**facts, "size": side, "dimension": dimension})
        return
    wrote(output, f"frame encoder, {side} x {side} pixels to {dimension} values")


def import_model(
    checkpoint: Annotated[
        Path,
        typer.Argument(help="The checkpoint, a PyTorch file.", metavar="FILE", dir_okay=False, exists=True),
    ],
    layout: Annotated[
        str,
        typer.Option("--layout", help="System that it comes from: visil, visil-symmetric, dns, s2vs or hap-vr."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the model to write.", file_okay=False)],
    whitening: Annotated[Path | None, typer.Option("--whitening", dir_okay=False, exists=True, hidden=True)] = None,
    weights: Annotated[Path | None, typer.Option("--weights", dir_okay=False, exists=True, hidden=True)] = None,
    extractor: Annotated[
        str | None,
        typer.Option("--extractor", "-e", hidden=True),
    ] = None,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Turn a public checkpoint (ViSiL, DnS, S2VS, HAP-VR) into a model folder.

    The file is read as data: no program in it is run. Use the folder with `vidkin index --model`. Rare options:
    --whitening, the one that it was trained with (.pth, .npz or safetensors), --weights of ResNet-50 (safetensors or
    .pth, otherwise those of the hub), and --extractor in place of ResNet-50.
    """
    from vidkin.models.comparator_import import import_comparator
    from vidkin.models.stored import CONFIG_FILE

    if (output / CONFIG_FILE).exists():
        raise InvalidArgumentError(
            f"{printable(str(output))}: there is a model here, which would be written over; choose a new folder"
        )
    config = import_comparator(
        checkpoint, output, layout=layout, extractor=extractor, weights=weights, whitening=whitening
    )
    if format == "json":
        print_json({"model": output, "layout": layout, "config": config.to_mapping()})
        return
    facts = f"compares {config.dimension} values a region of {config.extractor}, weighting: {config.weighting}"
    wrote(output, f"{layout}, {facts}")
    if config.unrelated is None:
        note(
            "The folder lacks the extractor's weights: they come from the hub at the first use, and each use measures "
            "what unrelated videos score. Name them with --weights to store both."
        )

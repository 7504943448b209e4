"""``vidkin export`` and ``vidkin import-model``: write trained models for other runtimes, import public checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from vidkin._base.outputs import describe_source, open_output
from vidkin.cli.console import note, print_data, wrote
from vidkin.cli.options import JsonFormat, RareJsonOption, check_output, format_of, rare_option
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import printable

_ENDINGS = {"onnx": (".onnx",), "torch": (".pt2",)}


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL")],
    output: Annotated[Path, typer.Option("--output", "-o", dir_okay=False)],
    format: RareJsonOption = JsonFormat.TABLE,
) -> None:
    """Write MODEL as one file that runs without vidkin: images or clips in, unit vectors out.

    The input has values from 0 to 1; the file normalizes it. The metadata "vidkin" of the file describes the input.
    MODEL can also be the weights of a frame encoder, FILE.safetensors; its ONNX file belongs next to it as FILE.onnx.

    Args:
        model: Folder of a trained model.
        output: File to write: ONNX (.onnx), or a program for torch.export.load (.pt2).
    """
    is_encoder = model.is_file()
    source = describe_source(f"export as {output.suffix.lower()}", model)
    inputs = [model] if is_encoder else [model / "model.safetensors", model / "config.toml"]
    check_output(output, source, inputs=inputs)
    form = "onnx" if is_encoder else format_of(output, _ENDINGS)
    if is_encoder:
        from vidkin.features.frame_encoder import export_frame_encoder, load_frame_encoder

        encoder = load_frame_encoder(model)
        with open_output(output, source=source) as partial:
            export_frame_encoder(encoder, partial)
        kind, size, dimension, frames = "frame_encoder", encoder.settings.side, encoder.settings.dimension, 1
    else:
        from vidkin.models import export_model, load_model

        loaded = load_model(model)
        output = export_model(loaded, output, format=cast(Literal["onnx", "torch"], form), source=source)
        kind, size, dimension = loaded.config.kind, loaded.config.size, loaded.dimension
        frames = loaded.config.frames if loaded.config.takes_clips else 1
    facts = {"model": model, "output": output, "format": form, "kind": kind, "size": size, "dimension": dimension}
    if not print_data(format, facts):
        clip = f"{frames} frames of " if frames > 1 else ""
        wrote(output, f"{kind}, {clip}{size} x {size} pixels to {dimension} values")


def import_model(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False, exists=True)],
    layout: Annotated[str, typer.Option("--layout")],
    output: Annotated[Path, typer.Option("--output", "-o", file_okay=False)],
    whitening: Annotated[Path | None, rare_option("--whitening", dir_okay=False, exists=True)] = None,
    weights: Annotated[Path | None, rare_option("--weights", dir_okay=False, exists=True)] = None,
    extractor: Annotated[str | None, rare_option("--extractor", "-e")] = None,
    format: RareJsonOption = JsonFormat.TABLE,
) -> None:
    """Turn a public checkpoint (ViSiL, DnS, S2VS, HAP-VR) into a model folder.

    The file is read as data: no program in it is run. Use the folder with `vidkin index --model`. Rare options:
    --whitening, the one that it was trained with (.pth, .npz or safetensors), --weights of ResNet-50 (safetensors or
    .pth, otherwise those of the hub), and --extractor in place of ResNet-50.

    Args:
        checkpoint: The checkpoint, a PyTorch file.
        layout: System that it comes from: visil, visil-symmetric, dns, s2vs or hap-vr.
        output: Folder of the model to write.
    """
    from vidkin.models.comparator_import import import_comparator
    from vidkin.models.stored import CONFIG_FILE

    if (output / CONFIG_FILE).exists():
        raise InvalidArgumentError(f"{printable(str(output))}: there is already a model here; choose a new folder")
    config = import_comparator(
        checkpoint, output, layout=layout, extractor=extractor, weights=weights, whitening=whitening
    )
    if print_data(format, {"model": output, "layout": layout, "config": config.to_mapping()}):
        return
    facts = f"compares {config.dimension} values a region of {config.extractor}, weighting: {config.weighting}"
    wrote(output, f"{layout}, {facts}")
    if config.unrelated is None:
        note(
            "The folder lacks the extractor's weights: they are downloaded at the first use, and each use measures "
            "what unrelated videos score. Name them with --weights to store both."
        )

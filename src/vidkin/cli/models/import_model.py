"""``vidkin import-model``: public checkpoints as models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.console import note, path_text, say
from vidkin.cli.options import JsonOption
from vidkin.rendering.json_values import print_json

__all__ = ["import_model"]


def import_model(
    checkpoint: Annotated[
        Path,
        typer.Argument(help="The checkpoint, a PyTorch file.", metavar="FILE", dir_okay=False, exists=True),
    ],
    layout: Annotated[
        str,
        typer.Option(
            "--layout", help="System that it comes from: visil, visil-symmetric, dns, s2vs or hap-vr."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the model to write.", file_okay=False)
    ],
    whitening: Annotated[
        Path | None,
        typer.Option(
            "--whitening",
            help="Whitening that it was trained with: pca_resnet50_vcdb_1M.pth, an .npz or a safetensors file.",
            dir_okay=False,
            exists=True,
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            help="Weights of ResNet-50, safetensors or resnet50-0676ba61.pth.",
            show_default="those of the hub",
            dir_okay=False,
            exists=True,
        ),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option("--extractor", "-e", help="An extractor other than the ResNet-50 of these systems."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Turn a public checkpoint (ViSiL, DnS, S2VS, HAP-VR) into a model folder.

    The file is read as data: no program in it is run. Use the folder with `vidkin index --model`.
    """
    from vidkin.models.comparator.importing import import_comparator

    config = import_comparator(
        checkpoint, output, layout=layout, extractor=extractor, weights=weights, whitening=whitening
    )
    if json:
        print_json({"model": output, "layout": layout, "config": config.to_mapping()})
        return
    say(
        path_text(output).append(
            f": {layout}, compares {config.dimension} values a region of {config.extractor}, weighting: "
            f"{config.weighting}"
        )
    )
    if config.unrelated is None:
        note(
            "The folder lacks the extractor's weights: they come from the hub at the first use, and each use measures "
            "what unrelated videos score. Name them with --weights to store both."
        )

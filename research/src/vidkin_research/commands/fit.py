"""``vidkin fit``: fit the codebook or learned similarity of a classical feature to the user's own images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, meter, wrote
from vidkin.cli.options import JsonFormat, JsonOption
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.rendering.text import number, print_json

__all__ = ["fit"]

_FITTED = ("words", "fisher", "textons", "hash_kpca", "oasis")


def fit(
    feature: Annotated[str, typer.Argument(help=f"Feature to fit: {', '.join(_FITTED)}.")],
    pictures: Annotated[
        Path,
        typer.Argument(
            help="Folder searched at any depth for photographs. oasis uses their folder names as labels.",
            exists=True,
            file_okay=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file, for use with `--weights`.", dir_okay=False)
    ] = Path("feature.safetensors"),
    size: Annotated[int, typer.Option("--size", min=32, help="Side in pixels of the square center crops.")] = 112,
    most: Annotated[
        int, typer.Option("--most", min=8, help="Maximum number of images to read, sampled evenly.")
    ] = 5000,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for codebooks and triplets.")] = 0,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Fit a classical feature to your own images, or learn one from their labels.

    Use the file with `vidkin index FOLDER --extractor classical:FEATURE --weights FILE`. Codebooks are fitted to at
    most 700 of the images. oasis samples 50,000 triplets from all images: two from one folder, one from another.
    """
    import numpy as np
    import torch

    from vidkin._base.files import IMAGE_EXTENSIONS
    from vidkin._base.outputs import describe_source
    from vidkin.cli.options import check_output_file
    from vidkin.datasets import LabelledItem, read_item
    from vidkin.datasets.folders import iter_files
    from vidkin_research.features import save_feature
    from vidkin_research.images.classical_rows import fit_feature

    if feature not in _FITTED:
        raise InvalidArgumentError(f"FEATURE must be one of {', '.join(_FITTED)}, got {feature!r}")
    source = describe_source("feature", pictures)
    check_output_file(output, source)
    found = list(iter_files(pictures, IMAGE_EXTENSIONS, deep=True))
    chosen = [found[row] for row in np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).astype(int))]
    images, folders, failed = [], [], []
    with meter("reading images") as bar:
        for done, path in enumerate(chosen):
            bar.update(done, len(chosen), detail=path.name)
            try:
                images.append(
                    read_item(LabelledItem(path=path, category="x", group="x"), "image", size=size, fit="crop")
                )
                folders.append(path.parent)
            except (MediaError, DatasetError) as error:
                failed.append((path, str(error)))
    for _, cause in failed:
        error_line(cause)
    if not images:
        raise DatasetError(f"{pictures}: no readable images")
    classes = sorted(set(folders))
    labels = torch.tensor([classes.index(folder) for folder in folders])
    save_feature(fit_feature(feature, np.stack(images), labels, seed), output, source=source)
    if format == "json":
        failures = [{"picture": path, "cause": cause} for path, cause in failed]
        print_json(
            {"feature": output, "name": feature, "pictures": len(images), "folders": len(classes), "failed": failures}
        )
    else:
        counts = f"{number(len(images), 'image')} in {number(len(classes), 'folder')}"
        wrote(output, f"classical:{feature}, fitted to {counts}")
    if failed:
        raise typer.Exit(Status.SOME_FAILED)

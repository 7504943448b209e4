"""``vidkin whiten``: fit the whitening of an extractor to your own videos and images."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.cli.console import end_with_failures, meter, path_text, say
from vidkin.cli.options import WeightsOption
from vidkin.cli.paths import check_output_path
from vidkin.errors import InvalidArgumentError, MediaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def whiten(
    paths: Annotated[list[Path], typer.Argument(help="Videos and images, or folders of them.", metavar="PATH")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Safetensors file to write.", dir_okay=False)],
    dimension: Annotated[int, typer.Option("--dimension", min=1, help="Values per region after whitening.")] = 128,
    pictures: Annotated[int, typer.Option("--pictures", min=2, help="Images to use, at most.")] = 1000,
    per_video: Annotated[int, typer.Option("--per-video", min=1, help="Frames to use from one video, at most.")] = 12,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the choice of images and edits.")] = 0,
    extractor: Annotated[
        str,
        typer.Option(
            "--extractor",
            "-e",
            help="Extractor to fit a whitening for: classical, timm:<model>, torchvision:<model>, onnx:<file>.",
        ),
    ] = "classical",
    weights: WeightsOption = None,
) -> None:
    """Fit a whitening to your own videos and images, so that edited copies get more similar features.

    Images are edited as copies are; directions that edits change count less. Use the result with --whitening in
    index, match and embed.
    """
    from vidkin.features import fit_edit_whitening, open_extractor

    extensions = VIDEO_EXTENSIONS | IMAGE_EXTENSIONS
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(file for file in path.rglob("*") if file.suffix.lower() in extensions)
        elif path.is_file():
            files.append(path)
        else:
            raise InvalidArgumentError(f"{path}: no such file or folder")
    if not files:
        raise InvalidArgumentError(f"{', '.join(map(str, paths))}: no videos or images found")
    check_output_path(output, inputs=[*files, weights])
    maker = open_extractor(extractor, weights=weights)
    random.Random(seed).shuffle(files)
    broken: list[MediaError] = []
    with meter("fitting") as bar:
        total = min(pictures, len(files) * per_video)
        whitening = fit_edit_whitening(
            maker,  # type: ignore[arg-type]  # every extractor of the registry describes images
            _images(files, pictures, per_video, broken),
            dimension=dimension,
            seed=seed,
            on_progress=lambda done: bar.update(done, total, detail=""),
        )
    whitening.save(output)
    say(path_text(output).append(f": {whitening!r} of {extractor or 'classical'}"))
    end_with_failures(broken)


def _images(files: list[Path], most: int, per_video: int, broken: list[MediaError]) -> Iterator[NDArray[np.uint8]]:
    from vidkin.features import pictures_of

    count = 0
    for file in files:
        if count >= most:
            return
        try:
            for image in pictures_of(file, count=min(per_video, most - count)):
                yield image
                count += 1
        except MediaError as error:
            broken.append(error)
    if count == 0 and broken:
        raise broken[0]

"""``vidkin whiten``: fit the whitening of an extractor on one's own material."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin._base.extensions import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.cli.console import error_line, meter, path_text, say
from vidkin.cli.exit import Status
from vidkin.cli.options import ExtractorOption, WeightsOption
from vidkin.cli.paths import check_output_path
from vidkin.errors import InvalidArgumentError, MediaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["whiten"]


def whiten(
    paths: Annotated[
        list[Path], typer.Argument(help="Folders of videos and photographs, or files.", metavar="PATH...")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The safetensors file to write.", dir_okay=False)
    ],
    dimension: Annotated[int, typer.Option("--dimension", min=1, help="Length of a descriptor.")] = 128,
    pictures: Annotated[int, typer.Option("--pictures", min=2, help="Pictures in all, at most.")] = 1000,
    per_video: Annotated[
        int, typer.Option("--per-video", min=1, help="Pictures of one video, at most.")
    ] = 12,
    seed: Annotated[int, typer.Option("--seed", help="Which pictures and which edits.")] = 0,
    extractor: ExtractorOption = None,
    weights: WeightsOption = None,
) -> None:
    """Fit a whitening on your own material: pictures are edited as copies are, what edits change counts less.

    Use it with --whitening FILE in index, match and embed.
    """
    from vidkin.features import fit_edit_whitening, open_extractor

    files = _files(paths)
    check_output_path(output, inputs=[*files, weights])
    maker = open_extractor(extractor or "classical", weights=weights)
    random.Random(seed).shuffle(files)
    broken: list[MediaError] = []
    with meter("fitting") as bar:
        total = min(pictures, len(files) * per_video)
        whitening = fit_edit_whitening(
            maker,  # type: ignore[arg-type]  # every extractor of the registry describes images
            _pictures(files, pictures, per_video, broken),
            dimension=dimension,
            seed=seed,
            on_progress=lambda done: bar.update(done, total, detail=""),
        )
    whitening.save(output)
    say(path_text(output).append(f": {whitening!r} of {extractor or 'classical'}"))
    for failure in broken:
        error_line(str(failure))
    if broken:
        raise typer.Exit(Status.SOME_FAILED)


def _files(paths: list[Path]) -> list[Path]:
    extensions = VIDEO_EXTENSIONS | IMAGE_EXTENSIONS
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.suffix.lower() in extensions)
        elif path.is_file():
            found.append(path)
        else:
            raise InvalidArgumentError(f"there is nothing at {path}; give folders or files that exist")
    if not found:
        raise InvalidArgumentError(f"there are no videos and no pictures in {', '.join(map(str, paths))}")
    return found


def _pictures(
    files: list[Path], most: int, per_video: int, broken: list[MediaError]
) -> Iterator[NDArray[np.uint8]]:
    from vidkin.features import pictures_of

    given = 0
    for file in files:
        if given >= most:
            return
        try:
            for image in pictures_of(file, count=min(per_video, most - given)):
                yield image
                given += 1
        except MediaError as error:
            broken.append(error)
    if given == 0 and broken:
        raise broken[0]

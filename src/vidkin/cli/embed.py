"""``vidkin embed`` and ``vidkin whiten``: features of the frames of videos, and a whitening fitted to your own."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vidkin._base.outputs import describe_source
from vidkin.cli import options
from vidkin.cli.console import end_with_failures, meter, print_data, wrote
from vidkin.cli.options import JsonFormat, RareJsonOption, rare_option
from vidkin.errors import MediaError
from vidkin.rendering.text import number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vidkin.similarity import FrameFeatures

_WhiteningKind = Literal["edits", "pca"]
_ENDINGS = {"safetensors": (".safetensors",), "npz": (".npz",)}


def embed(
    files: Annotated[list[Path], typer.Argument(metavar="FILE")],
    output: Annotated[Path, typer.Option("--output", "-o", dir_okay=False)],
    rate: Annotated[float | None, rare_option("--rate", min=0.001)] = None,
    extractor: options.ExtractorOption = None,
    model: options.ModelOption = None,
    weights: options.WeightsOption = None,
    whitening: options.WhiteningOption = None,
    device: options.DeviceOption = "auto",
    format: RareJsonOption = JsonFormat.TABLE,
) -> None:
    """Write the features of the frames of videos to a safetensors file, or to an npz file.

    Arrays: values [N, R, D] float32, timestamps [N] float64 in seconds, information [N] float32, and lengths [V]
    int64, the number of frames of each video (N in all). Metadata: fingerprint, extractor, paths (JSON); in an npz file
    these three are arrays of text.

    Args:
        files: Video files.
        output: File to write: .safetensors, or .npz for NumPy.
    """
    with meter("starting"):
        from vidkin.features import describe_file, open_extractor
        from vidkin.index import sampling_rate
        from vidkin.media import probe
        from vidkin.rendering.features import write_features
        from vidkin.similarity import FrameFeatures

    source = describe_source("features", *files)
    options.check_output(output, source, inputs=[*files, weights, whitening])
    options.format_of(output, _ENDINGS)
    done: list[tuple[Path, FrameFeatures]] = []
    broken: list[MediaError] = []
    with meter("embedding") as bar:
        maker = open_extractor(options.extractor_name(extractor, model), weights=weights, whitening=whitening)
        for position, file in enumerate(files):
            bar.update(position, len(files), detail=file.name)
            try:
                duration = probe(file).duration
                file_rate = rate or sampling_rate(duration, 1.0)
                # Batch by batch, so that only one batch of frames is in memory.
                parts = describe_file(os.fspath(file), maker, duration=duration, rate=file_rate)
                done.append((file, FrameFeatures.concatenate(list(parts))))
            except MediaError as error:
                broken.append(error)
    if done:
        write_features(done, output, extractor=maker, source=source)
    shapes = [features.values.shape for _, features in done]
    names = ("path", "frames", "regions", "dimension")
    videos = [
        dict(zip(names, (file, len(features), *shape[2:]), strict=True))
        for (file, features), shape in zip(done, shapes, strict=True)
    ]
    document = {
        "output": output if done else None,
        "fingerprint": maker.fingerprint,
        "videos": videos,
        "broken": [{"path": error.path, "cause": error.cause} for error in broken],
    }
    if not print_data(format, document) and done:
        frames = sum(len(features) for _, features in done)
        _, _, regions, dimension = shapes[0]
        facts = f"{number(len(done), 'video')}, {number(frames, 'frame')} of {regions} x {dimension}"
        wrote(output, f"{facts}, {maker.fingerprint}")
    end_with_failures(broken, some_usable=bool(done))


def whiten(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH")],
    output: Annotated[Path, typer.Option("--output", "-o", dir_okay=False)],
    dimension: Annotated[int, rare_option("--dimension", min=1)] = 128,
    kind: Annotated[_WhiteningKind, rare_option("--kind")] = "edits",
    pictures: Annotated[int, rare_option("--pictures", min=2)] = 1000,
    per_video: Annotated[int, rare_option("--per-video", min=1)] = 12,
    seed: Annotated[int, rare_option("--seed")] = 0,
    extractor: Annotated[str, rare_option("--extractor", "-e")] = "classical",
    weights: options.WeightsOption = None,
    device: options.DeviceOption = "auto",
) -> None:
    """Fit a whitening to your own videos and images, so that edited copies get more similar features.

    Images are edited as copies are; directions that edits change count less (--kind pca: plain PCA whitening). It is
    for features of --extractor, classical or a network. Use the result with --whitening in index, match and embed.

    Args:
        paths: Videos and images, or folders of them.
        output: Safetensors file to write.
    """
    from vidkin.features import fit_edit_whitening, fit_image_whitening, open_extractor

    options.check_inputs(*paths)
    files = options.list_media(paths)
    source = describe_source("whitening", *paths)
    options.check_output(output, source, inputs=[*files, weights])
    maker = open_extractor(extractor, weights=weights)
    random.Random(seed).shuffle(files)
    broken: list[MediaError] = []
    with meter("fitting") as bar:
        total = min(pictures, len(files) * per_video)
        fit = fit_image_whitening if kind == "pca" else partial(fit_edit_whitening, seed=seed)
        whitening = fit(
            maker,  # type: ignore[arg-type]  # every extractor of the registry describes images
            _read_images(files, pictures, per_video, broken),
            dimension=dimension,
            on_progress=lambda done: bar.update(done, total),
        )
    whitening.save(output, source=source)
    wrote(output, f"{whitening!r} of {extractor or 'classical'}")
    end_with_failures(broken)


def _read_images(
    files: list[Path], limit: int, per_video: int, broken: list[MediaError]
) -> Iterator[NDArray[np.uint8]]:
    """At most ``limit`` images of the files; unreadable files are added to ``broken``."""
    from vidkin.features import pictures_of

    count = 0
    for file in files:
        if count >= limit:
            return
        try:
            for image in pictures_of(file, count=min(per_video, limit - count)):
                yield image
                count += 1
        except MediaError as error:
            broken.append(error)
    if count == 0 and broken:
        raise broken[0]

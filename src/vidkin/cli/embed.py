"""``vidkin embed`` and ``vidkin whiten``: features of the frames of videos, and a whitening fitted to your own."""

from __future__ import annotations

import json as json_module
import os
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin._base.outputs import check_outputs, describe_source, open_output
from vidkin.cli.console import end_with_failures, meter, wrote
from vidkin.cli.options import (
    DeviceOption,
    ExtractorOption,
    JsonFormat,
    JsonOption,
    ModelOption,
    WeightsOption,
    WhiteningOption,
    extractor_name,
)
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.text import number, print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vidkin.features import FrameExtractor
    from vidkin.similarity import FrameFeatures

_WhiteningKind = Literal["edits", "pca"]
_ENDINGS = (".safetensors", ".npz")


def embed(
    files: Annotated[list[Path], typer.Argument(help="Video files.", metavar="FILE")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .safetensors, or .npz for NumPy.", dir_okay=False),
    ],
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, hidden=True),
    ] = None,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    device: DeviceOption = "auto",
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Write the features of the frames of videos to a safetensors file, or to an npz file.

    Arrays: values [N, R, D] float32, timestamps [N] float64 in seconds, information [N] float32, and lengths [V]
    int64, the number of frames of each video (N in all). Metadata: fingerprint, extractor, paths (JSON); in an npz file
    these three are arrays of text.
    """
    with meter("starting"):
        from vidkin.features import describe_file, open_extractor
        from vidkin.index import sampling_rate
        from vidkin.media import probe
        from vidkin.similarity import FrameFeatures

    source = describe_source("features", *files)
    check_outputs({"--output": (output, source)}, inputs=[*files, weights, whitening])
    if output.suffix.lower() not in _ENDINGS:
        raise InvalidArgumentError(f"{output}: the ending chooses the format and must be one of {', '.join(_ENDINGS)}")
    done: list[tuple[Path, FrameFeatures]] = []
    broken: list[MediaError] = []
    with meter("embedding") as bar:
        maker = open_extractor(extractor_name(extractor, model), weights=weights, whitening=whitening)
        for position, file in enumerate(files):
            bar.update(position, len(files), detail=file.name)
            try:
                duration = probe(file).duration
                # Batch by batch, so that only one batch of frames is in memory.
                parts = describe_file(
                    os.fspath(file), maker, duration=duration, rate=rate or sampling_rate(duration, 1.0)
                )
                done.append((file, FrameFeatures.concatenate([part for (part,) in parts])))
            except MediaError as error:
                broken.append(error)
    if done:
        _write(done, output, maker, source)
    if format == "json":
        videos = [
            {
                "path": file,
                "frames": len(features),
                "regions": features.values.shape[2],
                "dimension": features.values.shape[3],
            }
            for file, features in done
        ]
        print_json(
            {
                "output": output if done else None,
                "fingerprint": maker.fingerprint,
                "videos": videos,
                "broken": [{"path": failure.path, "cause": failure.cause} for failure in broken],
            }
        )
    elif done:
        frames = sum(len(features) for _, features in done)
        _, regions, dimension = done[0][1].whole.shape
        facts = f"{number(len(done), 'video')}, {number(frames, 'frame')} of {regions} x {dimension}"
        wrote(output, f"{facts}, {maker.fingerprint}")
    end_with_failures(broken, some_usable=bool(done))


def _write(done: list[tuple[Path, FrameFeatures]], output: Path, maker: FrameExtractor, source: str) -> None:
    import numpy as np
    from safetensors.numpy import save

    arrays: dict[str, Any] = {
        "values": np.concatenate([features.whole.astype(np.float32) for _, features in done]),
        "timestamps": np.concatenate([features.timestamps.astype(np.float64) for _, features in done]),
        "information": np.concatenate([features.information.astype(np.float32) for _, features in done]),
        "lengths": np.array([len(features) for _, features in done], np.int64),
    }
    paths = [os.path.abspath(file) for file, _ in done]
    texts = {"fingerprint": maker.fingerprint, "extractor": maker.name}
    with open_output(output, source=source) as partial:
        if output.suffix.lower() == ".npz":
            arrays |= {"paths": np.array(paths), **{name: np.array(text) for name, text in texts.items()}}
            # To a file, as savez would append its own ending to a name.
            with partial.open("wb") as file:
                np.savez(file, **arrays)
        else:
            metadata = {**texts, "paths": json_module.dumps(paths)}
            partial.write_bytes(save(arrays, metadata=metadata))


def whiten(
    paths: Annotated[list[Path], typer.Argument(help="Videos and images, or folders of them.", metavar="PATH")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Safetensors file to write.", dir_okay=False)],
    dimension: Annotated[int, typer.Option("--dimension", min=1, hidden=True)] = 128,
    kind: Annotated[_WhiteningKind, typer.Option("--kind", hidden=True)] = "edits",
    pictures: Annotated[int, typer.Option("--pictures", min=2, hidden=True)] = 1000,
    per_video: Annotated[int, typer.Option("--per-video", min=1, hidden=True)] = 12,
    seed: Annotated[int, typer.Option("--seed", hidden=True)] = 0,
    extractor: Annotated[str, typer.Option("--extractor", "-e", hidden=True)] = "classical",
    weights: WeightsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Fit a whitening to your own videos and images, so that edited copies get more similar features.

    Images are edited as copies are; directions that edits change count less (--kind pca: plain PCA whitening). It is
    for features of --extractor, classical or a network. Use the result with --whitening in index, match and embed.
    """
    from vidkin.features import fit_edit_whitening, fit_image_whitening, open_extractor

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
    source = describe_source("whitening", *paths)
    check_outputs({"--output": (output, source)}, inputs=[*files, weights])
    maker = open_extractor(extractor, weights=weights)
    random.Random(seed).shuffle(files)
    broken: list[MediaError] = []
    with meter("fitting") as bar:
        total = min(pictures, len(files) * per_video)
        fit = fit_image_whitening if kind == "pca" else partial(fit_edit_whitening, seed=seed)
        whitening = fit(
            maker,  # type: ignore[arg-type]  # every extractor of the registry describes images
            _images(files, pictures, per_video, broken),
            dimension=dimension,
            on_progress=lambda done: bar.update(done, total, detail=""),
        )
    whitening.save(output, source=source)
    wrote(output, f"{whitening!r} of {extractor or 'classical'}")
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

"""``vidkin embed``: features of the frames of videos, written to a file."""

from __future__ import annotations

import json as json_module
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin._base.files import open_output
from vidkin.cli.console import end_with_failures, meter, path_text, say
from vidkin.cli.options import (
    ExtractorOption,
    JsonOption,
    ModelOption,
    WeightsOption,
    WhiteningOption,
    extractor_name,
)
from vidkin.cli.paths import check_output_path
from vidkin.errors import MediaError
from vidkin.rendering.text import number, print_json

if TYPE_CHECKING:
    from vidkin.features import FrameExtractor
    from vidkin.similarity import FrameFeatures


def embed(
    files: Annotated[list[Path], typer.Argument(help="Video files.", metavar="FILE")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .safetensors, or .npz for NumPy.", dir_okay=False),
    ],
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, help="Frames per second.", show_default="1, more in short videos"),
    ] = None,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    json: JsonOption = False,
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

    check_output_path(output, inputs=[*files, weights, whitening])
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
        _write(done, output, maker)
    if json:
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
        say(path_text(output).append(f": {facts}, {maker.fingerprint}"))
    end_with_failures(broken, some_usable=bool(done))


def _write(done: list[tuple[Path, FrameFeatures]], output: Path, maker: FrameExtractor) -> None:
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
    with open_output(output) as partial:
        if output.suffix.lower() == ".npz":
            arrays |= {"paths": np.array(paths), **{name: np.array(text) for name, text in texts.items()}}
            # To a file, as savez would append its own ending to a name.
            with partial.open("wb") as file:
                np.savez(file, **arrays)
        else:
            metadata = {**texts, "paths": json_module.dumps(paths)}
            partial.write_bytes(save(arrays, metadata=metadata))

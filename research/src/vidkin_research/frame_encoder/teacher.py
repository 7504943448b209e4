"""Compute the teacher's embeddings of the unedited images once, with one file per source."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.features.onnx_runtime import load_onnxruntime
from vidkin_research.frame_encoder.pictures import Picture, read_pictures, read_sources, squared

__all__ = ["PixelEncoder", "open_pixel_encoder", "teach", "vectors_file"]

logger = logging.getLogger(__name__)

PixelEncoder = Callable[[NDArray[np.uint8]], NDArray[np.float32]]
"""Function from RGB frames [N, side, side, 3] to unit vectors [N, D]."""

_BATCH = 8


def open_pixel_encoder(teacher: str, *, threads: int = 1) -> PixelEncoder:
    """Open a network named ``onnx:FILE`` with a single input of uint8 pixels [N, H, W, 3].

    Raises:
        InvalidArgumentError: The name has a different format, or the file is not such a network.
    """
    kind, _, file = teacher.partition(":")
    if kind != "onnx" or not Path(file).is_file():
        raise InvalidArgumentError(f"teacher must be onnx:FILE with an existing file, got {teacher!r}")
    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()
    if len(given) != 1 or given[0].type != "tensor(uint8)":
        raise InvalidArgumentError(
            f"{file}: the network must have one uint8 input, got {[each.type for each in given]}"
        )

    def encode(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = session.run(None, {given[0].name: images})[0]
        return vectors

    return encode


def vectors_file(work: Path, source: str) -> Path:
    """Return the path of a source's teacher embeddings, float16 [images, D]."""
    return work / "vectors" / f"{source}.npy"


def teach(work: Path, encode: PixelEncoder, *, side: int) -> None:
    """Compute the embeddings of every source that has none stored; files are written atomically.

    Args:
        work: The work folder.
        encode: The teacher.
        side: Side in pixels of its square input.
    """
    for source in read_sources(work):
        target = vectors_file(work, source)
        if target.exists():
            continue
        pictures = read_pictures(work, source)
        vectors = [
            _encode(work, pictures[first : first + _BATCH], encode, side) for first in range(0, len(pictures), _BATCH)
        ]
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".partial")
        with partial.open("wb") as file:
            np.save(file, np.concatenate(vectors))
        partial.rename(target)
        logger.info("%s: vectors of %d images", source, len(pictures))


def _encode(work: Path, pictures: Sequence[Picture], encode: PixelEncoder, side: int) -> NDArray[np.float16]:
    return encode(np.stack([squared(each.read(work), side) for each in pictures])).astype(np.float16)

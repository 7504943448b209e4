"""The teacher's vectors of the stored crops: computed once, a file for each shard, plain crops before edited ones."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.crops import CropRow, decode_crop, read_shard

__all__ = ["Part", "PixelEncoder", "missing_files", "open_pixel_encoder", "rows_of_part", "teach", "vectors_file"]

logger = logging.getLogger(__name__)

Part = Literal["plain", "edited"]
PixelEncoder = Callable[[NDArray[np.uint8]], NDArray[np.float32]]
"""From frames [N, side, side, 3] in RGB to unit vectors [N, D]."""

_BATCH = 8


def open_pixel_encoder(teacher: str, *, threads: int = 1) -> PixelEncoder:
    """The network named by ``onnx:FILE``, whose one input is uint8 pixels [N, H, W, 3].

    Raises:
        InvalidArgumentError: The name is of another form, or the file cannot be opened as such a network.
    """
    kind, _, file = teacher.partition(":")
    if kind != "onnx" or not Path(file).is_file():
        raise InvalidArgumentError(f"teacher must be onnx:FILE with an existing file, got {teacher!r}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()
    if len(given) != 1 or given[0].type != "tensor(uint8)":
        raise InvalidArgumentError(f"{file} must have one input of uint8 pixels, got {[each.type for each in given]}")

    def encode(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = session.run(None, {given[0].name: images})[0]
        return vectors

    return encode


def vectors_file(work: Path, shard: int, part: Part) -> Path:
    """The file of vectors, float16 [rows of this part, D], of a shard."""
    return work / "vectors" / f"{shard:04d}.{part}.npy"


def rows_of_part(rows: list[CropRow], part: Part) -> list[CropRow]:
    """The rows of a shard that a file of vectors holds, in its order."""
    return [row for row in rows if (row.edit == 0) == (part == "plain")]


def missing_files(work: Path) -> list[tuple[int, Part]]:
    """The files of vectors that the shards that are there still lack, in the order in which they are computed."""
    shards = sorted(int(file.stem) for file in (work / "crops").glob("*.json"))
    parts: tuple[Part, ...] = ("plain", "edited")
    return [(shard, part) for part in parts for shard in shards if not vectors_file(work, shard, part).exists()]


def teach(work: Path, encode: PixelEncoder) -> bool:
    """Compute one file of vectors that is missing, and return whether there was one.

    Shards are looked for anew at every call, because crops are written meanwhile.
    """
    missing = missing_files(work)
    if not missing:
        return False
    shard, part = missing[0]
    rows, content = read_shard(work, shard)
    chosen = rows_of_part(rows, part)
    vectors = []
    for first in range(0, len(chosen), _BATCH):
        images = [decode_crop(content[row.offset : row.offset + row.length]) for row in chosen[first : first + _BATCH]]
        vectors.append(encode(np.stack(images)).astype(np.float16))
    target = vectors_file(work, shard, part)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as file:
        np.save(file, np.concatenate(vectors))
    partial.rename(target)
    logger.info("vectors of shard %d, %s: %d", shard, part, len(chosen))
    return True

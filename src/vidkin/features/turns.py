"""Mirrored and turned pictures: their vectors, predicted from those of the picture without reading it again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin.media import Frames
from vidkin.similarity import FrameFeatures

Turn = Literal["mirrored", "turned 90", "turned 180", "turned 270"]
"""Flipped left to right, or turned clockwise by so many degrees."""

TURNS: tuple[Turn, ...] = get_args(Turn)
TURNS_FILE = Path(__file__).with_name("data") / "frame_encoder_turns.safetensors"
"""A matrix [D, D] for each turn, fitted by ``benchmarks/ship_turns.py``; its metadata names the encoder."""

_Number = TypeVar("_Number", bound=np.generic)


def turned(images: NDArray[_Number], turn: Turn) -> NDArray[_Number]:
    """Images [..., H, W] after the turn."""
    if turn == "mirrored":
        return images[..., ::-1]
    return np.rot90(images, -int(turn.split()[1]) // 90, axes=(-2, -1))


def turn_frames(frames: Frames, degrees: int) -> Frames:
    """The frames turned clockwise by 0, 90, 180 or 270 degrees."""
    if degrees == 0:
        return frames
    images = np.ascontiguousarray(np.rot90(frames.images, -degrees // 90, axes=(1, 2)))
    return Frames(images, frames.timestamps)


def turn_boxes_back(boxes: NDArray[_Number], degrees: int) -> NDArray[_Number]:
    """Boxes [..., 4] in a picture turned clockwise, as boxes in the picture before; boxes of zeros stay.

    Args:
        boxes: Left, top, right, bottom as shares of the turned picture.
        degrees: 0, 90, 180 or 270.
    """
    left, top, right, bottom = np.moveaxis(boxes, -1, 0)
    one = boxes.dtype.type(1)
    back = {
        0: (left, top, right, bottom),
        90: (top, one - right, bottom, one - left),
        180: (one - right, one - bottom, one - left, one - top),
        270: (one - bottom, left, one - top, right),
    }[degrees]
    return np.where(boxes.any(axis=-1, keepdims=True), np.stack(back, axis=-1), boxes)


def predict_turned(features: FrameFeatures, turn: Turn, *, encoder: str) -> FrameFeatures | None:
    """Features of whole pictures as they would be after the turn; None if nobody fitted that for this encoder.

    A vector v becomes ``v M / |v M|``. For footage that the matrices were not fitted to, the median cosine with the
    true vector is about .88 (mirrored), and with those of other videos about .1: enough to choose the pairs that
    deserve a look, not to score them.

    Args:
        features: [T, V, 1, D]; only the first view is used.
        turn: What is done to the picture.
        encoder: Digest of the encoder's settings and weights.
    """
    fitted, matrices = _shipped()
    if encoder != fitted or features.values.shape[2:] != (1, len(matrices[turn])):
        return None
    values = features.whole[:, 0].astype(np.float32) @ matrices[turn]
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    values /= np.where(lengths > 0, lengths, 1.0)
    return replace(features.views([0]), values=values[:, None, None])


@cache
def _shipped() -> tuple[str, dict[str, NDArray[np.float32]]]:
    """Digest of the encoder that the matrices were fitted to, and the matrices."""
    from safetensors import safe_open

    with safe_open(TURNS_FILE, framework="np") as file:
        return file.metadata()["encoder"], {name: file.get_tensor(name).astype(np.float32) for name in TURNS}

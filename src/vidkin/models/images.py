"""Frames of any shape as the square input of an encoder."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from vidkin.models.config import EncoderConfig

__all__ = ["encoder_input"]


def encoder_input(images: NDArray[np.uint8], config: EncoderConfig, *, mirror: bool = False) -> torch.Tensor:
    """Frames [T, H, W, 3] uint8 as squares [T, 3, S, S] from 0 to 1, made as for the training data.

    Args:
        images: RGB, preferably decoded with a short side of S, as labelled items are.
        config: ``size`` and ``fit`` are used.
        mirror: Flip left to right.
    """
    squares = np.empty((len(images), config.size, config.size, 3), dtype=np.uint8)
    for index, image in enumerate(images):
        # The same steps as in the readers of labelled data, so that a search sees what the training saw.
        picture = Image.fromarray(image)
        width, height = picture.size
        if config.fit == "crop" and width != height:
            side = min(width, height)
            left, top = (width - side) // 2, (height - side) // 2
            picture = picture.crop((left, top, left + side, top + side))
        inner = (config.size, config.size)
        if config.fit == "letterbox":
            scale = config.size / max(width, height)
            inner = (max(1, round(width * scale)), max(1, round(height * scale)))
        if picture.size != inner:
            picture = picture.resize(inner, Image.Resampling.BILINEAR)
        if inner != (config.size, config.size):
            square = Image.new("RGB", (config.size, config.size))
            square.paste(picture, ((config.size - inner[0]) // 2, (config.size - inner[1]) // 2))
            picture = square
        squares[index] = np.asarray(picture)
    if mirror:
        squares = squares[:, :, ::-1].copy()
    return torch.from_numpy(squares).permute(0, 3, 1, 2).float() / 255

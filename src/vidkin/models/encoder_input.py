"""Frames of any shape as the square input of an encoder."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from vidkin.media.squares import fit_to_square
from vidkin.models.config import EncoderConfig

__all__ = ["encoder_input"]


def encoder_input(images: NDArray[np.uint8], config: EncoderConfig, *, mirror: bool = False) -> torch.Tensor:
    """Frames [T, H, W, 3] uint8 as squares [T, 3, S, S] from 0 to 1, made as for the training data.

    Args:
        images: RGB, preferably decoded with a short side of S, as labeled items are.
        config: ``size`` and ``fit`` are used.
        mirror: Flip left to right.
    """
    squares = np.empty((len(images), config.size, config.size, 3), dtype=np.uint8)
    for index, image in enumerate(images):
        squares[index] = fit_to_square(Image.fromarray(image), config.size, config.fit)
    if mirror:
        squares = squares[:, :, ::-1].copy()
    return torch.from_numpy(squares).permute(0, 3, 1, 2).float() / 255

"""From images to features of frames and embeddings of clips: arrays around a clip encoder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin.media import iter_frames

if TYPE_CHECKING:
    from torch import Tensor

    from vidkin.models.config import Fit
    from vidkin.shots.learned.shot_windows import Encode

__all__ = ["HasHead", "ShotModel", "encode_with", "fit_to_square", "frame_features", "video_features"]

_BATCH = 16


class HasHead(Protocol):
    """A clip encoder behind its frame network."""

    def head(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Features of clips [B, T, F] to unit vectors [B, D]."""


class ShotModel(HasHead, Protocol):
    """What the learned detector needs of a clip encoder (`vidkin.models.ClipEncoder`)."""

    def frame_features(self, frames: Tensor) -> Tensor:
        """Frames [N, 3, S, S] in 0..1 to features [N, F]."""


def video_features(
    model: ShotModel, path: str | os.PathLike[str], *, size: int, fit: Fit = "stretch"
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Features [T, F] of all frames of a video and their times [T]: what rules are fitted on.

    Args:
        model: In eval mode.
        path: The video.
        size: S, side of the square images that the model takes.
        fit: How frames become square, see `fit_to_square`.

    Raises:
        MediaError: The file cannot be read as video.
    """
    parts, times = [], []
    for batch in iter_frames(path, rate=None, short_side=size, batch=_BATCH):
        squares = np.stack([fit_to_square(image, size, fit) for image in batch.images])
        parts.append(frame_features(model, squares))
        times.append(batch.timestamps)
    return np.concatenate(parts), np.concatenate(times)


def frame_features(model: ShotModel, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features [N, F] of square images [N, S, S, 3] uint8."""
    import torch

    with torch.inference_mode():
        inputs = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
        features: NDArray[np.float32] = model.frame_features(inputs).float().cpu().numpy()
    return features


def encode_with(model: HasHead) -> Encode:
    """The model's head as a function of arrays: clips of features [B, W, F] to embeddings [B, D]."""
    import torch

    def encode(clips: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            embeddings: NDArray[np.float32] = model.head(torch.from_numpy(clips)).float().cpu().numpy()
        return embeddings

    return encode


def fit_to_square(image: NDArray[np.uint8], size: int, fit: Fit = "stretch") -> NDArray[np.uint8]:
    """An image [H, W, 3] as [size, size, 3].

    ``stretch`` changes its proportions, ``crop`` cuts out the center, ``letterbox`` adds black bars.
    """
    from PIL import Image

    height, width = image.shape[:2]
    if (height, width) == (size, size):
        return image
    picture = Image.fromarray(image)
    if fit == "stretch":
        return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR))
    if fit == "crop":
        side = min(height, width)
        box = ((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2)
        return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR, box=box))
    scale = size / max(height, width)
    inner = picture.resize(
        (max(1, round(width * scale)), max(1, round(height * scale))), Image.Resampling.BILINEAR
    )
    square = Image.new("RGB", (size, size))
    square.paste(inner, ((size - inner.width) // 2, (size - inner.height) // 2))
    return np.asarray(square)

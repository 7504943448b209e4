"""From images to features of frames and embeddings of clips: NumPy arrays in and out of a clip encoder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.learned.video_frames import iter_squares

if TYPE_CHECKING:
    from torch import Tensor

    from vidkin.models.config import Fit
    from vidkin.shots.learned.shot_windows import Encode

__all__ = ["ShotModel", "VideoFeatures", "encode_with", "frame_features", "video_features"]


class ShotModel(Protocol):
    """The clip encoder the learned detector needs (`vidkin.models.ClipEncoder`)."""

    def head(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Unit vectors [B, D] of clips of features [B, T, F]."""

    def frame_features(self, frames: Tensor) -> Tensor:
        """Features [N, F] of frames [N, 3, S, S] in 0..1."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """Features of the frames of a video that a detector examines.

    Attributes:
        rows: [T, F] float32 features.
        numbers: [T] int64, numbers of these frames in the video.
        times: [T] float64 times in seconds.
        frames: Number of all frames of the video.
    """

    rows: NDArray[np.float32]
    numbers: NDArray[np.int64]
    times: NDArray[np.float64]
    frames: int


def video_features(
    model: ShotModel,
    path: str | os.PathLike[str],
    *,
    size: int,
    fit: Fit = "stretch",
    rate: float | None = None,
) -> VideoFeatures:
    """Compute features of the frames of a video, for fitting rules.

    Args:
        model: The clip encoder, in eval mode.
        path: The video.
        size: S, side of the square images the model takes.
        fit: How frames are made square, see `fit_to_square`.
        rate: Maximum frames per second, see `iter_squares`; None: all frames.

    Raises:
        MediaError: The file cannot be read as video.
    """
    rows, numbers, times = [], [], []
    frames = 0
    for squares in iter_squares(path, size=size, fit=fit, rate=rate):
        rows.append(frame_features(model, squares.images))
        numbers.append(squares.numbers)
        times.append(squares.times)
        frames = squares.read
    return VideoFeatures(np.concatenate(rows), np.concatenate(numbers), np.concatenate(times), frames)


def frame_features(model: ShotModel, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features [N, F] of square images [N, S, S, 3] uint8."""
    import torch

    with torch.inference_mode():
        inputs = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
        features: NDArray[np.float32] = model.frame_features(inputs).float().cpu().numpy()
    return features


def encode_with(model: ShotModel) -> Encode:
    """The model's head as a function of arrays, from clips of features [B, W, F] to embeddings [B, D]."""
    import torch

    def encode(clips: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            embeddings: NDArray[np.float32] = model.head(torch.from_numpy(clips)).float().cpu().numpy()
        return embeddings

    return encode

"""From images to features of frames and embeddings of clips: arrays around a clip encoder."""

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

__all__ = ["HasHead", "ShotModel", "VideoFeatures", "encode_with", "frame_features", "video_features"]


class HasHead(Protocol):
    """A clip encoder behind its frame network."""

    def head(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Features of clips [B, T, F] to unit vectors [B, D]."""


class ShotModel(HasHead, Protocol):
    """The clip encoder that the learned detector needs (`vidkin.models.ClipEncoder`)."""

    def frame_features(self, frames: Tensor) -> Tensor:
        """Frames [N, 3, S, S] in 0..1 to features [N, F]."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """Features of the frames of a video that a detector looks at.

    Attributes:
        rows: [T, F] float32.
        numbers: [T] int64 of these frames in the video.
        times: [T] float64 seconds.
        frames: All frames of the video.
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
    """Features of the frames of a video, for fitting rules.

    Args:
        model: In eval mode.
        path: The video.
        size: S, side of the square images that the model takes.
        fit: How frames become square, see `fit_to_square`.
        rate: Frames a second at most, see `iter_squares`; None: all frames.

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


def encode_with(model: HasHead) -> Encode:
    """The model's head as a function of arrays: clips of features [B, W, F] to embeddings [B, D]."""
    import torch

    def encode(clips: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            embeddings: NDArray[np.float32] = model.head(torch.from_numpy(clips)).float().cpu().numpy()
        return embeddings

    return encode

"""Rows that need no training: features of a pretrained network."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vidkin.features.sessions import resolve_device
from vidkin.models import Encoder, EncoderConfig, build_model
from vidkin_research.images.contract import ImageRow, ImageTask

__all__ = ["NETWORK_ROWS"]

_CHUNK = 32


class NetworkFeatures:
    """Pooled features of a frozen network, compared by cosine."""

    def __init__(self, task: ImageTask, seed: int, *, backbone: str | None = None) -> None:
        backbone = backbone or task.backbone
        config = EncoderConfig(kind="image", backbone=backbone, trainable="head", size=task.train.size)
        weights = task.weights if backbone == task.backbone else None
        self._model: Encoder = build_model(config, weights=weights, seed=seed).eval().to(resolve_device(task.device))

    @torch.no_grad()
    def describe(self, images: NDArray[np.uint8]) -> Tensor:
        """Compute unit vectors [N, F]."""
        parts = []
        for chunk in np.array_split(images, -(-len(images) // _CHUNK)):
            inputs = torch.from_numpy(chunk).to(self._model.device).movedim(-1, 1).float() / 255
            parts.append(nn.functional.normalize(self._model.backbone_features(inputs), dim=1).cpu())
        return torch.cat(parts)

    def distances(self, queries: Tensor, gallery: Tensor) -> Tensor:
        """Compute 1 - cosine, [Q, G]."""
        return 1 - queries @ gallery.T


NETWORK_ROWS: tuple[ImageRow, ...] = tuple(
    ImageRow(name, partial(NetworkFeatures, backbone=backbone), group="network", is_seeded=False)
    for name, backbone in (
        ("ConvNet features, vidkin", "vidkin"),
        ("ConvNet features, MobileNetV2", None),
    )
)
"""vidkin's built-in encoder, and the task's backbone, by default MobileNetV2 pretrained on ImageNet."""

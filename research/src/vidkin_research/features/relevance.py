"""Image relevance from a classical feature, for recipes (``data.relevance``)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidkin_research.features.storage import open_feature

__all__ = ["relevance_by_feature"]


def relevance_by_feature(name: str, images: NDArray[np.uint8], categories: Tensor) -> Tensor:
    """Return relevance [N, N] in [0, 1] from a classical feature.

    Relevance is 1 - distance, scaled by the range of distances within categories, and 0 across categories.

    Args:
        name: ``classical:<feature>``.
        images: [N, S, S, 3] uint8.
        categories: [N] int64.
    """
    feature = open_feature(name.removeprefix("classical:"))
    descriptors = feature.describe(list(images))
    distances = feature.distances(descriptors, descriptors)
    same = categories[:, None] == categories[None]
    same.fill_diagonal_(False)
    if not bool(same.any()):
        return torch.zeros_like(distances)
    low, high = distances[same].min(), distances[same].max()
    scaled = 1 - (distances - low) / (high - low).clamp_min(1e-12)
    relevance: Tensor = torch.where(same, scaled.clamp(0, 1), torch.zeros_like(scaled))
    return relevance

"""Graded relevance from labels."""

from __future__ import annotations

import torch

from vidkin.errors import InvalidArgumentError

__all__ = ["graded_relevance"]


def graded_relevance(query_labels: torch.Tensor, gallery_labels: torch.Tensor) -> torch.Tensor:
    """How many levels of the label hierarchy a query shares with each gallery item, from the coarsest down.

    With labels (category, subcategory) this is 2 for the same subcategory, 1 for the same category only, 0
    otherwise. A subcategory number counts only inside its category, so numbers may repeat between categories.

    Args:
        query_labels: [Q] or [Q, L] integers, the coarsest level first.
        gallery_labels: [G] or [G, L] integers.

    Returns:
        [Q, G] int64 in 0..L.

    Raises:
        InvalidArgumentError: The two do not have the same number of levels.
    """
    query = query_labels.unsqueeze(1) if query_labels.ndim == 1 else query_labels
    gallery = gallery_labels.unsqueeze(1) if gallery_labels.ndim == 1 else gallery_labels
    if query.ndim != 2 or gallery.ndim != 2 or query.shape[1] != gallery.shape[1]:
        raise InvalidArgumentError(
            "labels must be [N] or [N, L] with the same L on both sides, "
            f"got {list(query_labels.shape)} and {list(gallery_labels.shape)}"
        )
    # One level at a time: [Q, G, L] would be the largest tensor of an evaluation.
    shared = torch.ones(len(query), len(gallery), dtype=torch.bool, device=query.device)
    relevance = torch.zeros(len(query), len(gallery), dtype=torch.int64, device=query.device)
    for level in range(query.shape[1]):
        shared &= query[:, level, None] == gallery[None, :, level]
        relevance += shared
    return relevance

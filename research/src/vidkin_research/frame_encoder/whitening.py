"""Fit a whitening: the linear layer that makes edits of an image differ least, relative to other images.

Mikolajczyk and Matas 2007, "Improving descriptors for fast tree matching by optimal linear projection"; for retrieval
Radenovic, Tolias and Chum 2018, "Fine-tuning CNN image retrieval with no human annotation".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError

__all__ = ["fit_whitening"]

Features = NDArray[np.float64]


def fit_whitening(
    plain: Features, edited: Features, *, dimension: int, ridge: float, power: float = 0.5
) -> tuple[Features, Features]:
    """Compute the projection of features from images and edited views of the same images.

    With the covariance W of differences between an image and its edited views, the features less the mean of the images
    are multiplied by (W + ridge * mean(eigenvalues of W))^-power, and projected to the principal axes of the images
    after that. If the mean were not subtracted, unrelated images would have something in common.

    Args:
        plain: Features of the images, [N, D].
        edited: Features of V edited views of each image, [V, N, D].
        dimension: Length of the projected vectors, at most D.
        ridge: Share of the mean eigenvalue added to all; smaller values trust the estimate more.
        power: 0.5 is whitening, 0 none.

    Returns:
        The projection [dimension, D] and the shift [dimension] that is added to it.

    Raises:
        InvalidArgumentError: The shapes do not match, or `dimension` is larger than D.
    """
    if plain.ndim != 2 or edited.ndim != 3 or edited.shape[1:] != plain.shape:
        raise InvalidArgumentError(
            f"plain must be [N, D] and edited [V, N, D] of the same images, got {plain.shape} and {edited.shape}"
        )
    if not 1 <= dimension <= plain.shape[1]:
        raise InvalidArgumentError(f"dimension must be from 1 to {plain.shape[1]}, got {dimension}")
    if ridge <= 0:
        raise InvalidArgumentError(f"ridge must be above 0, got {ridge}")
    differences = (edited - plain).reshape(-1, plain.shape[1])
    values, axes = np.linalg.eigh(differences.T @ differences / len(differences))
    values = values.clip(min=0.0)
    whitening = (axes * (values + ridge * values.mean()) ** -power) @ axes.T
    mean = plain.mean(axis=0)
    centered = (plain - mean) @ whitening
    _, directions = np.linalg.eigh(centered.T @ centered)
    projection: Features = directions[:, ::-1][:, :dimension].T @ whitening
    return projection, -(projection @ mean)

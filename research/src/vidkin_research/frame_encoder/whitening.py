"""Fit a whitening: the linear layer that minimizes differences between edits of an image, relative to other images.

Source: Mikolajczyk and Matas 2007, "Improving descriptors for fast tree matching by optimal linear projection"; for
retrieval, Radenovic, Tolias and Chum 2018, "Fine-tuning CNN image retrieval with no human annotation".
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
    """Compute a projection from features of images and of edited views of the same images.

    With W the covariance of the differences between an image and its edited views, the mean of the images is subtracted
    from the features, which are then multiplied by (W + ridge * mean(eigenvalues of W))^-power and projected onto the
    principal axes of the images. Without subtracting the mean, unrelated images would be similar.

    Args:
        plain: Features of the images, [N, D].
        edited: Features of V edited views of each image, [V, N, D].
        dimension: Number of dimensions of the projected vectors, at most D.
        ridge: Fraction of the mean eigenvalue added to all eigenvalues; smaller values trust the estimate more.
        power: Exponent; 0.5 whitens, 0 has no effect.

    Returns:
        The projection [dimension, D] and the shift [dimension] to add after projecting.

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

"""Learned whitening of features."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.whitening import fit_whitening


def sample(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sample features whose first 4 of 12 dimensions vary by image, and the last 4 by view."""
    random = np.random.default_rng(seed)
    plain = random.standard_normal((400, 12)) * ([1.0] * 4 + [0.1] * 4 + [0.3] * 4)
    edited = plain + random.standard_normal((2, 400, 12)) * ([0.1] * 4 + [0.1] * 4 + [4.0] * 4)
    return plain, edited


def recall(plain: NDArray[np.float64], view: NDArray[np.float64]) -> float:
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (plain, view)]
    return float(((unit[1] @ unit[0].T).argmax(axis=1) == np.arange(len(plain))).mean())


@pytest.mark.parametrize("dimension", [4, 12])
def test_edits_matter_less_after_whitening(dimension: int) -> None:
    projection, shift = fit_whitening(*sample(1), dimension=dimension, ridge=1e-3)
    assert projection.shape == (dimension, 12)
    plain, (view, _) = sample(2)
    assert recall(plain @ projection.T + shift, view @ projection.T + shift) > recall(plain, view) + 0.5


def test_whitening_with_power_zero_preserves_angles_around_the_mean() -> None:
    plain, edited = sample(1)
    plain, edited = plain + 2.0, edited + 2.0
    projection, shift = fit_whitening(plain, edited, dimension=12, ridge=1e-3, power=0.0)
    assert np.allclose(projection @ projection.T, np.eye(12), atol=1e-9)
    assert np.allclose((plain @ projection.T + shift).mean(axis=0), 0.0, atol=1e-9)


def test_whitened_differences_have_equal_variance_in_all_directions() -> None:
    plain, edited = sample(1)
    projection, _ = fit_whitening(plain, edited, dimension=12, ridge=1e-9)
    differences = ((edited - plain) @ projection.T).reshape(-1, 12)
    assert np.allclose(differences.T @ differences / len(differences), np.eye(12), atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 13}, "dimension must be from 1 to 12, got 13"),
        ({"ridge": 0.0}, "ridge must be above 0, got 0.0"),
        ({"edited": np.zeros((2, 3, 12))}, r"of the same images, got \(400, 12\) and \(2, 3, 12\)"),
    ],
)
def test_invalid_arguments_are_rejected(changes: dict[str, object], message: str) -> None:
    plain, edited = sample(1)
    given = {"plain": plain, "edited": edited, "dimension": 4, "ridge": 0.1, **changes}
    with pytest.raises(InvalidArgumentError, match=message):
        fit_whitening(**given)  # type: ignore[arg-type]

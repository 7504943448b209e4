"""What is measured in a stretch that may be a transition: how far it is a wipe."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.shots.cut_numbers import PictureBlocks, measure_wipe


@pytest.fixture(scope="module")
def shots() -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Two pictures of squares of 4 x 4 samples that have no block in common."""
    one, other = np.random.default_rng(0).integers(20, 230, (2, 32, 32), np.uint8)
    return one.repeat(4, 0).repeat(4, 1), other.repeat(4, 0).repeat(4, 1)


def test_a_wipe_goes_over_block_by_block(shots: tuple[np.ndarray, np.ndarray]) -> None:  # type: ignore[type-arg]
    """From the left: a quarter, half and three quarters of the columns are of the other shot."""
    one, other = shots
    way = [np.concatenate([other[:, :edge], one[:, edge:]], 1) for edge in (32, 64, 96)]
    assert measure_wipe([PictureBlocks(frame) for frame in (one, one, *way, other, other)]) == (1.0, 1.0, 0.5)


def test_a_dissolve_is_never_divided(shots: tuple[np.ndarray, np.ndarray]) -> None:  # type: ignore[type-arg]
    """Halfway each block is like both shots or like none."""
    one, other = (shot.astype(float) for shot in shots)
    way = [((1 - part) * one + part * other).astype(np.uint8) for part in (0.45, 0.5, 0.55)]
    frames = [shots[0], shots[0], *way, shots[1], shots[1]]
    differ, divided, _ = measure_wipe([PictureBlocks(frame) for frame in frames])
    assert differ == 1.0
    assert divided < 0.35


def test_where_the_shots_are_alike_nothing_goes_over(shots: tuple[np.ndarray, np.ndarray]) -> None:  # type: ignore[type-arg]
    assert measure_wipe([PictureBlocks(shots[0])] * 7) == (0.0, 0.0, 0.0)

"""Source shots for compositions: lengths, value ranges and dependence on the seed."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin_research.made.footage import Clip, Footage
from vidkin_research.made.takes import ShotMaker


def footage(*, clips: int = 2, photographs: int = 1) -> Footage:
    random = np.random.default_rng(4)
    made = tuple(
        Clip(
            f"clip {number}",
            random.integers(0, 256, (40, 18, 32), dtype=np.uint8),
            random.integers(0, 256, (40, 2, 9, 16), dtype=np.uint8),
        )
        for number in range(clips)
    )
    pictures = tuple(random.integers(0, 256, (3, 40, 70), dtype=np.uint8) for _ in range(photographs))
    return Footage(18, 32, made, pictures)


def draws(count: int, length: int = 20, seed: int = 0, **made_of: int) -> list[np.ndarray]:
    maker = ShotMaker(footage(**made_of), np.random.default_rng(seed))
    return [maker.draw(length) for _ in range(count)]


@pytest.mark.parametrize("length", [1, 2, 13, 60])
def test_shots_have_the_requested_length(length: int) -> None:
    for shot in draws(25, length):
        assert shot.shape == (length, 3, 18, 32)
        assert shot.dtype == np.float32
        assert np.isfinite(shot).all()


def test_luma_is_in_range() -> None:
    for shot in draws(40):
        assert 0 <= shot[:, 0].min() <= shot[:, 0].max() <= 255


def test_shots_are_determined_by_the_seed() -> None:
    first, again, other = draws(5, seed=1), draws(5, seed=1), draws(5, seed=2)
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not all(np.array_equal(one, two) for one, two in zip(first, other, strict=True))


def test_few_shots_are_still_cards() -> None:
    still = sum(bool((shot == shot[:1]).all()) for shot in draws(200))
    # Seven percent are title cards.
    assert 3 <= still <= 40


def test_footage_without_photographs_has_only_clips_and_cards() -> None:
    assert len(draws(30, photographs=0)) == 30


def test_shot_can_be_longer_than_its_clip() -> None:
    for shot in draws(10, 200, photographs=0):
        assert len(shot) == 200

"""What stays of the picture: nothing moved, a graphic popped up, everything else, other brightness."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.shots.regions import (
    PictureBlocks,
    PictureStep,
    changed_blocks,
    compare_regions,
    measure_filled_rectangle,
    measure_uniform_change,
)


@pytest.fixture(scope="module")
def picture() -> np.ndarray:  # type: ignore[type-arg]
    """Squares of 4 x 4 samples, so that every block has something to see."""
    return np.random.default_rng(0).integers(40, 160, (32, 32), np.uint8).repeat(4, 0).repeat(4, 1)


def test_all_of_a_still_picture_stays(picture: np.ndarray) -> None:  # type: ignore[type-arg]
    assert compare_regions(PictureBlocks(picture), PictureBlocks(picture)) == (1.0, 0.0)


def test_a_graphic_changes_its_rectangle_alone(picture: np.ndarray) -> None:  # type: ignore[type-arg]
    """Of 8 x 8 blocks of 16 samples 2 x 3 are covered."""
    after = picture.copy()
    after[32:64, 16:64] = 235
    assert compare_regions(PictureBlocks(picture), PictureBlocks(after)) == (pytest.approx(1 - 6 / 64), 1.0)


def test_nothing_of_another_picture_stays(picture: np.ndarray) -> None:  # type: ignore[type-arg]
    stays, filled = compare_regions(PictureBlocks(picture), PictureBlocks(picture[::-1].copy()))
    assert stays < 0.1
    assert filled > 0.9


def test_a_change_of_brightness_leaves_regions_alike(picture: np.ndarray) -> None:  # type: ignore[type-arg]
    assert compare_regions(PictureBlocks(picture), PictureBlocks(picture + np.uint8(60))) == (1.0, 0.0)


def test_changed_blocks_are_located(picture: np.ndarray) -> None:  # type: ignore[type-arg]
    after = picture.copy()
    after[32:64, 16:64] = 235
    changed = changed_blocks(PictureBlocks(picture), PictureBlocks(after))
    assert np.argwhere(changed).tolist() == [[2, 1], [2, 2], [2, 3], [3, 1], [3, 2], [3, 3]]


def test_a_graphic_is_a_rectangle_and_a_thing_that_moves_is_none() -> None:
    picture = np.full((128, 128), 60, np.uint8)
    graphic, moved = picture.copy(), picture.copy()
    graphic[32:64, 16:64] = 235
    for place in range(60):  # along the diagonal
        moved[place : place + 12, place : place + 12] = 235
    assert measure_filled_rectangle(PictureStep(picture, graphic)) == 1.0
    assert measure_filled_rectangle(PictureStep(picture, moved)) < 0.4
    assert measure_filled_rectangle(PictureStep(picture, picture)) == 0.0


def test_letters_over_a_picture_are_told_from_another_picture() -> None:
    random = np.random.default_rng(0)
    picture = random.integers(16, 236, (128, 128), np.uint8)
    letters = picture.copy()
    letters[40:60, 20:100] = 235
    assert (
        measure_uniform_change(PictureStep(picture, letters))
        == measure_uniform_change(PictureStep(letters, picture))
        == 0.0
    )
    # Another picture in the same place, another picture everywhere, letters over black, nothing.
    inside = picture.copy()
    inside[40:60, 20:100] = random.integers(16, 236, (20, 80))
    title = np.full_like(picture, 16)
    for one, other in ((picture, inside), (picture, picture[::-1]), (title, letters), (picture, picture)):
        assert measure_uniform_change(PictureStep(one, other)) > 0.5

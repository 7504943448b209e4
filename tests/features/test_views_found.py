"""Content boxes are found in synthetic frames with known boxes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import pan
from vidkin.features import find_content_boxes, overlap

FRAMES = 16


NAMES = ("coffee", "chelsea", "astronaut", "rocket")


def moving(height: int, width: int, seed: int) -> NDArray[np.uint8]:
    """Three seconds of a camera moving over a photograph, [16, H, W, 3]."""
    frames = list(pan(NAMES[seed % len(NAMES)], 6 * FRAMES, width=width, height=height, seed=seed))
    return np.stack(frames[::6])


def best(images: NDArray[np.uint8], truth: tuple[float, float, float, float]) -> float:
    return max((overlap(tuple(box), truth) for box in find_content_boxes(images).tolist()), default=0.0)


def test_uniform_border_is_found() -> None:
    images = np.full((FRAMES, 160, 90, 3), (200, 30, 60), np.uint8)
    images[:, 50:110] = moving(60, 90, 1)
    assert best(images, (0, 50 / 160, 1, 110 / 160)) > 0.9


@pytest.mark.parametrize(("place", "seed"), [((0.1, 0.3), 2), ((0.4, 0.35), 3), ((0.02, 0.38), 5)])
def test_inset_is_found_at_any_position(place: tuple[float, float], seed: int) -> None:
    images = moving(120, 160, seed)
    left, top = round(place[0] * 160), round(place[1] * 120)
    images[:, top : top + 72, left : left + 96] = moving(72, 96, seed + 1)
    truth = (left / 160, top / 120, (left + 96) / 160, (top + 72) / 120)
    assert best(images, truth) > 0.9


def test_both_halves_of_a_split_screen_are_found() -> None:
    images = np.concatenate([moving(120, 80, 4), moving(120, 80, 5)], axis=2)
    assert best(images, (0, 0, 0.5, 1)) > 0.9
    assert best(images, (0.5, 0, 1, 1)) > 0.9


def test_tilted_screen_in_a_still_photograph_is_found() -> None:
    """The sides of the screen are not vertical, but everything that changes is inside it."""
    picture = moving(60, 80, 6)
    images = np.repeat(moving(120, 160, 3)[:1], FRAMES, axis=0)
    for row in range(60):  # shifted right by a pixel every 4 rows
        left = 40 + row // 4
        images[:, 30 + row, left : left + 80] = picture[:, row]
    truth = (40 / 160, 30 / 120, 134 / 160, 90 / 120)
    assert best(images, truth) > 0.85


def test_small_moving_object_in_a_still_image_has_no_box() -> None:
    images = np.full((FRAMES, 128, 128, 3), 120, np.uint8)
    for place in range(FRAMES):
        images[place, 60:70, 40 + place : 50 + place] = 250
    assert find_content_boxes(images).shape == (0, 4)


def test_scattered_changes_have_no_box() -> None:
    """The two changing corners fill less than 60 % of their bounding rectangle."""
    images = np.full((FRAMES, 128, 128, 3), 120, np.uint8)
    noise = np.random.default_rng(0).integers(0, 255, (FRAMES, 40, 40, 3), np.uint8)
    images[:, 10:50, 10:50] = noise
    images[:, 80:120, 80:120] = noise
    assert best(images, (10 / 128, 10 / 128, 120 / 128, 120 / 128)) < 0.8


def test_plain_video_has_no_box() -> None:
    assert find_content_boxes(np.zeros((FRAMES, 64, 64, 3), np.uint8)).shape == (0, 4)
    assert find_content_boxes(moving(64, 64, 7)[:1]).shape == (
        0,
        4,
    )  # a single frame does not show what stays the same


def test_image_on_a_page_with_many_lines_is_found() -> None:
    page = np.full((2, 256, 256, 3), 250, np.uint8)
    page[:, :, 4:256:8] = 30  # 32 vertical lines around the image
    page[:, 90:170, 60:140] = moving(80, 80, 2)[:1]
    assert best(page, (60 / 256, 90 / 256, 140 / 256, 170 / 256)) > 0.7


def test_at_most_four_boxes_are_found() -> None:
    tiles = np.concatenate(
        [np.concatenate([moving(40, 40, 10 * row + column) for column in range(4)], 2) for row in range(4)], 1
    )
    boxes = find_content_boxes(tiles)
    assert 1 <= len(boxes) <= 4
    assert bool((boxes[:, 2:] > boxes[:, :2]).all())


def test_overlap_is_intersection_over_union() -> None:
    assert overlap((0, 0, 1, 1), (0, 0, 1, 1)) == 1.0
    assert overlap((0, 0, 1, 1), (0.5, 0, 1.5, 1)) == pytest.approx(1 / 3)
    assert overlap((0, 0, 1, 1), (2, 2, 3, 3)) == 0.0
    assert find_content_boxes(moving(64, 64, 1)).dtype == np.float32

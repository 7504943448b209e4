"""Frame edits produce the expected values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin.media import picture_edits

SEED = 3


def picture(height: int = 24, width: int = 32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def apply_edit(edit: picture_edits.PictureEdit, *images: np.ndarray, seed: int = SEED) -> list[np.ndarray]:
    return list(edit(iter(images), seed))


def test_tone_curve_is_applied_to_every_sample_and_clipped() -> None:
    brighter = picture_edits.edit_values(lambda value: value * 2 - 10)
    image = np.array([[[0, 4, 5], [100, 132, 255]]], np.uint8)
    assert apply_edit(brighter, image)[0].tolist() == [[[0, 0, 0], [190, 254, 255]]]


def test_keep_frames_returns_the_same_iterator() -> None:
    frames = iter([picture()])
    assert picture_edits.keep_frames(frames, SEED) is frames


@given(st.floats(min_value=0, max_value=5000))
def test_sizes_are_rounded_to_even_numbers(value: float) -> None:
    size = picture_edits.round_to_even(value)
    assert size % 2 == 0
    assert size >= 2
    assert abs(size - value) <= 1 or value < 2


@pytest.mark.parametrize(
    ("size", "smaller"),
    [((720, 1280), (360, 640)), ((1280, 720), (640, 360)), ((360, 640), (180, 320)), ((100, 50), (50, 26))],
)
def test_shrink_scales_to_360_or_to_half_the_size(size: tuple[int, int], smaller: tuple[int, int]) -> None:
    height, width = picture_edits.shrink(np.zeros((*size, 3), np.uint8)).shape[:2]
    assert abs(height - smaller[0]) <= 2
    assert abs(width - smaller[1]) <= 2
    assert height % 2 == width % 2 == 0


@pytest.mark.parametrize(
    ("size", "squeezed"),
    [((90, 160), (90, 120)), ((160, 90), (120, 90)), ((90, 120), (90, 160)), ((100, 100), (100, 134))],
)
def test_squeeze_changes_to_or_from_four_by_three(size: tuple[int, int], squeezed: tuple[int, int]) -> None:
    assert picture_edits.squeeze(np.zeros((*size, 3), np.uint8)).shape[:2] == squeezed


def test_bars_are_black_and_the_image_between_them_is_unchanged() -> None:
    image = picture(38, 20)
    image[image == 0] = 1
    boxed = picture_edits.add_bars(image, across=True)
    # 38 / 0.76 = 50 lines, 12 % of which are 6 lines.
    assert boxed.shape == (50, 20, 3)
    assert not boxed[:6].any()
    assert not boxed[-6:].any()
    assert np.array_equal(boxed[6:-6], image)
    assert picture_edits.add_bars(image.swapaxes(0, 1), across=False).shape == (20, 50, 3)


def test_gray_sepia_and_mirror_have_the_expected_values() -> None:
    image = picture()
    gray = picture_edits.to_gray(image)
    assert np.array_equal(gray[..., 0], gray[..., 2])
    assert abs(int(gray[0, 0, 0]) - float(image[0, 0] @ [0.299, 0.587, 0.114])) <= 1
    white = np.full((2, 2, 3), 200, np.uint8)
    red, green, blue = picture_edits.to_sepia(white)[0, 0].tolist()
    # The rows of the matrix sum to 1.351, 1.203 and 0.937.
    assert (red, green, blue) == (255, pytest.approx(241, abs=1), pytest.approx(187, abs=1))
    assert np.array_equal(picture_edits.mirror(picture_edits.mirror(image)), image)
    assert np.array_equal(picture_edits.mirror(image)[:, 0], image[:, -1])


def test_a_blur_keeps_the_mean_and_removes_detail() -> None:
    image = picture(60, 80)
    soft = picture_edits.blur(image)
    assert abs(float(soft.mean()) - float(image.mean())) < 2
    assert float(soft.std()) < 0.6 * float(image.std())


def test_noise_depends_on_the_seed_and_differs_between_frames() -> None:
    middle = np.full((60, 60, 3), 128, np.uint8)
    first, second = apply_edit(picture_edits.add_noise, middle, middle)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, apply_edit(picture_edits.add_noise, middle)[0])
    assert float(first.std()) == pytest.approx(20, abs=1)


def test_a_rotation_is_by_five_degrees_without_empty_corners() -> None:
    (turned,) = apply_edit(picture_edits.rotate, np.full((60, 90, 3), 77, np.uint8))
    assert set(turned.flatten().tolist()) == {77}
    ways = set()
    columns = np.zeros((90, 90, 3), np.uint8)
    columns[:, 45:] = 250
    for seed in range(12):
        (turned,) = apply_edit(picture_edits.rotate, columns, seed=seed)
        edge = [int((row < 125).sum()) for row in turned[..., 0]]
        slope = (edge[80] - edge[10]) / 70
        # The tangent of five degrees.
        assert abs(slope) == pytest.approx(0.0875, abs=0.03)
        ways.add(slope > 0)
    assert ways == {True, False}


def test_a_caption_covers_the_lower_22_percent() -> None:
    white = np.full((100, 160, 3), 255, np.uint8)
    (captioned,) = apply_edit(picture_edits.add_caption, white)
    assert np.array_equal(captioned[:78], white[:78])
    # A band with an opacity of 200 / 255 and white letters.
    assert float(captioned[80:, :4].mean()) == pytest.approx(55, abs=2)
    assert int(captioned[78:].max()) > 150


def test_the_seed_chooses_the_corner_of_a_logo() -> None:
    corners = set()
    for seed in range(20):
        black = np.zeros((100, 140, 3), np.uint8)
        (marked,) = apply_edit(picture_edits.add_logo, black, seed=seed)
        red = (marked == (210, 30, 60)).all(-1)
        rows, columns = np.nonzero(red)
        corners.add((bool(rows.mean() > 50), bool(columns.mean() > 70)))
    assert len(corners) == 4


def test_an_overlay_adapts_to_a_change_of_size() -> None:
    first, second = apply_edit(picture_edits.add_caption, picture(40, 60), picture(80, 100))
    assert (first.shape, second.shape) == ((40, 60, 3), (80, 100, 3))

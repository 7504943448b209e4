"""Edits that hide most of the frame, verified by pixel counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.media.makers import flat
from vidkin_research.copies.edits import EDITS
from vidkin_research.copies.transforms import EditSetting

Image = NDArray[np.uint8]
WIDTH, HEIGHT = 320, 180


def footage(width: int, height: int) -> Iterator[Image]:
    """White footage of any size."""
    while True:
        yield np.full((height, width, 3), 255, np.uint8)


def apply_edit(name: str, image: Image, seed: int = 0) -> Image:
    (copy,) = EDITS[name].transform(iter([image]), EditSetting(rate=10.0, count=1, seed=seed, filler=footage))
    return copy


def upper_left() -> Image:
    """Gray with a white upper left quarter."""
    image = flat(60, WIDTH, HEIGHT)
    image[: HEIGHT // 2, : WIDTH // 2] = 255
    return image


@pytest.mark.parametrize(
    ("name", "size", "corner"),
    [("turn_90", (320, 180), (0, -1)), ("turn_180", (180, 320), (-1, -1)), ("turn_270", (320, 180), (-1, 0))],
)
def test_quarter_turns_are_clockwise(name: str, size: tuple[int, int], corner: tuple[int, int]) -> None:
    copy = apply_edit(name, upper_left())
    assert copy.shape == (*size, 3)
    corners = [(0, 0), (0, -1), (-1, -1), (-1, 0)]
    assert [place for place in corners if copy[place].min() == 255] == [corner]


@pytest.mark.parametrize("seed", range(6))
def test_covers_hide_the_stated_fraction(seed: int) -> None:
    assert (apply_edit("covered_60", flat(60, WIDTH, HEIGHT), seed) == 255).mean() == pytest.approx(0.6, abs=0.01)
    hidden = (apply_edit("sticker_45", flat(60, WIDTH, HEIGHT), seed) != 60).any(axis=2)
    assert hidden.mean() == pytest.approx(0.45, abs=0.01)


def test_blend_is_the_weighted_mean_with_other_footage() -> None:
    assert (apply_edit("blend_third", flat(60, WIDTH, HEIGHT)) == 125).all()  # 60 + (255 - 60) / 3
    assert (apply_edit("blend_half", flat(60, WIDTH, HEIGHT)) == 158).all()  # 157.5, rounded to even


@pytest.mark.parametrize("seed", range(6))
def test_shifted_frame_leaves_a_black_l_shape(seed: int) -> None:
    copy = apply_edit("shifted", flat(60, WIDTH, HEIGHT), seed)
    shown = copy[..., 0] == 60
    assert shown.mean() == pytest.approx(4 / 9, abs=0.01)
    # Two adjacent sides are entirely black; the other two show the frame for two thirds of their length.
    sides = [float(side.mean()) for side in (shown[0], shown[-1], shown[:, 0], shown[:, -1])]
    assert sorted(sides) == pytest.approx([0, 0, 2 / 3, 2 / 3], abs=0.01)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["perspective", "perspective_shaken"])
def test_perspective_makes_one_edge_much_shorter_than_its_opposite(name: str, seed: int) -> None:
    shown = (apply_edit(name, flat(60, WIDTH, HEIGHT), seed) > 0).any(axis=2)
    rows, columns = shown.sum(axis=1), shown.sum(axis=0)
    near = max(rows.max() / WIDTH, columns.max() / HEIGHT)
    lengths = [rows[rows > 20], columns[columns > 20]]
    assert near > 0.85
    assert min(float(side.min() / side.max()) for side in lengths) < 0.65
    assert 0.4 < shown.mean() < 0.85


def test_night_edit_is_gray_and_dark_but_visible() -> None:
    ramp = np.tile(np.arange(WIDTH, dtype=np.float32) / WIDTH * 255, (HEIGHT, 1)).astype(np.uint8)
    copy = apply_edit("night", np.stack([ramp, ramp, ramp], axis=2))
    assert (copy[..., 0] == copy[..., 1]).all()
    assert 20 < copy.mean() < 45
    assert np.corrcoef(copy[..., 0].mean(axis=0), ramp[0])[0, 1] > 0.95


def test_strong_color_changes_are_darker_and_more_saturated() -> None:
    image = flat(120, WIDTH, HEIGHT)
    image[:, :160] = (150, 110, 90)
    copy = apply_edit("far_off_colors", image)
    spread = copy[0, 0].astype(int).max() - copy[0, 0].astype(int).min()
    assert spread > 2 * 60 * 0.9
    assert copy.mean() < image.mean()


def test_rotated_frame_is_black_only_in_the_corners() -> None:
    copy = apply_edit("rotate15", flat(60, WIDTH, HEIGHT))
    assert copy[HEIGHT // 2, WIDTH // 2].tolist() == [60, 60, 60]
    assert not copy[[0, 0, -1, -1], [0, -1, 0, -1]].any()
    assert not apply_edit("half_center", upper_left())[-1, -1].max() > 60

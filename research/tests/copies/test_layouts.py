"""Pixels of the source move to the positions given by the boxes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.media.makers import flat
from vidkin_research.copies import layouts
from vidkin_research.copies.edits import EDITS
from vidkin_research.copies.layouts import Arrangement, Box, arrange_frames
from vidkin_research.copies.transforms import EditSetting

Image = NDArray[np.uint8]

WIDTH, HEIGHT = 320, 180


def footage(width: int, height: int) -> Iterator[Image]:
    """Frames with red values 100, 101, 102 and so on."""
    number = 100
    while True:
        image = np.zeros((height, width, 3), dtype=np.uint8)
        image[..., 0] = number
        yield image
        number += 1


def setting(seed: int = 0, count: int = 11) -> EditSetting:
    return EditSetting(rate=10.0, count=count, seed=seed, filler=footage)


def make_mark(x: int, y: int, width: int = WIDTH, height: int = HEIGHT) -> Image:
    """Gray with a white square of 16 pixels at this position."""
    image = flat(60, width, height)
    image[y - 8 : y + 8, x - 8 : x + 8] = 255
    return image


def center_of_mark(image: Image) -> tuple[float, float]:
    """x and y as fractions of the frame size."""
    rows, columns = np.where(image.min(axis=2) > 170)
    return (float(columns.mean()) + 0.5) / image.shape[1], (float(rows.mean()) + 0.5) / image.shape[0]


def map_position(place: tuple[float, float], source: Box, edited: Box) -> tuple[float, float]:
    """Map a position in the source with the boxes, as fractions of the frame size."""
    return tuple(  # type: ignore[return-value]
        edited[axis]
        + (place[axis] - source[axis]) / (source[axis + 2] - source[axis]) * (edited[axis + 2] - edited[axis])
        for axis in (0, 1)
    )


@pytest.mark.parametrize("size", [(WIDTH, HEIGHT), (HEIGHT, WIDTH)], ids=["wide", "upright"])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "name",
    """
    crop letterbox pillarbox vertical_crop blurred_borders colored_borders split_upper_lower split_left_right
    split_four inset_30 inset_45 inset_60 picture_in_picture tight_crop filmed_screen reencode
    shifted
    """.split(),  # noqa: SIM905
)
def test_mark_moves_to_the_position_given_by_the_boxes(name: str, seed: int, size: tuple[int, int]) -> None:
    width, height = size
    x, y = width // 2 + 10, height // 2 - 12
    edit, chosen = EDITS[name], setting(seed)
    (image,) = edit.transform(iter([make_mark(x, y, width, height)]), chosen)
    expected = map_position((x / width, y / height), *edit.boxes(size, chosen))
    # A filmed screen is in perspective, so its box is only a bounding box.
    tolerance = 0.06 if name == "filmed_screen" else 0.012
    assert center_of_mark(image) == pytest.approx(expected, abs=tolerance)


def test_mirrored_crop_equals_the_mirrored_crop_of_the_source() -> None:
    edit = EDITS["mirror_crop"]
    (image,) = edit.transform(iter([make_mark(170, 80)]), setting(4))
    x, y = map_position((170 / WIDTH, 80 / HEIGHT), *edit.boxes((WIDTH, HEIGHT), setting(4)))
    assert edit.mirrored
    assert center_of_mark(image) == pytest.approx((1 - x, y), abs=0.01)


def boxes(arrange: Arrangement, seed: int = 0, size: tuple[int, int] = (WIDTH, HEIGHT)) -> tuple[Box, Box]:
    return layouts.boxes_of(arrange)(size, setting(seed))


def test_vertical_crop_is_nine_by_sixteen_from_the_center() -> None:
    # A height of 180 pixels gives a width of 101.25, rounded to an even number.
    assert boxes(layouts.turned_center)[0] == pytest.approx((109 / 320, 0, 211 / 320, 1))
    assert boxes(layouts.turned_center, size=(180, 320))[0] == pytest.approx((0, 109 / 320, 1, 211 / 320))


def test_moving_window_crosses_the_frame_steadily() -> None:
    # The brightness of every column is its index, so the first column of a window gives its position.
    ramp = np.repeat(np.arange(WIDTH, dtype=np.uint8)[None, :, None] // 2, HEIGHT, axis=0).repeat(3, axis=2)
    for seed in range(4):
        chosen = setting(seed, count=11)
        pictures = list(EDITS["vertical_pan"].transform(iter([ramp] * 11), chosen))
        assert {picture.shape for picture in pictures} == {(180, 102, 3)}
        lefts = [2 * int(picture[0, 0, 0]) for picture in pictures]
        steps = np.diff(lefts)
        assert np.ptp(steps) <= 2  # the ramp has steps of two pixels
        assert abs(lefts[-1] - lefts[0]) >= 0.4 * (320 - 102) - 4
        source, edited = EDITS["vertical_pan"].boxes((WIDTH, HEIGHT), chosen)
        assert source[0] * WIDTH == pytest.approx(np.mean(lefts), abs=2)
        assert source[2] - source[0] == pytest.approx(102 / 320)
        assert edited == (0, 0, 1, 1)


def test_blurred_borders_show_the_enlarged_frame() -> None:
    image = flat(40, WIDTH, HEIGHT)
    image[:, 150:170] = (200, 40, 40)
    (copy,) = EDITS["blurred_borders"].transform(iter([image]), setting())
    assert copy.shape == (320, 180, 3)
    place = boxes(layouts.turned_borders)[1]
    assert place == pytest.approx((0, 109 / 320, 1, 211 / 320))  # 102 of 320 rows
    above = copy[:100].astype(int)
    assert above[:, 80:100, 0].min() > 120  # the red band spans the width and is blurred
    assert np.abs(np.diff(above[50, :, 0])).max() < 20
    assert above[:, :20].max() < 60


def test_colored_borders_have_one_color_chosen_by_the_seed() -> None:
    colors = set()
    for seed in range(5):
        (copy,) = EDITS["colored_borders"].transform(iter([flat(40, WIDTH, HEIGHT)]), setting(seed))
        assert copy.shape == (180, 180, 3)
        assert (copy[:40] == copy[0, 0]).all()
        colors.add(tuple(copy[0, 0].tolist()))
    assert len(colors) == 5
    assert boxes(layouts.square_borders)[1] == pytest.approx((7 / 180, 43 / 180, 173 / 180, 137 / 180))


@pytest.mark.parametrize(("columns", "rows", "canvas"), [(1, 2, (180, 204)), (2, 1, (640, 180)), (2, 2, (320, 180))])
def test_other_parts_of_a_split_screen_show_other_moments(columns: int, rows: int, canvas: tuple[int, int]) -> None:
    arrange = partial(layouts.part_of, columns=columns, rows=rows)
    (copy,) = arrange_frames(arrange, layouts.other_parts)(iter([flat(60, WIDTH, HEIGHT)]), setting(1))
    assert (copy.shape[1], copy.shape[0]) == canvas
    levels = [int(image[..., 0].mean()) for image in parts(copy, columns, rows)]
    assert sorted(levels) == [60, 100, 140, 180][: columns * rows]
    places = {boxes(arrange, seed)[1] for seed in range(40)}
    assert len(places) == columns * rows
    assert (0.0, 0.0, 1 / columns, 1 / rows) in places


def parts(image: Image, columns: int, rows: int) -> list[Image]:
    return [part for row in np.split(image, rows, axis=0) for part in np.split(row, columns, axis=1)]


@pytest.mark.parametrize("share", [0.3, 0.45, 0.6])
def test_insets_have_random_positions_inside_the_frame(share: float) -> None:
    placed = [boxes(partial(layouts.inset, share=share), seed)[1] for seed in range(60)]
    for left, top, right, bottom in placed:
        assert right - left == pytest.approx(share, abs=0.01)
        assert bottom - top == pytest.approx(share, abs=0.01)
        assert min(left, top) >= 0
        assert max(right, bottom) <= 1
    lefts = [box[0] / (1 - share) for box in placed]
    assert min(lefts) < 0.1
    assert max(lefts) > 0.9
    assert np.mean(lefts) == pytest.approx(0.5, abs=0.12)


def test_footage_around_an_inset_moves() -> None:
    chosen = setting(3)
    pictures = list(EDITS["inset_30"].transform(iter([flat(60, WIDTH, HEIGHT)] * 3), chosen))
    assert [int(picture[..., 0].max()) for picture in pictures] == [100, 101, 102]
    assert [float((picture[..., 0] == 60).mean()) for picture in pictures] == pytest.approx([0.09] * 3, abs=0.002)


def test_tight_crop_keeps_seven_tenths_of_each_side_away_from_the_center() -> None:
    for seed in range(20):
        left, top, right, bottom = boxes(partial(layouts.off_center, share=0.7), seed)[0]
        assert (right - left, bottom - top) == pytest.approx((0.7, 0.7), abs=0.006)
        assert not 0.11 < left < 0.19
        assert not 0.11 < top < 0.19


def test_bars_and_rotation_have_boxes() -> None:
    assert EDITS["letterbox"].boxes((192, 128), setting())[1] == pytest.approx((0, 20 / 168, 1, 148 / 168))
    assert EDITS["pillarbox"].boxes((192, 128), setting())[1] == pytest.approx((30 / 252, 0, 222 / 252, 1))
    # Enlarged by cos 5 + 16 / 9 sin 5 = 1.151; its height spans the source's, its width 0.908 of it.
    source, edited = EDITS["rotate5"].boxes((320, 180), setting())
    assert source == pytest.approx((0.0462, 0, 0.9538, 1), abs=0.001)
    assert edited == (0, 0, 1, 1)

"""Frame alignment finds crops, borders and changed aspect ratios, and measures agreement."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as PILImage

from tests.support.videos import pan
from vidkin.files.frame_alignment import FrameAlignment, align_frames, find_borders

Images = NDArray[np.float32]


def frames(count: int = 6, width: int = 192, height: int = 108, seed: int = 0) -> Images:
    images = pan("coffee", count * 10, width=width, height=height, seed=seed)
    return np.stack([gray(image) for image in images])[::10]


def gray(image: NDArray[np.uint8]) -> Images:
    return np.asarray(PILImage.fromarray(image).convert("L"), np.float32)


def resize_images(images: Images, width: int, height: int) -> Images:
    return np.stack([
        np.asarray(PILImage.fromarray(image).resize((width, height), PILImage.Resampling.BOX)) for image in images
    ])  # fmt: skip


WHOLE = frames()
SMALL = resize_images(WHOLE, 96, 54)


@pytest.mark.parametrize(
    ("box", "scale"), [((0, 0, 192, 108), 1.0), ((20, 10, 180, 100), 160 / 192), ((60, 30, 156, 84), 0.5)]
)
def test_crop_is_found_at_its_position(box: tuple[int, int, int, int], scale: float) -> None:
    left, top, right, bottom = box
    cut = resize_images(WHOLE[:, top:bottom, left:right], 96, 54)
    alignment, agreement = align_frames(cut, SMALL)
    assert agreement > 0.95
    assert alignment.scale == pytest.approx((scale, (bottom - top) / 108), abs=0.015)
    assert alignment.shift == pytest.approx((left / 192, top / 108), abs=0.015)
    # In the other direction, the whole frame surrounds the crop.
    around, agreement = align_frames(SMALL, cut)
    assert agreement > 0.95
    assert around.inside_box == pytest.approx((left / 192, top / 108, right / 192, bottom / 108), abs=0.02)


@pytest.mark.parametrize(("down", "across"), [(12, 0), (0, 30), (9, 9)])
def test_borders_are_outside_the_common_area(down: int, across: int) -> None:
    boxed = np.pad(SMALL, ((0, 0), (down, down), (across, across)))
    height, width = boxed.shape[1:]
    inner = (across / width, down / height, 1 - across / width, 1 - down / height)
    assert find_borders(boxed) == pytest.approx(inner, abs=0.02)
    alignment, agreement = align_frames(boxed, SMALL)
    assert agreement > 0.95
    assert alignment.inside_box == pytest.approx(inner, abs=0.02)
    alignment, agreement = align_frames(SMALL, boxed)
    assert agreement > 0.95
    assert alignment.covered_box == pytest.approx(inner, abs=0.02)


def test_logo_does_not_change_the_alignment() -> None:
    marked = SMALL.copy()
    marked[:, 4:14, 70:90] = 255
    alignment, agreement = align_frames(marked, SMALL)
    assert agreement > 0.95
    assert (*alignment.scale, *alignment.shift) == pytest.approx((1, 1, 0, 0), abs=0.005)


def test_other_footage_and_flat_frames_do_not_agree() -> None:
    other = np.stack([gray(image) for image in pan("astronaut", 6, width=96, height=54)])
    assert align_frames(other, SMALL)[1] < 0.8
    assert np.isnan(align_frames(np.zeros_like(SMALL), np.zeros_like(SMALL))[1])


def test_flat_frames_have_no_borders() -> None:
    assert find_borders(np.full((3, 20, 30), 16.0, np.float32)) == (0.0, 0.0, 1.0, 1.0)


def test_pixels_at_the_edge_of_a_border_are_excluded() -> None:
    inside = FrameAlignment((2.0, 1.0), (-0.5, 0.0)).find_inside((4, 16), (4, 8))
    assert inside.all(axis=0).nonzero()[0].tolist() == [5, 6, 7, 8, 9, 10]
    assert FrameAlignment().find_inside((4, 16), (4, 16)).all()

"""Edits that depend on more than one frame: duration, frame rate, or other footage."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.media.makers import flat
from vidkin.media import picture_edits
from vidkin_research.copies import transforms
from vidkin_research.copies.transforms import EditSetting

SETTING = EditSetting(rate=10.0, count=40, seed=3)


def picture(height: int = 24, width: int = 32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def transform_images(
    transform: transforms.Transform, *images: np.ndarray, setting: EditSetting = SETTING
) -> list[np.ndarray]:
    return list(transform(iter(images), setting))


def setting(seed: int = 0, rate: float = 24.0, count: int = 24) -> EditSetting:
    return EditSetting(rate=rate, count=count, seed=seed)


def test_fading_starts_and_ends_black() -> None:
    white = np.full((2, 2, 3), 200, np.uint8)
    lights = [int(image[0, 0, 0]) for image in transform_images(transforms.fade, *[white] * 40)]
    # A second of ten frames at either end.
    assert lights[:11] == [0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200]
    assert lights == lights[::-1]
    assert set(lights[10:30]) == {200}


def test_clip_of_one_frame_fades_to_black_without_an_error() -> None:
    (only,) = transform_images(transforms.fade, picture(), setting=EditSetting(rate=10.0, count=1, seed=0))
    assert not only.any()


@pytest.mark.parametrize(("size", "shape"), [((30, 10), (10, 30, 3)), ((8, 40), (40, 8, 3))])
def test_scaling_to_cover_fills_the_size_with_the_center(size: tuple[int, int], shape: tuple[int, ...]) -> None:
    image = np.zeros((20, 20, 3), np.uint8)
    image[8:12, 8:12] = 255
    filled = transforms.fill_size(image, *size)
    assert filled.shape == shape
    assert int(filled[shape[0] // 2, shape[1] // 2, 0]) == 255
    assert int(filled[0, 0, 0]) == 0


@pytest.mark.parametrize("size", [(5, 19), (7, 38)])
def test_scaling_to_cover_fills_sizes_with_rounded_factors(size: tuple[int, int]) -> None:
    filled = transforms.fill_size(np.full((21, 32, 3), 9, np.uint8), *size)
    assert filled.shape == (size[1], size[0], 3)
    assert set(filled.flatten().tolist()) == {9}


def test_surrounding_footage_is_placed_before_and_after() -> None:
    def filler(width: int, height: int) -> Iterator[np.ndarray]:
        number = 0
        while True:
            number += 1
            yield np.full((height, width, 3), number, np.uint8)

    setting = EditSetting(rate=5.0, count=2, seed=0, lead=2, trail=1, filler=filler)
    own = [np.full((4, 6, 3), 100 + number, np.uint8) for number in range(2)]
    frames = transform_images(transforms.surround, *own, setting=setting)
    assert [int(frame[0, 0, 0]) for frame in frames] == [1, 2, 100, 101, 3]
    assert {frame.shape for frame in frames} == {(4, 6, 3)}


def test_low_frame_rate_shows_eight_frames_per_second() -> None:
    frames = [flat(index) for index in range(24)]
    shown = [int(image[0, 0, 0]) for image in transforms.repeat_frames(iter(frames), setting())]
    assert shown == [3 * (index // 3) for index in range(24)]
    # Below eight fps every frame is shown.
    slow = [int(image[0, 0, 0]) for image in transforms.repeat_frames(iter(frames), setting(rate=5.0))]
    assert slow == list(range(24))


def test_combined_transforms_apply_in_order() -> None:
    add, double = (transforms.by_seed(picture_edits.edit_values(f)) for f in (lambda v: v + 10, lambda v: 2 * v))
    chain = transforms.combine(add, double)
    (image,) = chain(iter([flat(20)]), setting())
    assert int(image.max()) == 60

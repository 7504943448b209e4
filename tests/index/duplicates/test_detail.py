"""Enlarged and blurred copies have less detail than their pixels could carry."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from tests.support.videos import photograph
from vidkin.index.duplicates.detail import measure_detail, most_detailed


def picture() -> np.ndarray:
    return np.ascontiguousarray(photograph("coffee")[:384, :512])


def scaled(image: np.ndarray, factor: float) -> np.ndarray:
    size = round(image.shape[1] * factor), round(image.shape[0] * factor)
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS))


def test_the_limit_is_half_the_lines() -> None:
    assert measure_detail([picture()]).limit == 192
    assert measure_detail([scaled(picture(), 0.5)]).limit == 96


def test_bands_beyond_the_limit_have_no_density() -> None:
    small, large = (measure_detail([scaled(picture(), factor)]).density for factor in (0.25, 1.0))
    assert np.isnan(small).sum() > np.isnan(large).sum()
    assert np.isfinite(small[:8]).all()


def test_a_plain_picture_has_no_detail() -> None:
    density = measure_detail([np.full((96, 128, 3), 90, np.uint8)]).density
    assert np.nanmax(density) < 1.5


def test_a_wave_has_its_energy_in_its_band() -> None:
    # 24 waves in a picture height of 192 lines.
    rows = 100 + 60 * np.sin(2 * np.pi * 24 * np.arange(192) / 192)
    image = np.broadcast_to(rows[:, None, None], (192, 256, 3)).astype(np.uint8)
    density = measure_detail([image]).density
    band = int(np.nanargmax(density))
    edges = 8 * 2 ** (np.arange(37) / 4)
    # Tiles of 64 lines resolve 3 waves.
    assert edges[band] - 3 <= 24 <= edges[band + 1] + 3


def test_the_original_beats_an_enlarged_copy_of_more_pixels() -> None:
    original = scaled(picture(), 0.5)
    enlarged = scaled(scaled(picture(), 0.25), 4)
    best, reaches = most_detailed([measure_detail([image]) for image in (enlarged, original)])
    assert best == 1
    assert reaches[1] > reaches[0]


def test_more_pixels_with_real_detail_are_better() -> None:
    best, reaches = most_detailed([measure_detail([scaled(picture(), 0.5)]), measure_detail([picture()])])
    assert best == 1
    assert reaches[1] > 1.1 * reaches[0]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_equal_copies_the_first_is_as_good(order: tuple[int, int]) -> None:
    spectra = [measure_detail([picture()])] * 2
    best, reaches = most_detailed([spectra[place] for place in order])
    assert best == 0
    assert reaches[0] == reaches[1]

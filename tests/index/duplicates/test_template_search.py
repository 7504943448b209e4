"""Where one image lies in another, by correlation at many sizes."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image as PILImage

from tests.support.videos import photograph
from vidkin.index.duplicates.template_search import find_part, template_correlation


@pytest.mark.parametrize(("height", "width"), [(40, 60), (1, 7), (96, 128), (95, 31)])
def test_templates_are_placed_as_scikit_image_places_them(height: int, width: int) -> None:
    feature = pytest.importorskip("skimage.feature")
    small = PILImage.fromarray(photograph("coffee")).convert("L")
    picture = np.asarray(small.resize((128, 96)), dtype=np.float64)
    picture[:50, :70] = 120.0  # nothing to compare with
    template = np.asarray(small.resize((width, height), box=(100, 80, 400, 300)), dtype=np.float64)
    here, there = template_correlation(picture, template), feature.match_template(picture, template)
    assert here.shape == (97 - height, 129 - width)
    # Where nothing can be compared, rounding decides what scikit-image says.
    flat = np.abs(here) < 1e-9
    np.testing.assert_allclose(here[~flat], there[~flat], atol=1e-6)


def test_a_flat_template_or_picture_correlates_with_nothing() -> None:
    noise = np.random.default_rng(0).random((20, 30))
    assert not template_correlation(noise, np.full((5, 6), 0.1)).any()
    assert not template_correlation(np.full((20, 30), 0.1), noise[:5, :6]).any()
    assert template_correlation(noise, noise[3:9, 4:14])[3, 4] == pytest.approx(1.0)


def test_a_part_is_found_at_its_size_and_position() -> None:
    photo = PILImage.fromarray(photograph("coffee")).convert("L").resize((128, 96))
    outer = np.asarray(photo, np.float32)
    inner = np.asarray(photo.crop((32, 24, 96, 72)).resize((96, 72)), np.float32)
    correlation, box = find_part(outer, inner)
    assert correlation > 0.95
    assert box == pytest.approx((0.25, 0.25, 0.75, 0.75), abs=0.04)

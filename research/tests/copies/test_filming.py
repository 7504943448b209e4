"""Filmed screens, and a combined edit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.media.makers import flat
from vidkin_research.copies import filming
from vidkin_research.copies.edits import EDITS
from vidkin_research.copies.transforms import EditSetting


def setting(seed: int = 0, rate: float = 24.0, count: int = 24) -> EditSetting:
    return EditSetting(rate=rate, count=count, seed=seed)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_corners_of_the_screen_are_inside_the_frame(seed: int) -> None:
    corners = filming.screen_corners(setting(seed))
    inside = np.abs(corners - np.array([(0, 0), (1, 0), (1, 1), (0, 1)]))
    assert inside.min() >= 0.02
    assert inside.max() <= 0.11
    (copy,) = filming.film_screen(iter([flat(200, 320, 180)]), setting(seed))
    bright = copy.mean(axis=2) > 70
    left, top, right, bottom = filming.screen_boxes((320, 180), setting(seed))[1]
    rows, columns = np.where(bright.mean(axis=1) > 0.3)[0], np.where(bright.mean(axis=0) > 0.3)[0]
    assert (columns[0] / 320, rows[0] / 180) == pytest.approx((left, top), abs=0.09)
    assert (columns[-1] / 320, rows[-1] / 180) == pytest.approx((right, bottom), abs=0.09)
    assert not bright[:2].any()


def test_filming_changes_the_exposure_and_adds_noise() -> None:
    levels = set()
    for seed in range(6):
        first, second = filming.film_screen(iter([flat(128, 160, 90)] * 2), setting(seed))
        middle = first[30:60, 50:110].astype(float)
        assert middle.std() == pytest.approx(9, abs=1)
        assert not np.array_equal(first, second)
        levels.add(round(float(middle.mean())) > 128)
    assert levels == {True, False}


def test_combined_edit_is_cropped_captioned_gray_and_slow() -> None:
    edit = EDITS["combined"]
    frames = [np.dstack([flat(90 + index, 320, 180)[..., :2], flat(0, 320, 180)[..., :1]]) for index in range(24)]
    copies = list(edit.transform(iter(frames), setting()))
    assert {copy.shape for copy in copies} == {(144, 256, 3)}
    assert all(int(np.ptp(copy.astype(int), axis=2).max()) == 0 for copy in copies)
    assert len({int(copy[10, 10, 0]) for copy in copies}) <= 8
    assert copies[0][130:].max() > 230  # white text

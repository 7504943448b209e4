"""Frames at given times, and the bars around them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import Image, encode, pan
from vidkin.errors import MediaError
from vidkin.index.duplicates.pictures import find_bars, read_moments

WIDTH, HEIGHT = 160, 96


def frames(count: int = 10) -> list[Image]:
    return list(pan("coffee", count, width=WIDTH, height=HEIGHT))


def add_bars(images: list[Image], top: int, left: int) -> list[Image]:
    """Add black bars to the frames."""
    return [np.pad(image, ((top, top), (left, left), (0, 0))).astype(np.uint8) for image in images]


def test_bars_are_found_if_every_frame_has_them() -> None:
    assert find_bars(np.stack(add_bars(frames(3), 24, 0))) == (24, 24 + HEIGHT, 0, WIDTH)
    assert find_bars(np.stack(add_bars(frames(3), 0, 32))) == (0, HEIGHT, 32, 32 + WIDTH)


def test_dark_frame_neither_hides_bars_nor_creates_them() -> None:
    dark = np.zeros((HEIGHT + 48, WIDTH, 3), np.uint8)
    assert find_bars(np.stack([*add_bars(frames(2), 24, 0), dark])) == (24, 24 + HEIGHT, 0, WIDTH)
    shaded = frames(2)
    shaded[0] = shaded[0].copy()
    shaded[0][:30] = 0
    assert find_bars(np.stack(shaded)) == (0, HEIGHT, 0, WIDTH)


def test_subtitles_in_a_bar_do_not_make_it_content() -> None:
    """Subtitles come and go, so each part of the bar is black at some time."""
    images = add_bars(frames(3), 24, 0)
    images[1][HEIGHT + 32 : HEIGHT + 40, 50:110] = 235
    assert find_bars(np.stack(images)) == (24, 24 + HEIGHT, 0, WIDTH)


def test_frames_without_bars_are_not_cropped() -> None:
    assert find_bars(np.stack(frames(2))) == (0, HEIGHT, 0, WIDTH)
    assert find_bars(np.zeros((1, 40, 60, 3), np.uint8)) == (0, 40, 0, 60)


def test_missing_file_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"none.mp4"):
        read_moments(str(tmp_path / "none.mp4"), np.array([0.0]), 1.0, short_side=48)


def test_frames_are_read_once_in_order_and_times_are_clamped_to_the_video(tmp_path: Path) -> None:
    # Two seconds at five frames per second; there are more times than are decoded at once.
    path = encode(tmp_path / "film.mp4", frames(10), rate=5)
    images, times = read_moments(
        str(path), np.array([9.0, 0.5, 0.4, -1.0, 0.5, *np.arange(10) / 5]), 2.0, short_side=48
    )
    assert times.tolist() == pytest.approx([number / 5 for number in range(10)])
    assert images.shape == (10, 48, 80, 3)
    one, first = read_moments(str(path), np.array([0.0]), 2.0, short_side=48)
    assert (first.tolist(), np.array_equal(one[0], images[0])) == ([0.0], True)

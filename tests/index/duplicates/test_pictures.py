"""The content of a video's pictures: without bars, without blurred borders, mirrored on request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Photo
from PIL import ImageFilter

from tests.support.videos import Image, encode, pan
from vidkin.errors import MediaError
from vidkin.index.duplicates.pictures import Pictures, cut_bars, read_moments, read_pictures, read_stretch

WIDTH, HEIGHT = 160, 96


def frames(count: int = 10) -> list[Image]:
    return list(pan("coffee", count, width=WIDTH, height=HEIGHT))


def boxed(images: list[Image], top: int, left: int, value: int = 0) -> list[Image]:
    """The pictures with bars of one color."""
    return [
        np.pad(image, ((top, top), (left, left), (0, 0)), constant_values=value).astype(np.uint8) for image in images
    ]


def test_bars_are_cut_where_every_moment_has_them() -> None:
    images = np.stack(boxed(frames(3), 24, 0))
    assert np.array_equal(cut_bars(images), np.stack(frames(3)))
    sides = np.stack(boxed(frames(3), 0, 32))
    assert cut_bars(sides).shape == (3, HEIGHT, WIDTH, 3)


def test_a_dark_moment_hides_no_bars_and_makes_none() -> None:
    bright, dark = boxed(frames(2), 24, 0), np.zeros((HEIGHT + 48, WIDTH, 3), np.uint8)
    cut = cut_bars(np.stack([*bright, dark]))
    assert cut.shape == (3, HEIGHT, WIDTH, 3)
    # A picture whose upper part is dark for a moment only keeps it.
    shaded = frames(2)
    shaded[0] = shaded[0].copy()
    shaded[0][:30] = 0
    assert cut_bars(np.stack(shaded)).shape == (2, HEIGHT, WIDTH, 3)


def test_subtitles_in_a_bar_do_not_make_it_content() -> None:
    """They come and go: at the darkest of all moments the bar is black."""
    images = boxed(frames(3), 24, 0)
    images[1][HEIGHT + 32 : HEIGHT + 40, 50:110] = 235
    assert cut_bars(np.stack(images)).shape == (3, HEIGHT, WIDTH, 3)


def test_pictures_without_bars_stay_as_they_are() -> None:
    images = np.stack(frames(2))
    assert np.array_equal(cut_bars(images), images)
    assert cut_bars(np.zeros((1, 40, 60, 3), np.uint8)).shape == (1, 40, 60, 3)


@pytest.mark.parametrize(("top", "left", "share"), [(0, 0, 1.0), (32, 0, 96 / 160), (0, 32, 160 / 224)])
def test_the_share_is_that_of_the_content(top: int, left: int, share: float, tmp_path: Path) -> None:
    path = encode(tmp_path / "film.mp4", boxed(frames(), top, left), rate=5)
    pictures = read_pictures(str(path), [0.5, 1.0])
    assert len(pictures.images) == 2
    assert pictures.share == pytest.approx(share, abs=0.03)
    assert pictures.pixels == pytest.approx(WIDTH * HEIGHT, rel=0.05)


def test_pixels_are_those_of_one_picture() -> None:
    assert Pictures((np.zeros((4, 5, 3), np.uint8), np.zeros((4, 5, 3), np.uint8)), 1.0).pixels == 20


def test_mirrored_pictures_are_flipped(tmp_path: Path) -> None:
    path = str(encode(tmp_path / "film.mp4", frames(), rate=5))
    plain, mirrored = (read_pictures(path, [0.4], mirrored=mirrored) for mirrored in (False, True))
    assert np.array_equal(mirrored.images[0], plain.images[0][:, ::-1])
    assert mirrored.images[0].flags["C_CONTIGUOUS"]


def test_blurred_borders_are_cut_off(tmp_path: Path) -> None:
    """A tall picture on a wide blurred copy of itself, as platforms show it."""
    shown = []
    for image in pan("astronaut", 10, width=180, height=320):
        tall = Photo.fromarray(image)
        ground = tall.resize((568, 320)).filter(ImageFilter.GaussianBlur(20))
        ground.paste(tall, (194, 0))
        shown.append(np.asarray(ground))
    pictures = read_pictures(str(encode(tmp_path / "tall.mp4", shown, rate=5)), [0.4, 1.2])
    height, width = pictures.images[0].shape[:2]
    # Found by its lines, to within a tenth of each side.
    assert 180 - 18 <= width <= 180 + 18
    assert height >= 320 - 32
    assert pictures.share == pytest.approx(180 / 568, abs=0.05)


def test_a_stretch_has_its_rate_and_its_times(tmp_path: Path) -> None:
    path = str(encode(tmp_path / "film.mp4", frames(20), rate=5))
    stretch = read_stretch(path, 1.0, 3.0, rate=5, short_side=48)
    assert stretch.shape == (10, 48, 80, 3)
    assert np.array_equal(read_stretch(path, 1.0, 3.0, rate=5, short_side=48, mirrored=True), stretch[:, :, ::-1])
    # Other moments of the same flight look different.
    assert np.abs(stretch[0].astype(int) - stretch[-1]).mean() > 2


def test_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"none.mp4"):
        read_pictures(str(tmp_path / "none.mp4"), [0.0])


def test_moments_are_read_once_each_in_their_order_and_those_beyond_the_ends_as_the_ends(tmp_path: Path) -> None:
    # Five frames a second for two seconds; more moments than are decoded at a time.
    path = encode(tmp_path / "film.mp4", frames(10), rate=5)
    images, times = read_moments(
        str(path), np.array([9.0, 0.5, 0.4, -1.0, 0.5, *np.arange(10) / 5]), 2.0, short_side=48
    )
    assert times.tolist() == pytest.approx([number / 5 for number in range(10)])
    assert images.shape == (10, 48, 80, 3)
    one, first = read_moments(str(path), np.array([0.0]), 2.0, short_side=48)
    assert (first.tolist(), np.array_equal(one[0], images[0])) == ([0.0], True)

"""Endless footage, for edits that show additional content."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.media.test_steady_frames import HEIGHT, WIDTH, gray, levels_of
from tests.support.videos import encode
from vidkin_research.copies.applying import endless_frames


def test_endless_video_starts_over_at_its_end(tmp_path: Path) -> None:
    path = encode(tmp_path / "film.mp4", [gray(20), gray(60), gray(100)], rate=2, options={"crf": "10"})
    images = list(islice(endless_frames(path, 2, 1, WIDTH, HEIGHT), 8))
    assert levels_of(images) == [20, 60, 100, 20, 60, 100, 20, 60]


@pytest.mark.parametrize(("width", "height"), [(40, 40), (100, 20), (64, 48)])
def test_endless_frames_fill_any_size(width: int, height: int, tmp_path: Path) -> None:
    """The middle of the frame, without borders, since black would change the mean."""
    path = encode(tmp_path / "film.mp4", [gray(200)] * 3, rate=2, options={"crf": "10"})
    image = next(endless_frames(path, 2, 1, width, height))
    assert image.shape == (height, width, 3)
    assert image.min() > 180

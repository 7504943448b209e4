"""Frames at regular times: the one on screen at each time, repeated as long as it stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import Image, encode
from vidkin.media import steady_frames

WIDTH, HEIGHT = 64, 48


def gray(level: int) -> Image:
    return np.full((HEIGHT, WIDTH, 3), level, np.uint8)


def levels_of(images: list[Image]) -> list[int]:
    """Gray level (20, 40, 60, ...) of each image."""
    return [round(float(image.mean()) / 20) * 20 for image in images]


def on_screen(times: list[float], moments: list[float]) -> list[int]:
    """Gray level of the frame on screen at each time; before the start, that of the first frame."""
    return [20 * (1 + max((k for k, time in enumerate(times) if time <= m + 1e-6), default=0)) for m in moments]


TIMES = {
    "steady": [k / 10 for k in range(10)],
    "slow": [0.0, 0.4, 0.8],
    "varying": [0.0, 0.1, 0.15, 0.6, 0.65, 0.7, 0.9],
}


@pytest.fixture(scope="module", params=TIMES)
def video(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """Write frames with the gray levels 20, 40, 60, ... that begin at these times."""
    times = TIMES[request.param]
    path = tmp_path_factory.mktemp("steady") / "film.mp4"
    frames = [gray(20 * (k + 1)) for k in range(len(times))]
    return encode(path, frames, rate=20, times=times, options={"crf": "10"}), times


@pytest.mark.parametrize(("start", "step", "count"), [(0.0, 0.1, 9), (0.0, 0.25, 4), (0.3, 0.05, 8), (0.2, 0.3, 2)])
def test_each_time_gives_the_frame_on_screen(
    start: float, step: float, count: int, video: tuple[Path, list[float]]
) -> None:
    path, times = video
    images = list(steady_frames(path, start, step, count, None, 1))
    assert len(images) == count
    assert levels_of(images) == on_screen(times, [start + k * step for k in range(count)])


def test_the_last_frame_is_repeated_beyond_the_end(video: tuple[Path, list[float]]) -> None:
    """The videos last about a second; whether a frame is on screen at 1 s depends on the duration of the last frame."""
    path, times = video
    levels = levels_of(list(steady_frames(path, 0.0, 0.5, 6, None, 1)))
    assert levels[:2] == on_screen(times, [0.0, 0.5])
    assert levels[2] in (levels[1], 20 * len(times))
    assert set(levels[3:]) == {levels[2]}


def test_frames_are_scaled_down_on_request(video: tuple[Path, list[float]]) -> None:
    (image,) = steady_frames(video[0], 0.0, 0.1, 1, 24, 1)
    assert image.shape == (24, 32, 3)

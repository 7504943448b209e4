"""Samples of decoded planes: every frame once, with stored values, in any pixel format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import FramePlanes, iter_planes, read_frames, write_video

Y_OF_RGB = np.array([0.299, 0.587, 0.114])


def plain(value: tuple[int, int, int], count: int, height: int = 64, width: int = 96) -> list[np.ndarray]:
    return [np.full((height, width, 3), value, np.uint8) for _ in range(count)]


def whole(path: Path, **arguments: int) -> FramePlanes:
    blocks = list(iter_planes(path, **arguments))
    return FramePlanes(
        np.concatenate([block.luma for block in blocks]),
        np.concatenate([block.chroma for block in blocks]),
        np.concatenate([block.timestamps for block in blocks]),
    )


def test_every_frame_is_sampled_once_for_any_block_length(tmp_path: Path) -> None:
    path = encode(tmp_path / "pan.mp4", pan("coffee", 23), rate=10)
    found = whole(path, block=5)
    assert found.timestamps == pytest.approx(np.arange(23) / 10)
    assert found.luma.shape == (23, 36, 64)
    assert found.chroma.shape == (23, 2, 18, 32)
    assert np.array_equal(found.luma, whole(path, block=128).luma)


def test_avi_with_b_frames_loses_no_frame(tmp_path: Path) -> None:
    """AVI stores no presentation times, and those that FFmpeg derives are not monotonic."""
    path = encode(tmp_path / "pan.avi", pan("coffee", 40), rate=10, options={"bf": "3"})
    found = whole(path)
    assert found.timestamps == pytest.approx(np.arange(40) / 10)
    right = whole(encode(tmp_path / "pan.mp4", pan("coffee", 40), rate=10, options={"bf": "3"}))
    assert np.abs(found.luma.astype(int) - right.luma).mean() < 3
    assert read_frames(path, rate=None).timestamps == pytest.approx(np.arange(40) / 10)


def test_samples_are_pixels_of_the_frame(tmp_path: Path) -> None:
    path = encode(tmp_path / "pan.mp4", pan("chelsea", 4), rate=10, options={"crf": "10"})
    found = whole(path, height=64, width=96)
    # The same pixels of the converted frames: limited-range luma computed from RGB.
    images = read_frames(path, rate=None).images[:, 1::2, 1::2].astype(float)
    expected = 16 + (images @ Y_OF_RGB) * 219 / 255
    assert np.abs(found.luma - expected).mean() < 1.5


@pytest.mark.parametrize(
    ("codec", "pixel_format"),
    [
        ("libx264", "yuv420p"),
        ("libx264", "yuv422p"),
        ("libx264", "yuv444p"),
        ("libx264", "yuv420p10le"),
        ("libx264", "gray"),
        ("libx264rgb", "rgb24"),
        ("libx264", "nv12"),
    ],
)
def test_pixel_formats_give_the_same_samples(tmp_path: Path, codec: str, pixel_format: str) -> None:
    # Orange has Y 151 in full range and 146 in limited range, with Cb below and Cr above the middle.
    path = encode(tmp_path / "plain.mkv", plain((255, 128, 0), 3), codec=codec, pixel_format=pixel_format)
    found = whole(path)
    assert found.luma.min() == found.luma.max()
    assert int(found.luma[0, 0, 0]) == pytest.approx(148, abs=6)
    blue, red = found.chroma[0, :, 0, 0].tolist()
    if pixel_format == "gray":
        assert (blue, red) == (128, 128)
    else:
        assert blue < 60
        assert red > 190


def test_times_of_a_variable_rate_equal_those_in_the_file(tmp_path: Path) -> None:
    times = [0.0, 0.04, 0.30, 0.31, 1.0]
    path = tmp_path / "variable.mp4"
    write_video(path, plain((10, 200, 10), 5), rate=25, times=times)
    assert whole(path).timestamps == pytest.approx(times, abs=0.002)


def test_a_grid_larger_than_the_frame_repeats_pixels(tmp_path: Path) -> None:
    path = encode(tmp_path / "small.mkv", plain((0, 0, 255), 2, height=16, width=16))
    assert whole(path, height=72, width=128).luma.shape == (2, 72, 128)


@pytest.mark.parametrize(("height", "width"), [(0, 64), (35, 64), (36, 63)])
def test_odd_grids_are_refused(tmp_path: Path, height: int, width: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"must be even and at least 2, got {height} and {width}"):
        next(iter_planes(tmp_path / "any.mp4", height=height, width=width))


def test_blocks_without_frames_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="block must be at least 1, got 0"):
        next(iter_planes(tmp_path / "any.mp4", block=0))


def test_a_broken_file_is_a_media_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.mp4"
    path.write_bytes(b"no video at all")
    with pytest.raises(MediaError, match=r"broken\.mp4"):
        list(iter_planes(path))


def test_planes_check_their_shapes() -> None:
    with pytest.raises(InvalidArgumentError, match=r"chroma must be \[2, 2, 2, 4\] uint8"):
        FramePlanes(np.zeros((2, 4, 8), np.uint8), np.zeros((2, 2, 4, 8), np.uint8), np.arange(2.0))
    planes = FramePlanes(np.zeros((2, 4, 8), np.uint8), np.zeros((2, 2, 2, 4), np.uint8), np.arange(2.0))
    assert len(planes) == 2
    assert repr(planes) == "FramePlanes(luma=[2, 4, 8])"


def test_a_cut_between_two_fields_becomes_a_cut_between_frames(tmp_path: Path) -> None:
    """Half of the lines of the frame in between show the old shot, the other half the new shot."""
    old, new = pan("coffee", 1, width=200, height=180), pan("chelsea", 1, width=200, height=180)
    one, other = next(iter(old)), next(iter(new))
    mixed = one.copy()
    mixed[1::2] = other[1::2]
    options = {"x264-params": "interlaced=1:tff=1", "qp": "0"}
    path = encode(tmp_path / "fields.mp4", [one] * 6 + [mixed] + [other] * 6, rate=25, options=options)
    found = whole(path, height=128, width=128).luma.astype(int)
    steps = np.abs(np.diff(found, axis=0)).mean((1, 2))
    assert np.argmax(steps) in (5, 6)
    assert np.sort(steps)[-2] < 0.05 * steps.max()

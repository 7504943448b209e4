"""Samples of decoded planes are exact pixels of a lossless file, with the times stored in the file."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import encode, pan
from vidkin.media import iter_frames, iter_planes


def lossless(path: Path, images: NDArray[np.uint8], pixel_format: str) -> list[list[NDArray[np.generic]]]:
    """Write RGB frames with FFV1; return the planes of each frame."""
    stored = []
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=10)
        stream.height, stream.width = images.shape[1:3]
        stream.pix_fmt = pixel_format
        for number, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format=pixel_format)
            wide = frame.format.components[0].bits > 8
            stored.append([values_of(plane, np.uint16 if wide else np.uint8) for plane in frame.planes])
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return stored


def values_of(plane: av.VideoPlane, kind: type[np.generic]) -> NDArray[np.generic]:
    return np.frombuffer(plane, kind).reshape(plane.height, -1)[:, : plane.width].copy()


def grid(plane: NDArray[np.generic], height: int, width: int) -> NDArray[np.generic]:
    """Pixels at the centers of the cells of a grid."""
    rows = [int((row + 0.5) * plane.shape[0] / height) for row in range(height)]
    columns = [int((column + 0.5) * plane.shape[1] / width) for column in range(width)]
    return plane[np.ix_(rows, columns)]


def noise(count: int, height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(5).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("pixel_format", "shift"),
    [
        ("yuv420p", 0),
        ("yuv422p", 0),
        ("yuv444p", 0),
        ("yuv411p", 0),
        ("yuva420p", 0),
        ("yuv420p10le", 2),
        ("yuv422p12le", 4),
        ("yuv444p16le", 8),
    ],
)
def test_samples_are_the_center_pixels_of_the_cells(tmp_path: Path, pixel_format: str, shift: int) -> None:
    # 70 is not a multiple of FFmpeg's line alignment.
    stored = lossless(tmp_path / "noise.mkv", noise(3, 38, 70), pixel_format)
    (found,) = iter_planes(tmp_path / "noise.mkv", height=8, width=12)
    for number, planes in enumerate(stored):
        assert np.array_equal(found.luma[number], grid(planes[0], 8, 12) >> shift)
        for part in range(2):
            assert np.array_equal(found.chroma[number, part], grid(planes[1 + part], 4, 6) >> shift)


@pytest.mark.parametrize(("pixel_format", "shift"), [("gray", 0), ("gray10le", 2), ("gray16le", 8)])
def test_gray_has_neutral_chroma(tmp_path: Path, pixel_format: str, shift: int) -> None:
    stored = lossless(tmp_path / "grey.mkv", noise(2, 40, 64), pixel_format)
    (found,) = iter_planes(tmp_path / "grey.mkv", height=6, width=10)
    assert np.array_equal(found.luma[1], grid(stored[1][0], 6, 10) >> shift)
    assert (found.chroma == 128).all()


@pytest.mark.parametrize("pixel_format", ["bgr0", "gbrp10le"])
def test_other_pixel_formats_are_converted(tmp_path: Path, pixel_format: str) -> None:
    images = np.zeros((2, 64, 64, 3), np.uint8)
    images[0], images[1] = (255, 0, 0), (255, 255, 255)
    lossless(tmp_path / "rgb.mkv", images, pixel_format)
    (found,) = iter_planes(tmp_path / "rgb.mkv", height=4, width=4)
    # BT.601 in standard range: pure red is Y 82 Cb 90 Cr 240, white Y 235.
    assert np.abs(found.luma.astype(int) - np.array([82, 235])[:, None, None]).max() <= 2
    assert np.abs(found.chroma[0].astype(int) - np.array([90, 240])[:, None, None]).max() <= 2
    assert np.abs(found.chroma[1].astype(int) - 128).max() <= 1


def test_times_of_a_variable_rate_are_kept(tmp_path: Path) -> None:
    steps = np.random.default_rng(1).uniform(0.02, 0.2, 40)
    times = np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    path = encode(tmp_path / "variable.mkv", pan("rocket", 40), rate=1000, times=times.tolist())
    (planes,) = iter_planes(path)
    frames = np.concatenate([lot.timestamps for lot in iter_frames(path, rate=None)])
    assert planes.timestamps == pytest.approx(times, abs=0.002)
    assert planes.timestamps == pytest.approx(frames, abs=1e-9)


def test_times_start_at_zero_for_any_start_time(tmp_path: Path) -> None:
    path = encode(tmp_path / "late.mkv", pan("rocket", 5), times=[7.0, 7.1, 7.2, 7.3, 7.4])
    (planes,) = iter_planes(path)
    assert planes.timestamps == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4], abs=0.002)
    assert planes.end == pytest.approx(0.5, abs=0.002)


def test_every_block_states_the_end_of_its_last_frame(tmp_path: Path) -> None:
    path = encode(tmp_path / "pan.mp4", pan("rocket", 25), rate=10)
    blocks = list(iter_planes(path, block=10))
    assert [len(block) for block in blocks] == [10, 10, 5]
    assert blocks[-1].end == pytest.approx(2.5)


def test_a_change_of_size_within_a_file_moves_the_grid(tmp_path: Path) -> None:
    # Raw streams state their size at key frames, so two concatenated files are one valid file.
    paths = [tmp_path / "wide.264", tmp_path / "tall.264"]
    for path, images in zip(paths, (noise(2, 36, 100), noise(2, 80, 48)), strict=True):
        encode(path, images, rate=25)
    both = tmp_path / "both.264"
    both.write_bytes(b"".join(path.read_bytes() for path in paths))
    found = np.concatenate([block.luma for block in iter_planes(both, height=4, width=4)])
    alone = [block.luma for path in paths for block in iter_planes(path, height=4, width=4)]
    assert np.array_equal(found, np.concatenate(alone))

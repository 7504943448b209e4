"""Files are written atomically and read back unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as PILImage

from tests.media.makers import corners, flat, quarters
from tests.support.videos import pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import probe, read_frames, thumbnail, write_clip, write_thumbnail, write_video


def distance(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Mean absolute difference of two frames."""
    return float(np.abs(a.astype(int) - b.astype(int)).mean())


@pytest.mark.parametrize(
    ("ending", "codec"),
    [
        ("mp4", "libx264"),
        ("mkv", "libx265"),
        ("webm", "libvpx-vp9"),
        ("mov", "mpeg4"),
        ("avi", "mjpeg"),
        ("mkv", "libsvtav1"),
    ],
)
def test_written_frames_read_back_the_same(tmp_path: Path, ending: str, codec: str) -> None:
    images = list(pan("coffee", 12, width=128, height=96))
    options = {"libx265": {"x265-params": "log-level=none"}, "libvpx-vp9": {"cpu-used": "8"}}.get(codec, {})
    path = tmp_path / f"a.{ending}"
    pixel_format = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    scheduler = os.sched_getscheduler(0)
    count = write_video(path, iter(images), rate=12, codec=codec, pixel_format=pixel_format, options=options)
    assert os.sched_getscheduler(0) == scheduler  # SVT-AV1 on its own would leave a real-time thread behind
    frames = read_frames(path, rate=None)
    assert count == len(frames) == 12
    np.testing.assert_allclose(frames.timestamps, np.arange(12) / 12, atol=1e-3)
    assert distance(frames.images, np.stack(images)) < 9


def test_lower_crf_gives_a_larger_and_better_file(tmp_path: Path) -> None:
    images = list(pan("coffee", 12))
    sizes, distances = [], []
    for crf in (10, 25, 40):
        path = tmp_path / f"{crf}.mp4"
        write_video(path, images, rate=12, crf=crf)
        sizes.append(path.stat().st_size)
        distances.append(distance(read_frames(path, rate=None).images, np.stack(images)))
    assert sizes == sorted(sizes, reverse=True)
    assert distances == sorted(distances)


def test_odd_sizes_are_padded_with_the_last_line(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", [quarters(33, 21)], rate=1, crf=1)
    image = read_frames(tmp_path / "a.mp4").images[0]
    assert image.shape == (22, 34, 3)
    np.testing.assert_allclose(image[-1, -1], 255, atol=3)
    write_video(tmp_path / "b.mp4", [quarters(33, 21)], rate=1, pixel_format="yuv444p")
    assert read_frames(tmp_path / "b.mp4").images.shape == (1, 21, 33, 3)


@pytest.mark.parametrize("rate", [Fraction(30000, 1001), 29.97, 0.5, 23.976023976])
def test_the_frame_rate_is_kept(tmp_path: Path, rate: float | Fraction) -> None:
    write_video(tmp_path / "a.mp4", [flat(i) for i in range(10)], rate=rate)
    frames = read_frames(tmp_path / "a.mp4", rate=None)
    np.testing.assert_allclose(np.diff(frames.timestamps), 1 / float(rate), rtol=1e-3)


def failing() -> Iterator[NDArray[np.uint8]]:
    yield flat(1)
    raise RuntimeError("the camera fell down")


@pytest.mark.parametrize(
    ("frames", "more", "kind", "message"),
    [
        (failing(), {}, RuntimeError, "the camera fell down"),
        ([], {}, InvalidArgumentError, "frames must not be empty"),
        ([flat(1), flat(1, 32, 32)], {}, InvalidArgumentError, r"of the first, \[48, 64, 3\], got \[32, 32, 3\]"),
        ([flat(1).astype(float)], {}, InvalidArgumentError, r"\[H, W, 3\] uint8, got \[48, 64, 3\] float64"),
        ([flat(1)[..., 0]], {}, InvalidArgumentError, r"must be \[H, W, 3\] uint8, got \[48, 64\] uint8"),
        ([flat(1)], {"rate": 0}, InvalidArgumentError, r"rate must be above 0, got 0\.0"),
        ([flat(1)], {"codec": "nope"}, InvalidArgumentError, "codec must be an FFmpeg video encoder, .* got 'nope'"),
        ([flat(1)], {"codec": "aac"}, InvalidArgumentError, "codec must be an FFmpeg video encoder, .* got 'aac'"),
        ([flat(1)], {"codec": "libvpx", "name": "a.avif"}, InvalidArgumentError, r"\.avif files support, got 'libvpx'"),
        ([flat(1)], {"pixel_format": "rgb5"}, InvalidArgumentError, "must be an FFmpeg pixel format, .* got 'rgb5'"),
        ([flat(1)], {"name": "a.nothing"}, MediaError, r"'\.nothing' is not the extension of a video"),
        ([flat(1)], {"options": {"crf": "best"}}, MediaError, r"a\.mp4: cannot be written: Invalid argument"),
        ([flat(1)] * 2, {"times": [0.0]}, InvalidArgumentError, "times must be one per frame, .* got -1 for frame 1"),
        ([flat(1)] * 2, {"times": [0.5, 0.5]}, InvalidArgumentError, "one per frame, .* got 1/2 for frame 1"),
        ([flat(1)], {"name": "none/a.mp4"}, MediaError, r"a\.mp4: cannot be written: there is no folder .*none"),
    ],
)  # fmt: skip
def test_failed_write_leaves_no_file(
    tmp_path: Path, frames: object, more: dict[str, object], kind: type[Exception], message: str
) -> None:
    name = str(more.pop("name", "a.mp4"))
    before = tmp_path / Path(name).name
    before.touch()
    with pytest.raises(kind, match=message):
        write_video(tmp_path / name, frames, **{"rate": 5, **more})  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == [before.name]
    assert before.read_bytes() == b""


def test_a_clip_is_exact_to_the_frame(tmp_path: Path) -> None:
    source = tmp_path / "a.mp4"
    write_video(source, pan("coffee", 100), rate=20, crf=10)
    assert write_clip(source, tmp_path / "clip.mp4", start=1.5, end=2.3, crf=8) == 16
    clip, part = (
        read_frames(tmp_path / "clip.mp4", rate=None),
        read_frames(source, rate=None, start=1.5, end=2.3),
    )
    np.testing.assert_allclose(clip.timestamps, part.timestamps - 1.5, atol=1e-4)
    assert distance(clip.images, part.images) < 3
    # and it does not show neighboring frames
    later = read_frames(source, rate=None, start=1.55, end=2.35)
    assert distance(clip.images, part.images) < distance(clip.images, later.images)


def test_a_clip_keeps_uneven_times_and_scales(tmp_path: Path) -> None:
    source = tmp_path / "a.mp4"
    times = [0, 0.1, 0.4, 1.0, 1.05, 1.9, 2.0, 2.6]
    write_video(source, (flat(30 * i) for i in range(8)), rate=30, times=times)
    assert write_clip(source, tmp_path / "clip.mp4", start=0.3, end=2.0, short_side=24) == 4
    clip = read_frames(tmp_path / "clip.mp4", rate=None)
    np.testing.assert_allclose(clip.timestamps, [0, 0.6, 0.65, 1.5], atol=1e-4)
    np.testing.assert_allclose(clip.images.mean(axis=(1, 2, 3)), [60, 90, 120, 150], atol=3)
    assert clip.images.shape[1:3] == (24, 32)


def test_a_clip_from_screen_shows_the_frame_on_screen_at_every_time(tmp_path: Path) -> None:
    source = tmp_path / "a.mp4"
    times = [0, 0.1, 0.4, 1.0, 1.05, 1.9, 2.0, 2.6]
    write_video(source, (flat(30 * i) for i in range(8)), rate=30, times=times)
    assert write_clip(source, tmp_path / "clip.mp4", start=0.3, end=2.0, from_screen=True) == 5
    clip = read_frames(tmp_path / "clip.mp4", rate=None)
    np.testing.assert_allclose(clip.timestamps, [0, 0.1, 0.7, 0.75, 1.6], atol=1e-4)
    np.testing.assert_allclose(clip.images.mean(axis=(1, 2, 3)), [30, 60, 90, 120, 150], atol=3)
    # A frame that begins exactly at the start is the first one.
    assert write_clip(source, tmp_path / "clip.mp4", start=1.0, end=2.0, from_screen=True) == 3
    clip = read_frames(tmp_path / "clip.mp4", rate=None)
    np.testing.assert_allclose(clip.timestamps, [0, 0.05, 0.9], atol=1e-4)


def test_a_clip_does_not_overwrite_its_video(tmp_path: Path) -> None:
    source = tmp_path / "a.mp4"
    write_video(source, (flat(10 * i) for i in range(20)), rate=10)
    before = source.read_bytes()
    with pytest.raises(MediaError, match=r"a\.mp4: would be overwritten"):
        write_clip(source, source, start=1.0, end=1.5)
    with pytest.raises(MediaError, match=r"a\.mp4: would be overwritten"):
        write_video(source, [flat(1)], rate=10)
    assert source.read_bytes() == before


def test_a_video_can_be_rewritten_from_the_same_source(tmp_path: Path) -> None:
    for _ in range(2):
        write_video(tmp_path / "a.mp4", [flat(1)] * 3, rate=10, made_of="flat frames")
    with pytest.raises(MediaError, match="vidkin made it from another source"):
        write_video(tmp_path / "a.mp4", [flat(1)], rate=10, made_of="other frames")
    assert len(read_frames(tmp_path / "a.mp4", rate=None)) == 3


@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
def test_thumbnails_are_images(tmp_path: Path, ending: str) -> None:
    write_video(tmp_path / "a.mp4", [quarters(96, 64)] * 5, rate=5)
    write_thumbnail(tmp_path / "a.mp4", tmp_path / f"t.{ending}", 0.5, short_side=32)
    with PILImage.open(tmp_path / f"t.{ending}") as picture:
        assert picture.size == (48, 32)
        assert corners(np.asarray(picture.convert("RGB"))) == corners(thumbnail(tmp_path / "a.mp4", 0.5))
    assert probe(tmp_path / f"t.{ending}").still


def test_a_thumbnail_with_an_unknown_extension_is_refused(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", [quarters()], rate=5)
    with pytest.raises(MediaError, match=r"t\.zzz: '\.zzz' is not the extension of an image format"):
        write_thumbnail(tmp_path / "a.mp4", tmp_path / "t.zzz")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


@pytest.mark.parametrize("size", [(64, 48), (1280, 720)])
@pytest.mark.parametrize("pixel_format", ["yuv420p", "yuvj420p", "yuv444p10le"])
def test_colors_survive_at_every_size(tmp_path: Path, size: tuple[int, int], pixel_format: str) -> None:
    image = np.empty((size[1], size[0], 3), dtype=np.uint8)
    image[:] = (200, 100, 50)
    write_video(tmp_path / "a.mp4", [image], rate=5, crf=4, pixel_format=pixel_format)
    np.testing.assert_allclose(read_frames(tmp_path / "a.mp4").images, image[None], atol=3)


def test_the_same_frames_give_the_same_bytes(tmp_path: Path) -> None:
    names = ("a.mp4", "b.mp4", "c.mp4")
    for name in names:
        write_video(tmp_path / name, pan("coffee", 60), rate=15, crf=12)
    assert len({(tmp_path / name).read_bytes() for name in names}) == 1

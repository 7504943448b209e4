"""Reading items as frames: sampling, fit modes, archives and broken files."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.labelled import counting_clip, picture, shown
from vidkin.datasets import LabelledItem, read_content, read_item, register_kind
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError


def item(path: Path, **more: object) -> LabelledItem:
    return LabelledItem(path=path, category="c", subcategory="s", group="g", **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-second video of twenty frames, each with a different gray level."""
    return counting_clip(tmp_path_factory.mktemp("clips") / "clip.mp4")


def test_frames_are_sampled_at_the_centers_of_equal_parts(clip: Path) -> None:
    frames = read_item(item(clip), "video", size=32, frames=4)
    assert frames.shape == (4, 32, 32, 3)
    assert frames.dtype == np.uint8
    # Four parts of half a second: frames at 0.25, 0.75, 1.25 and 1.75 s at ten frames per second.
    assert shown(frames) == [2, 7, 12, 17]


def test_a_single_frame_is_the_middle_frame(clip: Path) -> None:
    assert shown(read_item(item(clip), "video", size=32, frames=1)) == [10]


def test_short_videos_repeat_frames(tmp_path: Path) -> None:
    short = counting_clip(tmp_path / "short.mp4", 3)
    assert shown(read_item(item(short), "video", size=32, frames=6)) == [0, 0, 1, 1, 2, 2]
    single = counting_clip(tmp_path / "single.mp4", 1)
    assert shown(read_item(item(single), "video", size=32, frames=3)) == [0, 0, 0]


def test_every_frame_or_frames_at_a_rate_can_be_read(clip: Path) -> None:
    assert shown(read_item(item(clip), "video", size=32)) == list(range(20))
    assert shown(read_item(item(clip), "video", size=32, rate=5)) == list(range(0, 20, 2))
    assert shown(read_item(item(clip), "video", size=32, rate=5, frames=3)) == [0, 2, 4]
    assert shown(read_item(item(clip), "video", size=32, rate=5, frames=99)) == list(range(0, 20, 2))


def test_excerpt_contains_only_its_own_frames(clip: Path) -> None:
    excerpt = item(clip, start=0.95, end=1.45)
    assert shown(read_item(excerpt, "video", size=32, frames=5)) == [10, 11, 12, 13, 14]
    # The frame shown at the start began before it and is left out, as are frames at or after the end.
    assert shown(read_item(excerpt, "video", size=32, frames=10)) == [10, 10, 10, 11, 11, 12, 12, 13, 13, 14]
    assert shown(read_item(excerpt, "video", size=32)) == [10, 11, 12, 13, 14]
    assert shown(read_item(excerpt, "video", size=32, rate=10)) == [10, 11, 12, 13]
    assert shown(read_item(item(clip, start=1.01, end=1.05), "video", size=32, frames=2)) == [10, 10]
    assert shown(read_item(item(clip, start=1.0), "video", size=32)) == list(range(10, 20))
    assert shown(read_item(item(clip, end=0.45), "video", size=32, frames=2)) == [1, 3]


def test_reading_is_deterministic(clip: Path) -> None:
    once = read_item(item(clip), "video", size=40, frames=5, threads=1)
    assert np.array_equal(once, read_item(item(clip), "video", size=40, frames=5, threads=2))


def test_excerpt_beyond_the_end_is_rejected(clip: Path) -> None:
    with pytest.raises(MediaError, match=r"clip.mp4: start 5.\d s is beyond the end \(2.0 s\)"):
        read_item(item(clip, start=5.0, end=6.0), "video", size=32, frames=3)


def test_image_can_be_read_as_a_video_of_one_frame(tmp_path: Path) -> None:
    path = picture(tmp_path / "still.png", (90, 90, 90), (20, 20))
    assert np.allclose(read_item(item(path), "video", size=8, frames=3), 90, atol=1)


def test_gif_of_one_frame_can_be_read_as_a_video(tmp_path: Path) -> None:
    path = tmp_path / "still.gif"
    Image.new("RGB", (20, 20), (0, 200, 0)).save(path)
    assert read_item(item(path), "video", size=8, frames=3).shape == (3, 8, 8, 3)


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Vertical red, green and blue stripes, 60 x 20 pixels."""
    image = np.zeros((20, 60, 3), np.uint8)
    for stripe in range(3):
        image[:, 20 * stripe : 20 * (stripe + 1), stripe] = 255
    Image.fromarray(image).save(tmp_path / "wide.png")
    return tmp_path / "wide.png"


def test_letterbox_shows_the_whole_image_between_bars(wide: Path) -> None:
    image = read_item(item(wide), "image", size=30)
    assert image.shape == (30, 30, 3)
    assert image[:10].max() == 0
    assert image[20:].max() == 0
    assert image[15, 2].tolist() == [255, 0, 0]
    assert image[15, 15].tolist() == [0, 255, 0]
    assert image[15, 27].tolist() == [0, 0, 255]


def test_crop_keeps_the_center(wide: Path) -> None:
    image = read_item(item(wide), "image", size=20, fit="crop")
    assert (image == [0, 255, 0]).all()


def test_stretch_fills_the_square(wide: Path) -> None:
    image = read_item(item(wide), "image", size=30, fit="stretch")
    assert image[0, 2].tolist() == [255, 0, 0]
    assert image[29, 27].tolist() == [0, 0, 255]


def test_videos_fit_like_images(clip: Path) -> None:
    # A 64 x 48 video in a square of 32 has 24 rows of content.
    letterbox = read_item(item(clip), "video", size=32, frames=1)[0]
    assert letterbox[:4].max() == 0
    assert letterbox[5:27].min() > 90
    assert read_item(item(clip), "video", size=32, frames=1, fit="crop")[0].min() > 90


def test_transparency_becomes_white_and_orientation_is_applied(tmp_path: Path) -> None:
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert read_item(item(tmp_path / "clear.png"), "image", size=8).min() == 255
    turned = Image.fromarray(np.repeat(np.uint8([[0], [255]]), 8, axis=0).repeat(16, axis=1)).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    turned.save(tmp_path / "turned.png", exif=exif)
    image = read_item(item(tmp_path / "turned.png"), "image", size=16)
    assert image[1].min() == 255
    assert image[14].max() == 0


def test_gray_and_one_bit_images_become_rgb(tmp_path: Path) -> None:
    Image.new("1", (9, 9), 1).save(tmp_path / "bit.png")
    Image.new("L", (9, 9), 77).save(tmp_path / "grey.png")
    assert read_item(item(tmp_path / "bit.png"), "image", size=9).min() == 255
    assert (read_item(item(tmp_path / "grey.png"), "image", size=9) == 77).all()


def test_archive_members_can_be_read(tmp_path: Path) -> None:
    picture(tmp_path / "red.png", (255, 0, 0), (8, 8))
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(tmp_path / "red.png", "a/red.png")
    assert (read_item(item(archive, member="a/red.png"), "image", size=8) == [255, 0, 0]).all()
    with pytest.raises(DatasetError, match=r"all\.zip: has no member a/blue\.png"):
        read_item(item(archive, member="a/blue.png"), "image", size=8)
    with pytest.raises(InvalidArgumentError, match=r"is inside an archive; unpack the videos to read them"):
        read_item(item(archive, member="a/clip.mp4"), "video", size=8)


@pytest.mark.hostile
def test_oversized_archive_members_are_not_unpacked(tmp_path: Path) -> None:
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file, file.open("a.txt", "w") as member:
        for _ in range(257):
            member.write(bytes(2**20))
    assert archive.stat().st_size < 2**20
    with pytest.raises(MediaError, match=r"bomb\.zip!a\.txt: is too large to be read: 269,484,032 bytes unpacked"):
        read_content(item(archive, member="a.txt"))


def test_registered_item_kind_can_be_read(tmp_path: Path) -> None:
    """The reader receives the requested number of frames or rate."""

    def read_levels(one: LabelledItem, size: int, frames: int | None, rate: float | None) -> NDArray[np.uint8]:
        levels = np.frombuffer(read_content(one), np.uint8)[:frames]
        return np.broadcast_to(levels[:, None, None, None], (len(levels), size, size, 3))

    register_kind("levels", read_levels)
    (tmp_path / "levels.bin").write_bytes(bytes([10, 20, 30]))
    assert read_item(item(tmp_path / "levels.bin"), "levels", size=4, frames=2).mean((1, 2, 3)).tolist() == [10, 20]
    with pytest.raises(InvalidArgumentError, match="the prefix 'levels' is in use"):
        register_kind("levels", read_levels)


def test_replaced_archive_is_read_again(tmp_path: Path) -> None:
    archive = tmp_path / "all.zip"
    for number, color in enumerate(((255, 0, 0), (0, 0, 255))):
        picture(tmp_path / "one.png", color, (8, 8))
        with zipfile.ZipFile(archive, "w") as file:
            file.write(tmp_path / "one.png", "one.png")
        os.utime(archive, (1000 + number, 1000 + number))
        assert (read_item(item(archive, member="one.png"), "image", size=8) == color).all()


def test_errors_for_broken_files_state_the_cause(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("not a picture")
    whole = picture(tmp_path / "whole.png", size=(64, 64)).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[:60])
    for name in ("text.png", "cut.png"):
        with pytest.raises(MediaError, match=rf"{name}: cannot be read as an image"):
            read_item(item(tmp_path / name), "image", size=8)
    with pytest.raises(MediaError, match=r"gone.png: there is no such file"):
        read_item(item(tmp_path / "gone.png"), "image", size=8)
    with pytest.raises(MediaError, match=r"gone.txt: there is no such file"):
        read_content(item(tmp_path / "gone.txt"))
    with pytest.raises(MediaError, match=r"gone.mp4"):
        read_item(item(tmp_path / "gone.mp4"), "video", size=8, frames=2)
    (tmp_path / "bad.zip").write_bytes(b"PK nothing")
    with pytest.raises(MediaError, match=r"bad.zip!x.png: the archive cannot be read"):
        read_item(item(tmp_path / "bad.zip", member="x.png"), "image", size=8)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
def test_reading_does_not_block_on_a_named_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(MediaError, match=r"pipe.png: cannot be read"):
        read_item(item(tmp_path / "pipe.png"), "image", size=8)
    with pytest.raises(MediaError, match=r"pipe.png!x.png: the archive cannot be read"):
        read_item(item(tmp_path / "pipe.png", member="x.png"), "image", size=8)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("image", {"size": 0}, "size must be at least 1, got 0"),
        ("video", {"frames": 0}, "frames must be at least 1, got 0"),
        ("video", {"rate": 0.0}, r"rate must be above 0 frames per second, got 0\.0"),
        ("image", {"fit": "zoom"}, "fit must be one of 'letterbox', 'crop', 'stretch', got 'zoom'"),
        ("sound", {}, "kind must be one of 'image', 'video', got 'sound'"),
    ],
)
def test_invalid_arguments_are_rejected(kind: str, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        read_item(item(Path("x")), kind, **({"size": 8} | arguments))  # type: ignore[arg-type]

"""Pictures of a folder: upright squares, frames of videos, broken files listed, a cache that notices changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.media import write_video
from vidkin.training.data.image_set import ImageSet, ImageSettings, read_images


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of pictures, a video, a broken picture, a broken video and a text file."""
    root = tmp_path / "material"
    for name, color in (("red", (200, 20, 20)), ("blue", (20, 20, 200))):
        (root / name).mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (40, 30), color).save(root / name / f"{number}.png")
    frames = (np.full((48, 64, 3), 60 * number, np.uint8) for number in range(4) for _ in range(5))
    write_video(root / "gray.mp4", frames, rate=5)
    (root / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a picture")
    (root / "broken.mp4").write_bytes(b"not a video")
    (root / "notes.txt").write_text("no picture")
    return root


def test_squares_groups_and_broken_files(folder: Path) -> None:
    calls: list[tuple[int, int]] = []
    pictures = read_images(
        [folder],
        ImageSettings(side=16, frames_per_video=4),
        on_file=lambda done, total: calls.append((done, total)),
    )
    assert pictures.images.shape == (8, 3, 16, 16)
    assert pictures.images.dtype == torch.uint8
    assert sorted(pictures.group_names) == ["material/blue", "material/gray.mp4", "material/red"]
    assert torch.bincount(pictures.groups).tolist() == [2, 4, 2]
    assert sorted(Path(file.path).name for file in pictures.broken) == ["broken.jpg", "broken.mp4"]
    assert all(file.cause for file in pictures.broken)
    assert list(pictures.counts().values()) == [8]
    assert calls[-1] == (7, 7)
    assert pictures[0].shape == (3, 16, 16)


def test_frames_come_from_all_over_the_video(folder: Path) -> None:
    pictures = read_images([folder / "gray.mp4"], ImageSettings(side=8, frames_per_video=4))
    levels = pictures.images.float().mean((1, 2, 3))
    torch.testing.assert_close(levels, torch.tensor([0.0, 60.0, 120.0, 180.0]), atol=6.0, rtol=0.0)


def test_exif_orientation_is_followed(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 20), (0, 0, 0))
    image.paste((255, 255, 255), (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be shown turned right by 90 degrees: what is left goes up
    image.save(tmp_path / "turned.jpg", exif=exif)
    picture = read_images([tmp_path], ImageSettings(side=8)).images[0].float()
    assert float(picture[:, :3].mean()) > 240
    assert float(picture[:, -3:].mean()) < 15


def test_cache_is_used_and_notices_changes(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.safetensors"
    settings = ImageSettings(side=8)
    first = read_images([folder], settings, cache=cache)
    saved = cache.stat().st_mtime_ns
    again = read_images([folder], settings, cache=cache)
    assert cache.stat().st_mtime_ns == saved
    assert torch.equal(first.images, again.images)
    assert torch.equal(first.groups, again.groups)
    assert first.broken == again.broken
    Image.new("RGB", (10, 10)).save(folder / "red" / "new.png")
    assert len(read_images([folder], settings, cache=cache)) == len(first) + 1


def test_a_damaged_cache_is_replaced(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.safetensors"
    cache.write_bytes(b"damaged")
    assert len(read_images([folder], ImageSettings(side=8), cache=cache)) == 8
    assert len(ImageSet.load(cache)) == 8


def test_selection_keeps_groups(folder: Path) -> None:
    pictures = read_images([folder], ImageSettings(side=8))
    part = pictures.select(torch.tensor([5, 0]))
    assert torch.equal(part.images[1], pictures.images[0])
    assert part.groups.tolist() == [int(pictures.groups[5]), int(pictures.groups[0])]


def test_missing_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="does not exist"):
        read_images([tmp_path / "none"])
    with pytest.raises(DatasetError, match="no image could be read"):
        read_images([tmp_path])


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        ImageSettings(side=0)

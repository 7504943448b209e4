"""Image sets from folders: upright squares, video frames, broken files, and a cache that detects changes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.media import write_video
from vidkin.training import FrameNeighbors, ImageSet
from vidkin.training.image_set import ImageSettings, read_images


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of images, a video, a broken image, a broken video and a text file."""
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


def test_folders_are_read_as_squares_with_groups_and_broken_files(folder: Path) -> None:
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


def test_cache_is_used_until_files_change(folder: Path, tmp_path: Path) -> None:
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


def test_cache_of_an_earlier_version_is_used(folder: Path, tmp_path: Path) -> None:
    """The cache key is the one used before images could have neighbors."""
    path = folder / "red" / "0.png"
    state = path.stat()
    entries = [
        1,
        {"side": 8, "frames_per_video": 4},
        [str(path), ".", 0, state.st_size, state.st_mtime_ns],
    ]
    black = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
    groups, sources = (torch.zeros(1, dtype=torch.int64) for _ in range(2))
    ImageSet(black, groups, ["."], sources, ["red/0.png"]).save(
        tmp_path / "cache", hashlib.sha256(json.dumps(entries).encode()).hexdigest()
    )
    near = ImageSettings(side=8, neighbor_seconds=0.3)
    assert torch.equal(read_images([path], ImageSettings(side=8), cache=tmp_path / "cache").images, black)
    assert not torch.equal(read_images([path], near, cache=tmp_path / "cache").images, black)


def test_neighbors_of_frames_are_stored_and_selected(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.safetensors"
    settings = ImageSettings(side=8, frames_per_video=4, neighbor_seconds=0.3)
    pictures = read_images([folder], settings, cache=cache)
    assert pictures.neighbors is not None
    # blue: 2 photographs, gray.mp4: 4 frames, red: 2 photographs
    assert pictures.neighbors.positions.tolist() == [-1, -1, 0, 1, 2, 3, -1, -1]
    assert pictures.neighbors.squares.shape == (4, 3, 8, 8)
    assert list(pictures.counts().values()) == [8]
    again = read_images([folder], settings, cache=cache)
    assert again.neighbors is not None
    assert torch.equal(again.neighbors.squares, pictures.neighbors.squares)
    assert torch.equal(again.neighbors.positions, pictures.neighbors.positions)
    part = pictures.select(torch.tensor([5, 0, 3])).neighbors
    assert part is not None
    assert part.positions.tolist() == [0, -1, 1]
    assert torch.equal(part.squares, pictures.neighbors.squares[[3, 1]])
    # Without the setting, only the images are stored.
    assert read_images([folder], ImageSettings(side=8), cache=cache).neighbors is None
    assert sorted(load_file(cache)) == ["groups", "images", "sources"]


def test_neighbors_of_other_images_are_rejected() -> None:
    images, numbers = torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)
    for squares, places in ((images, numbers[:1]), (images[..., :4], numbers)):
        with pytest.raises(InvalidArgumentError, match=r"neighbors must belong to the 2 images of shape \[3, 8, 8\]"):
            ImageSet(images, numbers, ["a"], numbers, ["a"], neighbors=FrameNeighbors(squares, places))


def test_damaged_cache_is_replaced(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.safetensors"
    cache.write_bytes(b"damaged")
    assert len(read_images([folder], ImageSettings(side=8), cache=cache)) == 8
    assert len(ImageSet.load(cache)) == 8


def test_subset_keeps_groups(folder: Path) -> None:
    pictures = read_images([folder], ImageSettings(side=8))
    part = pictures.select(torch.tensor([5, 0]))
    assert torch.equal(part.images[1], pictures.images[0])
    assert part.groups.tolist() == [int(pictures.groups[5]), int(pictures.groups[0])]


def test_missing_and_empty_folders_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="does not exist"):
        read_images([tmp_path / "none"])
    with pytest.raises(DatasetError, match="no image could be read"):
        read_images([tmp_path])

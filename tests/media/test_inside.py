"""Videos in photographs, animated images, and recordings with the file names of phones and recorders."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.videos import encode, pan
from vidkin.errors import MediaError
from vidkin.index import Index, scan
from vidkin.media import probe, read_frames

WIDTH, HEIGHT, COUNT = 96, 64, 20


@pytest.fixture
def frames() -> list[np.ndarray]:
    return list(pan("coffee", COUNT, width=WIDTH, height=HEIGHT))


def still(frame: np.ndarray) -> bytes:
    made = io.BytesIO()
    Image.fromarray(frame).resize((400, 300)).save(made, "JPEG")
    return made.getvalue()


def motion_photo(path: Path, frames: list[np.ndarray], photograph: bytes) -> Path:
    """Write a motion photo like a phone: the video follows the photograph in the same file."""
    movie = encode(path.with_suffix(".mp4"), frames, rate=10)
    path.write_bytes(photograph + movie.read_bytes())
    movie.unlink()
    return path


@pytest.mark.parametrize("name", ["PXL_1.MP.jpg", "IMG_2.heic"])
def test_the_video_in_a_motion_photo_is_read(tmp_path: Path, frames: list[np.ndarray], name: str) -> None:
    if name.endswith(".heic"):  # boxes of an image, the last one with the video
        movie = encode(tmp_path / "m.mp4", frames, rate=10).read_bytes()
        brand = (24).to_bytes(4, "big") + b"ftypheic" + bytes(4) + b"mif1heic"
        path = tmp_path / name
        path.write_bytes(brand + (8 + len(movie)).to_bytes(4, "big") + b"mpvd" + movie)
    else:
        path = motion_photo(tmp_path / name, frames, still(frames[0]))
    assert (probe(path).codec, probe(path).duration) == ("h264", pytest.approx(2.0, abs=0.1))
    read = read_frames(path, rate=None).images
    assert read.shape == (COUNT, HEIGHT, WIDTH, 3)
    assert np.abs(read.astype(int) - np.stack(frames)).mean() < 12


def test_a_photograph_is_a_video_only_if_a_complete_video_follows(tmp_path: Path, frames: list[np.ndarray]) -> None:
    path = motion_photo(tmp_path / "a.jpg", frames, still(frames[0]))
    whole = path.read_bytes()
    for end in (whole[:-400], whole[: whole.index(b"ftyp") + 40], still(frames[0]) + b"ftyp" * 9):
        path.write_bytes(end)
        assert (probe(path).codec, len(read_frames(path, rate=None).images)) == ("mjpeg", 1)


@pytest.mark.parametrize("name", ["a.webp", "a.png", "a.apng"])
def test_animated_images_are_videos_with_their_times(tmp_path: Path, frames: list[np.ndarray], name: str) -> None:
    pictures = [Image.fromarray(frame) for frame in frames]
    times = [50] * 10 + [200] * 10
    form = "WEBP" if name == "a.webp" else "PNG"
    more = {"lossless": True} if form == "WEBP" else {}
    pictures[0].save(tmp_path / name, form, save_all=True, append_images=pictures[1:], duration=times, loop=0, **more)
    pictures[0].save(tmp_path / f"still{Path(name).suffix}", form)
    assert [Path(file.path).name for file in scan([tmp_path]).files if "still" not in file.path] == [name]
    assert not any(file.path.endswith(("still.webp", "still.png")) for file in scan([tmp_path]).files)
    read = read_frames(tmp_path / name, rate=None)
    assert np.array_equal(read.images, np.stack(frames))
    assert read.timestamps == pytest.approx(np.cumsum([0, *times[:-1]]) / 1000, abs=0.02)
    assert probe(tmp_path / name).duration == pytest.approx(2.5, abs=0.21)


def test_a_damaged_animation_is_reported(tmp_path: Path, frames: list[np.ndarray]) -> None:
    path = tmp_path / "a.webp"
    pictures = [Image.fromarray(frame) for frame in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=100)
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(MediaError, match=r"a\.webp: "):
        read_frames(path, rate=None)


def test_file_names_of_phones_and_recorders_are_recognized_as_videos(tmp_path: Path, frames: list[np.ndarray]) -> None:
    for name in ("PXL_20240101.MP", "ch01_2024.dav"):
        shutil.move(encode(tmp_path / "m.mp4", frames, rate=10), tmp_path / name)
    assert len(scan([tmp_path]).files) == 2


def test_a_motion_photo_is_never_planned_for_removal(tmp_path: Path, frames: list[np.ndarray]) -> None:
    """Only its video is compared, while its photograph may exist nowhere else."""
    long = [frame for frame in frames for _ in range(3)]
    path = motion_photo(tmp_path / "a.jpg", long, still(frames[0]))
    encode(tmp_path / "b.mp4", long, rate=10)
    with Index.open(tmp_path / "i", create=True) as index:
        index.add([path, tmp_path / "b.mp4"], workers=1)
        (group,) = index.duplicates()
        member = next(member for member in group.members if member.path == str(path))
    assert member.best or member.stays

"""Every kind of source is read like a file, and other values are refused."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import Frames, open_source, probe, read_frames, source_name

IMAGES = np.stack([photograph("coffee")[:61, :83], photograph("chelsea")[:61, :83]])


def test_in_memory_frames_are_lossless(tmp_path: Path) -> None:
    with open_source(IMAGES, 5) as path:
        frames = read_frames(path, rate=None)
    assert np.array_equal(frames.images, IMAGES)
    assert frames.timestamps.tolist() == pytest.approx([0.0, 0.2])
    assert not Path(path).exists()
    with open_source(IMAGES[0]) as path:
        assert np.array_equal(read_frames(path).images[0], IMAGES[0])
    with open_source(tmp_path / "a.mp4") as path:
        assert path == tmp_path / "a.mp4"


def test_an_image_is_rotated_upright() -> None:
    picture = Image.fromarray(photograph("coffee")[:40, :80])
    picture.getexif()[0x0112] = 6  # rotated 90 degrees clockwise
    with open_source(picture) as path:
        assert read_frames(path).images.shape == (1, 80, 40, 3)


def pictures() -> Iterator[Image.Image]:
    return (Image.fromarray(image) for image in IMAGES)


MOVING: dict[str, Callable[[], Any]] = {
    "an iterator of arrays": lambda: iter(IMAGES),
    "a list of arrays": lambda: list(IMAGES),
    "an iterator of pictures": pictures,
    "frames": lambda: Frames(IMAGES, np.array([7.0, 7.2])),
    "an iterator of frames": lambda: iter([Frames(IMAGES[:1], np.array([7.0])), Frames(IMAGES[1:], np.array([7.2]))]),
    "an array of arrays": lambda: IMAGES,
}


@pytest.mark.parametrize("kind", MOVING)
def test_frames_of_any_kind_become_one_video(kind: str) -> None:
    with open_source(MOVING[kind](), 5) as path:
        frames = read_frames(path, rate=None)
    assert np.array_equal(frames.images, IMAGES)
    assert frames.timestamps.tolist() == pytest.approx([0.0, 0.2], abs=1e-3)


def test_bytes_and_open_files_are_read_like_the_file(tmp_path: Path) -> None:
    file = encode(tmp_path / "clip.mp4", pan("coffee", 20, width=96, height=64))
    expected = read_frames(file, rate=None)
    content = file.read_bytes()
    with file.open("rb") as opened:
        assert source_name(opened) == str(file)
        with open_source(opened) as path:
            assert path == str(file)
    with file.open("rb") as opened:
        opened.seek(1)
        opened.seek(0)
        for source in (content, bytearray(content), memoryview(content), io.BytesIO(content), opened):
            with open_source(source) as path:
                assert np.array_equal(read_frames(path, rate=None).images, expected.images)
            assert source_name(source) in ("", str(file))


def test_error_about_in_memory_data_does_not_name_the_temporary_file() -> None:
    with pytest.raises(MediaError, match=r"^bytes: ") as caught, open_source(b"no video") as path:
        probe(path)
    assert caught.value.path == "bytes"
    with pytest.raises(MediaError, match=r"nowhere\.mp4"), open_source(b"no video"):
        probe("nowhere.mp4")


def zeros(*shape: int, kind: type[np.generic] = np.uint8) -> NDArray[Any]:
    return np.zeros(shape, kind)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (zeros(4, 4), r"query must be a path, bytes.*, got an array \[4, 4\] uint8"),
        (zeros(4, 4, 3, kind=np.float64), r"got an array \[4, 4, 3\] float64"),
        (zeros(0, 4, 4, 3), r"query must have at least one frame, got none"),
        (zeros(2, 0, 4, 3), r"got an array \[2, 0, 4, 3\] uint8"),
        (zeros(2, 4, 4, 3), r"frame_rate must be above 0 frames per second, got None"),
        (Frames(zeros(0, 4, 4, 3), np.zeros(0)), "at least one frame, got none"),
        (7, "query must be a path, bytes, .* or an iterator of such frames, got int"),
        (None, "got NoneType"),
        ([], "at least one frame, got none; accepted is a path"),
        (["a.mp4"], "each frame of query must be .*, got str"),
        ({"a": 1}, "got dict"),
        (iter([zeros(4, 4)]), r"query must be .*, got an array \[4, 4\] uint8"),
        (io.StringIO("text"), "query must be opened as a binary file"),
        ([zeros(4, 4, 3), Frames(zeros(1, 4, 4, 3), np.ones(1))], "frame_rate|times for all of its frames"),
    ],
)
def test_other_types_are_refused_with_a_list_of_the_accepted_types(source: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message), open_source(source, name="query"):
        pass


def test_either_all_frames_have_times_or_none() -> None:
    mixed: list[Any] = [IMAGES[0], Frames(IMAGES[1:], np.array([1.0]))]
    with pytest.raises(InvalidArgumentError, match="times for all of its frames or for none"), open_source(mixed, 5):
        pass
    with pytest.raises(InvalidArgumentError, match="frame_rate must be above 0"), open_source(IMAGES, 0):
        pass


def test_a_closed_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    with (tmp_path / "a").open("rb") as file:
        pass
    with pytest.raises(InvalidArgumentError, match="cannot be read as a file"), open_source(file):
        pass

"""Pictures and frames in memory as queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError
from vidkin.index import Index, SerialExecutor
from vidkin.index.query.query import query_file
from vidkin.media import Frames, read_frames


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("arrays")
    for name in ("coffee", "rocket"):
        encode(root / f"{name}.mp4", pan(name, 60, width=160, height=120))
    with Index.open(root / "c.vidkin", create=True) as opened:
        opened.add(root, executor=SerialExecutor(opened.worker_spec))
        yield opened


def clip() -> NDArray[np.uint8]:
    """Seconds 2 to 5 of ``coffee.mp4``, ten frames a second."""
    return np.stack(list(pan("coffee", 50, width=160, height=120))[20:])


def test_an_array_of_frames_is_a_clip(index: Index) -> None:
    first = index.search(clip(), frame_rate=10)[0]
    assert Path(first.path).name == "coffee.mp4"
    segment = first.segments[0]
    assert (segment.query_start, segment.query_end) == pytest.approx((0.0, 3.0), abs=0.3)
    assert (segment.target_start, segment.target_end) == pytest.approx((2.0, 5.0), abs=0.3)
    times = 7.0 + np.arange(30) / 10  # times count from the first frame
    frames = index.search(Frames(clip(), times))[0]
    assert (frames.score, frames.segments) == (first.score, first.segments)


@pytest.mark.parametrize("kind", ["array", "picture"])
def test_a_picture_finds_its_moment(index: Index, kind: str) -> None:
    picture = clip()[12]
    first = index.search(picture if kind == "array" else Image.fromarray(picture).convert("RGBA"))[0]
    assert Path(first.path).name == "coffee.mp4"
    assert first.segments[0].target_start == pytest.approx(3.2, abs=0.3)
    assert first.segments[0].query_end == 0.0


def test_a_query_in_memory_loses_nothing(tmp_path: Path) -> None:
    images = np.stack([photograph("coffee")[:61, :83], photograph("chelsea")[:61, :83]])
    with query_file(images, 5) as path:
        frames = read_frames(path, rate=None)
    assert np.array_equal(frames.images, images)
    assert frames.timestamps.tolist() == pytest.approx([0.0, 0.2])
    assert not Path(path).exists()
    with query_file(images[0]) as path:
        assert np.array_equal(read_frames(path).images[0], images[0])
    with query_file(tmp_path / "a.mp4") as path:
        assert path == tmp_path / "a.mp4"


def test_a_picture_is_turned_upright() -> None:
    picture = Image.fromarray(photograph("coffee")[:40, :80])
    picture.getexif()[0x0112] = 6  # turned a quarter clockwise
    with query_file(picture) as path:
        assert read_frames(path).images.shape == (1, 80, 40, 3)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (np.zeros((4, 4), np.uint8), r"must be a file, a PIL image.*got \[4, 4\] uint8"),
        (np.zeros((4, 4, 3)), r"got \[4, 4, 3\] float64"),
        (np.zeros((0, 4, 4, 3), np.uint8), r"with at least one frame, got \[0, 4, 4, 3\]"),
        (
            np.zeros((2, 4, 4, 3), np.uint8),
            r"frame_rate must be the frames per second of the array \[T, H, W, 3\], above 0, got None",
        ),
        (Frames(np.zeros((0, 4, 4, 3), np.uint8), np.zeros(0)), "at least one frame, got none"),
        (7, "got int"),
    ],
)
def test_invalid_queries_are_refused(query: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message), query_file(query):  # type: ignore[arg-type]
        pass


def test_the_best_matches_can_be_left_out(index: Index) -> None:
    every = index.search(clip(), frame_rate=10)
    assert index.search(clip(), frame_rate=10, offset=1) == every[1:]
    with pytest.raises(InvalidArgumentError, match="offset must be at least 0, got -1"):
        index.search(clip(), frame_rate=10, offset=-1)

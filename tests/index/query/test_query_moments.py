"""Images as queries find the right video and the time at which it shows them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.videos import encode, pan
from vidkin.index import Index, SerialExecutor, VideoRecord
from vidkin.index.query.query import Readings
from vidkin.similarity import FrameFeatures

# At ten frames per second, the camera moves so fast that frames a second apart have little in common (every 8th frame).
FAST = 8
SECONDS = 5


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("moments")
    (root / "videos").mkdir()
    for name in ("coffee", "chelsea", "rocket"):
        encode(root / "videos" / f"{name}.mp4", fast(name))
    still(root / "videos" / "photo.png", "astronaut", 0)
    with Index.open(root / "c.vidkin", create=True) as opened:
        opened.add([root / "videos", root / "videos" / "photo.png"], executor=SerialExecutor(opened.worker_spec))
        yield opened


@cache
def fast(name: str) -> list[NDArray[np.uint8]]:
    return list(pan(name, SECONDS * 10 * FAST, width=160, height=120))[::FAST]


def still(path: Path, name: str, number: int) -> Path:
    """Write a frame of a fast video as an image."""
    Image.fromarray(fast(name)[number]).save(path)
    return path


@pytest.mark.parametrize("number", [3, *(pytest.param(number, marks=pytest.mark.thorough) for number in (13, 27)), 44])
@pytest.mark.parametrize("name", ["coffee", "chelsea"])
def test_still_between_two_stored_frames_is_found_at_its_time(
    index: Index, tmp_path: Path, name: str, number: int
) -> None:
    first, *others = index.search(still(tmp_path / "still.png", name, number))
    assert Path(first.path).stem == name
    assert first.score > 0.7
    segment = first.segments[0]
    assert segment.target_start == pytest.approx(number / 10, abs=0.25)
    assert segment.target_end - segment.target_start < 0.3
    assert all(match.score < 0.3 for match in others)


@pytest.mark.thorough
def test_match_of_an_image_has_no_duration(index: Index, tmp_path: Path) -> None:
    picture = still(tmp_path / "still.png", "coffee", 33)
    segment = index.search(picture)[0].segments[0]
    assert (segment.query_start, segment.query_end, segment.speed) == (0.0, 0.0, 1.0)
    segment = index.match(picture, next(r.path for r in index.videos() if "coffee" in r.path)).segments[0]
    assert (segment.query_start, segment.query_end) == (0.0, 0.0)


def test_flipped_image_is_found_as_mirrored(index: Index, tmp_path: Path) -> None:
    picture = still(tmp_path / "still.png", "coffee", 33)
    Image.open(picture).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(picture)
    first = index.search(picture)[0]
    assert (Path(first.path).stem, first.mirrored) == ("coffee", True)
    assert first.segments[0].target_start == pytest.approx(3.3, abs=0.25)


def test_indexed_photograph_is_found_without_times(index: Index, tmp_path: Path) -> None:
    picture = still(tmp_path / "smaller.png", "astronaut", 0)
    Image.open(picture).resize((120, 90)).save(picture)
    first = index.search(picture)[0]
    assert Path(first.path).name == "photo.png"
    assert first.score > 0.7
    segment = first.segments[0]
    assert (segment.query_end, segment.target_start, segment.target_end) == (0.0, 0.0, 0.0)


def test_deleted_video_is_compared_by_its_stored_features(tmp_path: Path) -> None:
    video = encode(tmp_path / "coffee.mp4", fast("coffee"))
    with Index.open(tmp_path / "c.vidkin", create=True) as index:
        index.add(video, executor=SerialExecutor(index.worker_spec))
        video.unlink()
        first = index.search(still(tmp_path / "still.png", "coffee", 30))[0]
    assert first.segments[0].target_start <= 3.0 <= first.segments[0].target_end


def test_surroundings_of_the_best_frame_are_read_even_if_a_stored_frame_equals_the_image(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the camera hardly moves, two frames a second apart both match an image whose time is between them."""
    read: list[tuple[str, float, float]] = []
    stretch = Readings.stretch

    def watched(self: Readings, record: VideoRecord, start: float, end: float) -> FrameFeatures | None:
        read.append((Path(record.path).stem, start, end))
        return stretch(self, record, start, end)

    monkeypatch.setattr(Readings, "stretch", watched)
    first = index.search(still(tmp_path / "still.png", "coffee", 20))[0]
    assert first.score > 0.7
    assert first.segments[0].target_start == pytest.approx(2.0, abs=0.06)
    name, start, end = read[0]
    assert (name, (start + end) / 2) == ("coffee", pytest.approx(2.0))

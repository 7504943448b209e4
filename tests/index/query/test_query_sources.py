"""Images and in-memory frames as queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import vidkin
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index import Index, SerialExecutor
from vidkin.media import Frames, write_video


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("arrays")
    for name in ("coffee", "rocket"):
        encode(root / f"{name}.mp4", pan(name, 60, width=160, height=120))
    with Index.open(root / "c.vidkin", create=True) as opened:
        opened.add(root, executor=SerialExecutor(opened.worker_spec))
        yield opened


def clip() -> NDArray[np.uint8]:
    """Seconds 2 to 5 of ``coffee.mp4`` at ten frames per second."""
    return np.stack(list(pan("coffee", 50, width=160, height=120))[20:])


def test_array_of_frames_is_searched_as_a_clip(index: Index) -> None:
    first = index.search(clip(), frame_rate=10)[0]
    assert Path(first.path).name == "coffee.mp4"
    segment = first.segments[0]
    assert (segment.query_start, segment.query_end) == pytest.approx((0.0, 3.0), abs=0.3)
    assert (segment.target_start, segment.target_end) == pytest.approx((2.0, 5.0), abs=0.3)
    times = 7.0 + np.arange(30) / 10  # times start at the first frame
    frames = index.search(Frames(clip(), times))[0]
    assert (frames.score, frames.segments) == (first.score, first.segments)


@pytest.mark.parametrize("kind", ["array", "picture"])
def test_image_is_found_at_its_time(index: Index, kind: str) -> None:
    picture = clip()[12]
    first = index.search(picture if kind == "array" else Image.fromarray(picture).convert("RGBA"))[0]
    assert Path(first.path).name == "coffee.mp4"
    assert first.segments[0].target_start == pytest.approx(3.2, abs=0.3)
    assert first.segments[0].query_end == 0.0


RARE = [
    pytest.param(kind, marks=pytest.mark.thorough)
    for kind in ("bytes", "open file", "frames", "iterator", "list of pictures")
]


@pytest.mark.parametrize("kind", ["path", pytest.param("array", marks=pytest.mark.thorough), *RARE])
def test_every_function_takes_every_kind_of_source(index: Index, tmp_path: Path, kind: str) -> None:
    images = clip()
    path = tmp_path / "query.mkv"
    write_video(path, images, rate=10, codec="ffv1", crf=None, preset=None, pixel_format="bgr0")
    sources: dict[str, Callable[[], Any]] = {
        "path": lambda: path,
        "bytes": path.read_bytes,
        "open file": lambda: path.open("rb"),
        "array": lambda: images,
        "frames": lambda: Frames(images, np.arange(len(images)) / 10),
        "iterator": lambda: iter(images),
        "list of pictures": lambda: [Image.fromarray(image) for image in images],
    }
    rate = 10 if kind in ("array", "iterator", "list of pictures") else None
    target = next(iter(index)).path
    with ExitStack() as stack:

        def source() -> Any:
            made = sources[kind]()
            return stack.enter_context(made) if kind == "open file" else made

        found = index.search(source(), frame_rate=rate, limit=1)[0]
        assert Path(found.path).name == "coffee.mp4"
        assert index.match(source(), target, frame_rate=rate).score == pytest.approx(found.score, abs=0.1)
        compared = vidkin.compare(source(), target, frame_rate=rate)
        assert compared.score == pytest.approx(vidkin.compare(target, source(), frame_rate=rate).score)
        assert compared.segments[0].target_start == pytest.approx(2.0, abs=0.3)
        features = vidkin.embed(source(), frame_rate=rate, start=1, end="0:02")
        assert features.values.ndim == 4
        assert 1.0 <= features.timestamps[0] <= features.timestamps[-1] < 2.0


def test_image_is_embedded(index: Index) -> None:
    features = vidkin.embed(clip()[0])
    assert len(features) == 1
    assert vidkin.embed(Image.fromarray(clip()[0])).values == pytest.approx(features.values)


def test_invalid_time_ranges_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="end must be after start"):
        vidkin.embed(clip(), frame_rate=10, start=2, end=1)
    with pytest.raises(MediaError, match="beyond the end"):
        vidkin.embed(clip(), frame_rate=10, start=20)
    with pytest.raises(InvalidArgumentError, match="rate must be above 0"):
        vidkin.embed(clip(), frame_rate=10, rate=0)


def test_best_matches_can_be_skipped(index: Index) -> None:
    every = index.search(clip(), frame_rate=10)
    assert index.search(clip(), frame_rate=10, offset=1) == every[1:]
    with pytest.raises(InvalidArgumentError, match="offset must be at least 0, got -1"):
        index.search(clip(), frame_rate=10, offset=-1)

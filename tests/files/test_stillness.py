"""How much stiller one copy is than another one, on files that were really encoded."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.videos import encode, photograph
from vidkin.files.stillness import NeighborFrames, compare_stillness

Frames = list[NDArray[np.uint8]]


def resize(frames: Frames, width: int, height: int) -> Frames:
    return [np.asarray(Image.fromarray(frame).resize((width, height), Image.Resampling.BICUBIC)) for frame in frames]


def store(path: Path, frames: Frames, quality: int) -> Frames:
    encode(path, frames, options={"crf": str(quality)})
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def moments(frames: Frames) -> list[NeighborFrames]:
    return list(zip(frames[::3], frames[1::3], strict=False))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """A soft picture that a camera with some noise looks at."""
    soft = np.asarray(Image.fromarray(photograph("coffee")[:256, :384]).resize((96, 64)).resize((384, 256)), np.float32)
    noise = np.random.default_rng(3)
    frames = [np.clip(soft + noise.normal(0, 2.0, soft.shape), 0, 255).astype(np.uint8) for _ in range(18)]
    return store(tmp_path_factory.mktemp("source") / "source.mp4", frames, 17)


def test_a_small_copy_holds_still_what_its_source_moves(source: Frames, tmp_path: Path) -> None:
    small = store(tmp_path / "small.mp4", resize(source, 256, 168), 30)
    assert compare_stillness(moments(source), moments(small)) > 1.0


def test_an_enlargement_moves_nothing_that_its_source_holds_still(source: Frames, tmp_path: Path) -> None:
    small = store(tmp_path / "small.mp4", resize(source, 256, 168), 30)
    large = store(tmp_path / "large.mp4", resize(small, 384, 256), 18)
    assert compare_stillness(moments(large), moments(small)) < 0.5


def test_frames_that_are_shown_twice_and_no_moments_say_nothing(source: Frames) -> None:
    twice = [(source[0], source[0])] * 4
    small = [tuple(resize(list(pair), 256, 168)) for pair in twice]
    assert compare_stillness(twice, [(one, two) for one, two in small]) == 0.0
    assert compare_stillness([], []) == 0.0

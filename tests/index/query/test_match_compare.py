"""Comparing two files without an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vidkin
from tests.support.videos import encode, pan


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A six-second video, and the same six seconds next to other footage."""
    folder = tmp_path_factory.mktemp("halves")
    own, other = list(pan("coffee", 60, width=160, height=120)), pan("rocket", 60, width=160, height=120)
    beside = [np.concatenate([two, one], axis=1)[::2, ::2] for one, two in zip(own, other, strict=True)]
    return encode(folder / "clip.mp4", own, rate=10), encode(folder / "split.mp4", beside, rate=10)


@pytest.mark.parametrize("extractor", ["vidkin", pytest.param("classical", marks=pytest.mark.large)])
def test_half_of_a_split_screen_is_found_in_its_box(halves: tuple[Path, Path], extractor: str) -> None:
    comparison = vidkin.compare(*halves, extractor=extractor)
    assert comparison.score > 0.7
    left, top, right, bottom = comparison.segments[0].target_box
    assert right - left == pytest.approx(0.5, abs=0.1)
    assert bottom - top == pytest.approx(1.0, abs=0.1)


@pytest.mark.thorough
def test_area_not_covered_by_an_overlay_is_found(tmp_path: Path) -> None:
    own, other = (list(pan(name, 80, width=192, height=128)) for name in ("coffee", "rocket"))
    hidden = [np.concatenate([one[:, :77], two[:, :115]], axis=1) for one, two in zip(own, other, strict=True)]
    clip, covered = encode(tmp_path / "clip.mp4", own, rate=10), encode(tmp_path / "covered.mp4", hidden, rate=10)
    comparison = vidkin.compare(clip, covered)
    assert comparison.score > 0.7
    # Other footage covers the right 60 %, so only the left part matches.
    left, _, right, _ = comparison.segments[0].query_box
    assert left == 0.0
    assert right == pytest.approx(0.6, abs=0.01)
    stranger = encode(tmp_path / "other.mp4", pan("astronaut", 80, width=192, height=128), rate=10)
    assert vidkin.compare(stranger, covered).score < 0.2

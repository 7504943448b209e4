"""Two files side by side without an index."""

from __future__ import annotations

from pathlib import Path

import pytest

import vidkin
from tests.support.videos import encode, pan
from vidkin.media import apply_edit


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Six seconds, and the same beside other footage."""
    folder = tmp_path_factory.mktemp("halves")
    clip = encode(folder / "clip.mp4", pan("coffee", 60, width=160, height=120), rate=10)
    filler = encode(folder / "filler.mp4", pan("rocket", 60, width=160, height=120), rate=10)
    split = folder / "split.mp4"
    apply_edit(clip, split, "split_left_right", seed=2, filler=filler)
    return clip, split


@pytest.mark.parametrize("extractor", ["vidkin", pytest.param("classical?views=both", marks=pytest.mark.large)])
def test_views_find_half_of_a_split_screen(halves: tuple[Path, Path], extractor: str) -> None:
    comparison = vidkin.compare(*halves, extractor=extractor, mirrored=False)
    assert comparison.score > 0.5
    left, top, right, bottom = comparison.segments[0].target_box
    assert right - left == pytest.approx(0.5, abs=0.1)
    assert bottom - top == pytest.approx(1.0, abs=0.1)


def test_the_whole_picture_alone_does_not(halves: tuple[Path, Path]) -> None:
    assert vidkin.compare(*halves, extractor="classical", mirrored=False).score < 0.2


def test_what_is_visible_beside_a_cover_is_found(tmp_path: Path) -> None:
    clip = encode(tmp_path / "clip.mp4", pan("coffee", 80, width=192, height=128), rate=10)
    filler = encode(tmp_path / "filler.mp4", pan("rocket", 80, width=192, height=128), rate=10)
    covered = tmp_path / "covered.mp4"
    apply_edit(clip, covered, "covered_60", seed=0, filler=filler)
    comparison = vidkin.compare(clip, covered, mirrored=False)
    assert comparison.score > 0.9
    # Other footage hides the right 60 %; neither picture shows the other as a whole.
    assert comparison.segments[0].query_box == pytest.approx((0, 0, 1 / 3, 1), abs=0.01)
    assert comparison.segments[0].target_box == pytest.approx((0, 0, 1 / 3, 1), abs=0.01)
    other = encode(tmp_path / "other.mp4", pan("astronaut", 80, width=192, height=128), rate=10)
    assert vidkin.compare(other, covered, mirrored=False).score < 0.1

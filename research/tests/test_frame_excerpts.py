"""Excerpts of full frames: positions, splits, and exact frames."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.videos import encode
from vidkin.datasets import LabelledItem, LabelledSet, read_item
from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_excerpts import make_frame_excerpts


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> LabelledSet:
    """A video of 24 frames, in which frame k has gray value 10 k, and one of 4 frames."""
    folder = tmp_path_factory.mktemp("excerpts")
    items = []
    for name, count in (("long", 24), ("short", 4)):
        path = folder / f"{name}.mp4"
        encode(path, [np.full((64, 64, 3), 10 * number, dtype=np.uint8) for number in range(count)], rate=8)
        items.append(LabelledItem(path=path, category="a", subcategory=name, group=name, split="train"))
    return LabelledSet("made", "video", tuple(items), folder)


def test_every_excerpt_shows_its_consecutive_frames(collection: LabelledSet) -> None:
    excerpts = make_frame_excerpts(collection, count=3, frames=10)
    shown = [read_item(item, "video", size=64, frames=10).mean(axis=(1, 2, 3)) for item in excerpts.items[:3]]
    for start, gray in zip((0, 7, 14), shown, strict=True):
        np.testing.assert_allclose(gray, 10 * np.arange(start, start + 10), atol=3)


def test_excerpts_keep_label_group_and_split_and_short_videos_are_unchanged(collection: LabelledSet) -> None:
    excerpts = make_frame_excerpts(collection, count=3, frames=10)
    assert [item.subcategory for item in excerpts.items] == ["long"] * 3 + ["short"]
    assert {(item.group, item.split) for item in excerpts.items} == {("long", "train"), ("short", "train")}
    assert excerpts.items[3] == collection.items[1]


def test_excerpts_are_not_repeated_in_short_videos(collection: LabelledSet) -> None:
    assert len(make_frame_excerpts(collection, count=3, frames=23)) == 2 + 1


def test_excerpts_require_videos_and_at_least_two_per_video(collection: LabelledSet) -> None:
    with pytest.raises(InvalidArgumentError, match="count must be at least 2, got 1"):
        make_frame_excerpts(collection, count=1, frames=10)
    pictures = LabelledSet("pictures", "image", collection.items)
    with pytest.raises(
        InvalidArgumentError, match="pictures must contain videos to make excerpts, got items of kind image"
    ):
        make_frame_excerpts(pictures, count=3, frames=10)

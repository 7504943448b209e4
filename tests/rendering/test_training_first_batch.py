"""The first batch as an image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vidkin.datasets import LabelledItem
from vidkin.errors import InvalidArgumentError
from vidkin.rendering import draw_first_batch
from vidkin.training import FirstBatch


def batch(count: int, *, frames: int = 1, members: tuple[str, ...] = ()) -> FirstBatch:
    random = np.random.default_rng(0)
    items = tuple(
        LabelledItem(path=Path(f"{n}.png"), category="birds", subcategory=f"kind {n}", group=str(n))
        for n in range(count)
    )
    images = random.integers(0, 256, (count, frames, 8, 8, 3), dtype=np.uint8)
    return FirstBatch(images, items, members, ())


@pytest.mark.parametrize(
    ("count", "frames", "members", "drawn"),
    [
        (4, 1, (), 4),
        (13, 5, (), 13),
        (8, 2, ("query", "positive", "intermediate", "negative"), 8),
        # Nine quadlets, so the first eight of each member are shown.
        (36, 1, ("query", "positive", "intermediate", "negative"), 32),
    ],
)
def test_at_most_eight_rows_are_drawn(
    count: int, frames: int, members: tuple[str, ...], drawn: int, tmp_path: Path
) -> None:
    path = tmp_path / "batch.png"
    assert draw_first_batch(batch(count, frames=frames, members=members), path) == drawn
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        # Six columns of 1.2 inches, or four for tuples; clips of three or more frames are twice as wide.
        width = {1: 1.0, 2: 1.5, 5: 2.0}[frames] * 1.2 * (len(members) or 6) * 100
        assert abs(picture.width - width) <= 1


def test_image_name_is_checked_before_drawing(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="not an image format"):
        draw_first_batch(batch(1), tmp_path / "batch.txt")

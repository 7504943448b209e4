"""Edits of training images."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin_research.copies.edits import EDITS
from vidkin_research.frame_encoder.drawn import draw_page
from vidkin_research.frame_encoder.edits import KINDS, EditKind, edit_picture
from vidkin_research.frame_encoder.held_back import (
    HELD_BACK_EDITS,
    is_held_back_clip,
    is_held_back_photo,
    is_held_back_video,
)

Image = NDArray[np.uint8]


def page(seed: int = 0) -> Image:
    return draw_page(np.random.default_rng(seed))


def other() -> Image:
    return page(99)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("shape", [(270, 480), (300, 96)])
def test_every_kind_changes_the_image(kind: EditKind, shape: tuple[int, int]) -> None:
    image = np.ascontiguousarray(np.resize(page(3), (*shape, 3)))
    before = image.copy()
    for seed in range(4):
        edited = kind.change(image, np.random.default_rng(seed), other)
        assert edited.dtype == np.uint8
        assert edited.ndim == 3
        assert edited.shape[2] == 3
        assert min(edited.shape[:2]) >= 8
        assert edited.shape != image.shape or (edited != image).any()
        assert (image == before).all()


def test_edits_depend_on_the_seed() -> None:
    first, kinds = edit_picture(page(), np.random.default_rng(5), other)
    again, same_kinds = edit_picture(page(), np.random.default_rng(5), other)
    assert kinds == same_kinds
    assert np.array_equal(first, again)
    other_kinds = {edit_picture(page(), np.random.default_rng(seed), other)[1] for seed in range(12)}
    assert len(other_kinds) > 6


def test_mixed_edits_are_in_a_realistic_order() -> None:
    stages = {kind.name: kind.stage for kind in KINDS}
    counts = set()
    for seed in range(40):
        _, kinds = edit_picture(page(), np.random.default_rng(seed), other)
        assert [stages[name] for name in kinds] == sorted(stages[name] for name in kinds)
        assert len(set(kinds)) == len(kinds)
        counts.add(len(kinds))
    assert counts == {1, 2, 3, 4}


def test_held_out_kinds_are_edits_of_the_copy_benchmark() -> None:
    assert set(HELD_BACK_EDITS) < set(EDITS)


def test_every_collection_has_held_out_sources() -> None:
    assert [scene for scene in range(18) if is_held_back_clip(scene)] == [5, 11, 17]
    share = np.mean([is_held_back_photo(f"dress/{number}.jpg") for number in range(2000)])
    assert 0.07 < share < 0.13
    assert is_held_back_video("tmk/pattern-hd-no-bar.mp4")
    assert not is_held_back_video("tmk/chair-19-sd-bar.mp4")

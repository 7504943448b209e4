"""Composed transitions of known extent, and negatives."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin_research.made.negatives import NEGATIVE_FAMILIES, make_negative
from vidkin_research.made.transitions import TRANSITION_FAMILIES, TakeReader, make_transition


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> TakeReader:
    """Two photographs of uniform colors, on which camera motion is invisible."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("takes")
    paths = []
    for name, color in (("red", (200, 30, 30)), ("green", (30, 200, 30))):
        paths.append(folder / f"{name}.png")
        Image.new("RGB", (400, 300), color).save(paths[-1])
    return TakeReader(paths)


@pytest.mark.parametrize("family", ["hard", "dissolve", "wipe", "circle", "slide", "fade through black", "zoom"])
def test_only_frames_within_the_extent_differ_from_both_shots(takes: TakeReader, family: str) -> None:
    made = make_transition(takes, family, seed=3)
    # Red minus green: 170 in one shot and -170 in the other.
    means = made.pictures.reshape(len(made.pictures), -1, 3).mean(1)
    course = np.abs(means[:, 0] - means[:, 1])
    start, end = made.start, made.end
    pure = np.concatenate([course[:start], course[end + (made.kind != "hard") :]])
    assert np.abs(pure - 170).max() < 4
    assert np.sign(means[0, 0] - means[0, 1]) == -np.sign(means[-1, 0] - means[-1, 1])
    if made.kind != "hard":
        assert course[start : end + 1].min() < 60
        assert abs(course[(start + end) // 2] - 170) > 40


def test_fade_in_starts_in_black_and_fade_out_ends_in_black(takes: TakeReader) -> None:
    made = make_transition(takes, "fade in", seed=0)
    assert made.start == 0
    assert made.pictures[0].max() == 0
    assert made.pictures[made.end + 1].max() > 190
    made = make_transition(takes, "fade out", seed=0)
    assert made.end == len(made.pictures) - 1
    assert made.pictures[-1].max() == 0


def test_same_seed_gives_the_same_video(takes: TakeReader) -> None:
    one, other, third = (make_transition(takes, "wipe", seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.pictures, other.pictures)
    assert len(one.pictures) != len(third.pictures) or one.look != third.look


def test_held_out_families_use_other_looks() -> None:
    held, known = (
        {look for family in TRANSITION_FAMILIES.values() if family.held_back == held for look in family.looks}
        for held in (True, False)
    )
    assert len(held) >= 10
    assert not held & known


@pytest.mark.parametrize("family", NEGATIVE_FAMILIES)
def test_negatives_start_and_end_in_the_same_take(family: str, takes: TakeReader) -> None:
    made = make_negative(takes, family, seed=1)
    assert made.events >= 1
    medians = np.median(made.pictures.reshape(len(made.pictures), -1, 3), 1)
    assert np.argmax(medians[0]) == np.argmax(medians[-1])
    if family == "flashes of 1 to 5 frames":
        assert medians.min(1).max() > 120

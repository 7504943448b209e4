"""Cuts by the slope of the curve, on synthetic features that drift, jump, flash and blend."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin_research.learned.fitted_rule import FittedRule, fit_rule
from vidkin_research.learned.windows import (
    CUT_NUMBERS,
    ShotWindows,
    cut_examples,
    find_cuts,
    find_gradual,
    gradual_candidates,
    gradual_examples,
)

Array = NDArray[np.float32]
RULE = FittedRule({"jump": 2.0, "across": 10.0}, bias=-12.0)


def mean_direction(clips: Array) -> Array:
    """The simplest encoder: the mean of the frames, as a unit vector."""
    mean = clips.mean(axis=1)
    unit: Array = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
    return unit


def scene(seed: int, frames: int, *, motion: float = 0.02) -> Array:
    """A random direction with small random motion."""
    generator = np.random.default_rng(seed)
    base = generator.normal(size=32)
    drift = generator.normal(size=(frames, 32)).cumsum(axis=0) * motion
    part: Array = ((base + drift) / np.linalg.norm(base)).astype(np.float32)
    return part


def windows_of(*parts: Array, window: int = 4) -> ShotWindows:
    return ShotWindows(np.concatenate(parts), window, mean_direction)


def test_window_ends_and_starts_at_every_frame() -> None:
    features = scene(0, 10)
    windows = ShotWindows(features, 4, mean_direction)
    assert windows.embeddings.shape == (13, 32)
    np.testing.assert_allclose(windows.embeddings[5], mean_direction(features[None, 2:6])[0], rtol=1e-5)
    np.testing.assert_allclose(windows.embeddings[5 + 3], mean_direction(features[None, 5:9])[0], rtol=1e-5)
    # The first frame is repeated as padding.
    first = mean_direction(features[None, [0, 0, 0, 1]])[0]
    np.testing.assert_allclose(windows.embeddings[1], first, rtol=1e-5)
    anew = windows.restart(6)
    assert anew.shape == (3, 32)
    np.testing.assert_allclose(anew[1], mean_direction(features[None, [6, 6, 6, 7]])[0], rtol=1e-5)
    assert len(windows.restart(9)) == 1


def test_curve_is_the_distance_to_the_first_window_of_the_shot() -> None:
    # Unit vectors that rotate by 10 degrees per frame, with windows of 2: the mean is midway between the two frames.
    angles = np.radians(10 * np.arange(8))
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    curve = ShotWindows(features, 2, mean_direction).curve(2, 7)
    # Four windows in [2, 7); a chord of angle a has length 2 sin(a / 2).
    assert curve == pytest.approx([2 * math.sin(math.radians(10 * n) / 2) for n in range(4)], abs=1e-5)
    assert len(ShotWindows(features, 4, mean_direction).curve(0, 3)) == 0


def test_cuts_are_between_the_last_two_frames_of_the_window_with_changed_slope() -> None:
    cuts = find_cuts(windows_of(scene(1, 40), scene(2, 30), scene(3, 25)), RULE)
    assert [cut.frame for cut in cuts] == [40, 70]
    assert all(0.5 <= cut.confidence <= 1 for cut in cuts)


def test_shots_shorter_than_a_window_are_found_after_a_reset() -> None:
    windows = windows_of(scene(1, 30), scene(2, 5), scene(3, 4), scene(4, 30), window=8)
    assert [cut.frame for cut in find_cuts(windows, RULE)] == [30, 35, 39]


def test_flashes_and_fast_motion_are_not_cuts() -> None:
    calm = scene(1, 30)
    flash = calm.copy()
    flash[15:17] = scene(9, 2)
    windows = windows_of(flash, window=4)
    numbers = dict(windows.numbers(0))
    # The slope jumps as at a cut, but a few frames further away both sides are the same.
    assert numbers[15]["jump"] > 2.0
    assert numbers[15]["across"] < 0.35
    assert find_cuts(windows, RULE) == []
    assert find_cuts(windows_of(scene(5, 60, motion=0.3)), RULE) == []


def test_single_frame_has_no_cuts() -> None:
    assert find_cuts(windows_of(scene(1, 1)), RULE) == []
    assert find_cuts(windows_of(scene(1, 2)), RULE) == []


def test_rule_fitted_on_true_shots_finds_cuts_of_other_scenes() -> None:
    examples, labels = [], []
    for seed in range(6):
        lengths = [20 + 3 * seed, 12, 30]
        parts = [scene(100 + 10 * seed + n, length, motion=0.04 * seed) for n, length in enumerate(lengths)]
        edges = np.cumsum([0, *lengths]).tolist()
        found = cut_examples(windows_of(*parts), list(pairwise(edges)), keep=2)
        examples += found[0]
        labels += found[1]
    assert sum(labels) == 12  # two cuts per video: the end of the last shot is not a cut
    rule = fit_rule(examples, labels, names=CUT_NUMBERS)
    assert [cut.frame for cut in find_cuts(windows_of(scene(1, 33), scene(2, 21)), rule)] == [33]


def test_examples_follow_a_shot_through_a_gradual_transition() -> None:
    windows = windows_of(scene(1, 10), scene(2, 10), scene(3, 10))
    examples, labels = cut_examples(windows, [(0, 8), (12, 20), (20, 30)])
    assert sum(labels) == 1
    # From 0 through the transition to one window (4) after its end at 12; 13 ... 20; 21 ... 29.
    assert len(examples) == 15 + 8 + 9
    assert labels.index(True) == 15 + 7


def dissolve(old: Array, new: Array, frames: int) -> Array:
    """Old frames, then blends, then new frames."""
    share = (np.arange(1, frames + 1) / (frames + 1))[:, None]
    blend = ((1 - share) * old[-1] + share * new[0]).astype(np.float32)
    return np.concatenate([old, blend, new])


def test_dissolve_is_an_interval_between_different_shots() -> None:
    features = dissolve(scene(1, 60), scene(2, 60), 12)
    windows = ShotWindows(features, 8, mean_direction)
    rule = FittedRule({"near": 10.0}, bias=-8.0)
    (found,) = find_gradual(windows, [], rule)
    assert abs(found.first - 60) <= 3
    assert abs(found.last - 71) <= 3
    assert 0.5 <= found.confidence <= 1
    # A hard cut inside leaves two segments, each with only one side.
    assert find_gradual(windows, [66], rule) == []


def test_scores_in_calm_segments_are_low_and_labels_follow_the_intervals() -> None:
    windows = ShotWindows(dissolve(scene(1, 60), scene(2, 60), 12), 8, mean_direction)
    examples, labels, missed = gradual_examples(windows, [], [(60, 71)])
    assert sum(labels) == 1
    assert missed == 0
    right = next(example for example, label in zip(examples, labels, strict=True) if label)
    assert right["near"] > 1.0
    assert all(example["near"] < 0.5 for example, label in zip(examples, labels, strict=True) if not label)
    assert gradual_examples(windows, [66], [(60, 71)])[2] in (0, 1)
    assert gradual_candidates(windows, 20, 24) == []


def test_invalid_arguments_are_rejected_with_the_accepted_values() -> None:
    with pytest.raises(InvalidArgumentError, match=r"features must be \[T, F\] with at least one frame"):
        ShotWindows(np.zeros((0, 4), dtype=np.float32), 4, mean_direction)
    with pytest.raises(InvalidArgumentError, match="window must be at least 2, got 1"):
        ShotWindows(np.zeros((3, 4), dtype=np.float32), 1, mean_direction)

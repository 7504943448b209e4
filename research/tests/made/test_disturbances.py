"""Disturbances of a shot that are not cuts: each kind has its intended effect."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin_research.made.disturbances import DISTURBANCES, disturb

LENGTH = 60


def counting() -> np.ndarray:
    """[60, 3, 16, 24]: frame k has luma k + 20 and no color."""
    pictures = np.full((LENGTH, 3, 16, 24), 128, np.float32)
    pictures[:, 0] = (np.arange(LENGTH) + 20)[:, None, None]
    return pictures


def numbers(pictures: np.ndarray) -> list[int]:
    """Decode the frame indices shown in counting frames."""
    return [round(float(value) - 20) for value in pictures[:, 0].mean((1, 2))]


@pytest.mark.parametrize("seed", range(8))
class TestEachKind:
    def test_same_seed_gives_the_same_disturbances(self, seed: int) -> None:
        for kind in DISTURBANCES:
            first, second = (disturb(counting(), kind, np.random.default_rng(seed)) for _ in range(2))
            assert np.array_equal(first, second)
            assert first.shape == counting().shape
            assert 0 <= first.min() <= first.max() <= 255

    def test_dropped_frames_are_skipped_and_the_last_frame_repeated(self, seed: int) -> None:
        shown = numbers(disturb(counting(), "dropped", np.random.default_rng(seed)))
        steps = np.diff(shown)
        moving = [step for step, number in zip(steps, shown[1:], strict=True) if number < LENGTH - 1]
        # Each of up to three gaps is 2 to 5 frames long; two can be adjacent.
        assert sum(step > 1 for step in moving) <= 3
        assert min(steps) >= 0
        assert shown[:3] == [0, 1, 2]
        assert shown[-1] == LENGTH - 1

    def test_repeated_frames_lag_and_catch_up(self, seed: int) -> None:
        shown = numbers(disturb(counting(), "repeated", np.random.default_rng(seed)))
        behind = np.arange(LENGTH) - np.array(shown)
        assert behind.min() >= 0
        assert 1 <= behind.max() <= 8
        assert shown == sorted(shown)

    def test_flash_brightens_or_darkens_only_a_few_frames(self, seed: int) -> None:
        change = np.abs(disturb(counting(), "flash", np.random.default_rng(seed)) - counting()).max((1, 2, 3))
        disturbed = int((change > 0).sum())
        assert 1 <= disturbed <= 15
        assert change[:3].max() == 0
        assert change[-1] == 0

    def test_exposure_only_changes_luma_and_settles(self, seed: int) -> None:
        flat = np.full((LENGTH, 3, 4, 4), 100, np.float32)
        seen = disturb(flat.copy(), "exposure", np.random.default_rng(seed))
        assert np.array_equal(seen[:, 1:], flat[:, 1:])
        luma = seen[:, 0, 0, 0]
        steps = np.diff(luma)
        assert (steps >= 0).all() or (steps <= 0).all()
        # A factor of at most e^0.6, and 1 at the first frame.
        assert luma[0] == 100
        assert 100 * np.exp(-0.6) - 1e-3 <= luma.min() <= luma.max() <= 100 * np.exp(0.6) + 1e-3

    def test_pop_up_appears_immediately_and_logo_fades_in(self, seed: int) -> None:
        black = np.zeros((LENGTH, 3, 16, 24), np.float32)
        popped = disturb(black.copy(), "pop-up", np.random.default_rng(seed)).max((1, 2, 3))
        values = sorted(set(popped.round(3).tolist()))
        assert len(values) == 2
        assert values[0] == 0
        faded = disturb(black.copy(), "logo fade", np.random.default_rng(seed)).max((1, 2, 3))
        assert len(set(faded.round(3).tolist())) > 3

    def test_compression_removes_detail_between_key_frames(self, seed: int) -> None:
        noise = np.random.default_rng(9).uniform(0, 255, (1, 3, 16, 24)).astype(np.float32)
        still = np.repeat(noise, LENGTH, 0)
        seen = disturb(still.copy(), "compression", np.random.default_rng(seed))
        detail = seen[:, 0].std((1, 2))
        jumps = np.diff(detail) > 0.5
        # Lost slowly and restored at once, at intervals of 8 to 40 frames.
        assert 1 <= int(jumps.sum()) <= LENGTH // 8 + 1
        assert detail.max() == pytest.approx(float(still[0, 0].std()), rel=0.1)
        assert detail.min() < 0.95 * detail.max()


def test_short_shots_are_not_disturbed() -> None:
    short = counting()[:11]
    for kind in DISTURBANCES:
        assert disturb(short, kind, np.random.default_rng(0)) is short

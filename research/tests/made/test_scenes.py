"""Hand-computed motion courses, framings and scenes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin_research.made.scenes import Course, Framing, Sprite, StageScene

TIMES = np.arange(6, dtype=np.float64)
BLACK = np.stack([np.zeros((8, 12)), np.full((8, 12), 128), np.full((8, 12), 128)]).astype(np.uint8)


def test_empty_course_stays_at_zero() -> None:
    assert Course().at(TIMES).tolist() == [0] * 6


def test_wave_has_amplitude_period_and_phase() -> None:
    wave = Course(reach=(2.0,), period=(4.0,), phase=(np.pi / 2,))
    assert wave.at(TIMES) == pytest.approx([2, 0, -2, 0, 2, 0], abs=1e-12)


def test_drift_returns_to_its_start() -> None:
    assert Course(drift=3.0, span=3.0).at(np.arange(8.0)) == pytest.approx([0, 1, 2, 3, 2, 1, 0, 1])
    assert Course(drift=3.0, span=3.0, start=2.0).at(TIMES) == pytest.approx([2, 3, 2, 1, 0, 1])


def test_step_is_smooth_and_stays() -> None:
    # Values of t^2 (3 - 2t) at 0, 1/4, 1/2, 3/4 and 1.
    moved = Course(step=8.0, step_at=1.0, step_span=4.0).at(np.arange(8.0))
    assert moved == pytest.approx([0, 0, 1.25, 4, 6.75, 8, 8, 8])


@given(st.integers(min_value=0, max_value=1000), st.floats(min_value=0.01, max_value=2.0))
def test_random_courses_stay_within_their_amplitude(seed: int, reach: float) -> None:
    course = Course.draw(np.random.default_rng(seed), reach, fastest=5, slowest=50)
    assert np.abs(course.at(np.linspace(0, 500, 400))).max() <= reach + 1e-9
    assert all(5 <= period <= 50 for period in course.period)


def test_same_seed_gives_the_same_course() -> None:
    assert Course.draw(np.random.default_rng(3), 1.0) == Course.draw(np.random.default_rng(3), 1.0)


class TestStage:
    def test_framing_grades_luma_and_tints_chroma(self) -> None:
        gray = BLACK.copy()
        gray[0] = 100
        scene = StageScene(gray, (8, 12))
        plain = scene.pictures(TIMES, Framing())
        assert plain.shape == (6, 3, 8, 12)
        assert plain[:, 0] == pytest.approx(100)
        graded = scene.pictures(TIMES, Framing(gain=0.5, lift=10, tint=(5, -3)))
        assert graded[:, 0] == pytest.approx(60)
        assert graded[:, 1] == pytest.approx(133)
        assert graded[:, 2] == pytest.approx(125)

    def test_graded_luma_stays_in_range(self) -> None:
        bright = BLACK.copy()
        bright[0] = 250
        seen = StageScene(bright, (8, 12)).pictures(TIMES, Framing(gain=2.0))
        assert seen[:, 0].max() <= 255

    def test_sprite_and_its_mask_are_drawn_at_its_position(self) -> None:
        image = np.stack([np.full((2, 2), 200), np.full((2, 2), 128), np.full((2, 2), 128)]).astype(np.uint8)
        mask = np.array([[True, False], [True, True]])
        # At half the height and a quarter of the width: the cosine with infinite period is 1.
        constant = {"period": (1e12,), "phase": (np.pi / 2,)}
        sprite = Sprite(image, mask, Course((0.5,), **constant), Course((0.25,), **constant))
        seen = StageScene(BLACK, (8, 12), (sprite,)).pictures(TIMES[:1], Framing())[0, 0]
        bright = sorted(map(tuple, np.argwhere(seen > 100).tolist()))
        assert bright == [(4, 3), (5, 3), (5, 4)]

    def test_static_camera_shows_the_same_frame_at_all_times(self) -> None:
        random = np.random.default_rng(0)
        background = random.integers(0, 256, (3, 20, 30), dtype=np.uint8)
        seen = StageScene(background, (10, 15)).pictures(TIMES, Framing(scale=0.5))
        assert np.array_equal(seen, np.broadcast_to(seen[:1], seen.shape))

    def test_moving_camera_shows_different_frames(self) -> None:
        random = np.random.default_rng(0)
        background = random.integers(0, 256, (3, 20, 30), dtype=np.uint8)
        pan = (Course(), Course(drift=0.5, span=10))
        seen = StageScene(background, (10, 15), camera=pan).pictures(TIMES, Framing(scale=0.5))
        assert not np.array_equal(seen[0], seen[5])

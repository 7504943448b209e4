"""What is measured of a cut, frame by frame with vectors whose distances are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.cut_numbers import HARD_NUMBERS, logit, measure_cut, stands_out, usual_distance
from vidkin.shots.frame_vectors import FrameVectors


class AngleNetwork:
    """A square of brightness b in 0..1 becomes the unit vector of b quarter turns: distances are 1 - cos."""

    def encode(self, squares: NDArray[np.float32]) -> NDArray[np.float32]:
        angles = squares.mean((1, 2, 3)) / 255 * np.float32(math.pi / 2)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def film(levels: list[int]) -> FrameVectors:
    """Flat gray frames."""
    vectors = FrameVectors(AngleNetwork(), room=64)
    luma = np.repeat(np.array(levels, np.uint8), 128 * 128).reshape(-1, 128, 128)
    chroma = np.full((len(levels), 2, 64, 64), 128, np.uint8)
    vectors.push(FramePlanes(luma, chroma, np.arange(len(levels)) / 25))
    return vectors


def measured(levels: list[int], frame: int, *, side: int = 3, answers: list[float] | None = None) -> dict[str, float]:
    rows = np.zeros((len(levels), 48), np.float32)
    probabilities = np.zeros((len(levels), 5), np.float32)
    probabilities[:, 0] = 0.0 if answers is None else answers
    numbers = measure_cut(frame, film(levels), rows, probabilities, first_row=0, side=side)
    return dict(zip(HARD_NUMBERS, numbers, strict=True))


@pytest.mark.parametrize(
    ("distances", "frame", "expected"),
    [
        # The median of six plus half of their maximum, without the frame itself.
        ([np.nan, 1, 2, 3, 99, 4, 5, 6], 4, 2 * (3.5 + 6 / 2 + 0.004)),
        # Three to either side and no more; the distance at frame 0 does not exist.
        ([np.nan, 9, 9, 1, 1, 1, 50, 1, 1, 1, 9], 6, 2 * (1 + 0.5 + 0.004)),
        ([7, 99, 3], 1, 2 * (3 + 1.5 + 0.004)),
        # Unknown ones do not count, and with none left there is only the floor.
        ([np.nan, 5, np.nan, 99, np.nan, np.nan, np.nan], 3, 2 * (5 + 2.5 + 0.004)),
        ([np.nan, 99], 1, 2 * 0.004),
    ],
)
def test_the_usual_distance_is_that_of_three_frames_to_either_side(
    distances: list[float], frame: int, expected: float
) -> None:
    assert usual_distance(np.array(distances, dtype=np.float64), frame) == pytest.approx(expected)


def test_what_stands_out_among_many_frames_is_what_exceeds_the_usual_distance() -> None:
    distances = np.random.default_rng(0).random(60) ** 4
    frames = np.array([1, 2, 3, 4, 5, 30, 31, 40, 55, 56, 57, 58, 59])
    expected = [distances[frame] > usual_distance(distances, frame, 1.2, 0.01) for frame in frames.tolist()]
    assert stands_out(distances, frames, 1.2, 0.01).tolist() == expected
    assert 0 < sum(expected) < len(expected)
    assert stands_out(distances, frames[:0], 1.2, 0.01).shape == (0,)


def test_odds_are_bounded() -> None:
    assert logit(0.5) == 0
    assert logit(0.9) == pytest.approx(math.log(9))
    assert logit(0.0) == logit(-1) == pytest.approx(math.log(0.001 / 0.999))
    assert logit(1.0) == pytest.approx(-logit(0.0))


def test_a_cut_between_two_still_shots() -> None:
    numbers = measured([16] * 6 + [235] * 6, 6)
    # Black and white are a quarter turn apart: the distance is 1, on both sides there is none.
    assert numbers["distance"] == pytest.approx(math.log(1 + 1e-4), abs=1e-5)
    assert numbers["contrast"] == pytest.approx(math.log(1 / (2 * 0.004) + 1e-2), abs=1e-4)
    assert numbers["across"] == pytest.approx(math.log(1 + 1e-3), abs=1e-5)
    assert numbers["share"] == pytest.approx(1.0)
    for name in ("steady", "beside", "quiet"):
        assert numbers[name] == pytest.approx(math.log(1 / 4e-3), abs=0.3), name


def test_a_flash_does_not_last() -> None:
    """The frame after the flash is like the one before: the least distance across the cut is 0."""
    numbers = measured([16] * 6 + [235] + [16] * 6, 6)
    assert numbers["distance"] == pytest.approx(math.log(1 + 1e-4), abs=1e-5)
    assert numbers["share"] == pytest.approx(0.0, abs=1e-6)
    assert numbers["across"] == pytest.approx(math.log(1e-3), abs=1e-3)


def test_answers_of_frames_farther_away_count_too() -> None:
    answers = [0.0] * 12
    answers[6], answers[5], answers[7], answers[8] = 0.9, 0.8, 0.7, 0.25
    numbers = measured([16] * 6 + [235] * 6, 6, answers=answers)
    assert numbers["network"] == pytest.approx(math.log(9), abs=1e-5)
    # The frames beside the cut do not count, the second one after it does.
    assert numbers["others"] == pytest.approx(math.log(1 / 3), abs=1e-5)


@pytest.mark.parametrize("frame", [1, 2, 10, 11])
def test_cuts_near_the_ends_have_finite_numbers(frame: int) -> None:
    for side in (0, 1, 3):
        numbers = measured([16] * frame + [235] * (12 - frame), frame, side=side)
        assert all(math.isfinite(value) for value in numbers.values()), (frame, side)


def test_rows_may_begin_later_than_the_film() -> None:
    """As in a long film, whose first rows are no longer held: only those of eight frames to either side count."""
    levels = [16] * 20 + [235] * 10
    random = np.random.default_rng(0)
    rows, answers = random.random((30, 48), np.float32), random.random((30, 5), np.float32)
    whole = measure_cut(20, film(levels), rows, answers, first_row=0, side=3)
    assert measure_cut(20, film(levels), rows[8:], answers, first_row=8, side=3) == whole
    rows[:11], rows[29:] = 9.0, 9.0
    assert measure_cut(20, film(levels), rows, answers, first_row=0, side=3) == whole

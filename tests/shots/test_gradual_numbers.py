"""What is measured in a stretch that may be a transition: how far it is a wipe, and what moves in it."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.media import FramePlanes
from vidkin.shots import Transition
from vidkin.shots.frame_vectors import FrameVectors
from vidkin.shots.gradual_numbers import GRADUAL_NUMBERS, can_be_a_transition, measure_wipe
from vidkin.shots.motion import measure_motion
from vidkin.shots.regions import PictureBlocks


@pytest.fixture(scope="module")
def shots() -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Two pictures of squares of 4 x 4 samples that have no block in common."""
    one, other = np.random.default_rng(0).integers(20, 230, (2, 32, 32), np.uint8)
    return one.repeat(4, 0).repeat(4, 1), other.repeat(4, 0).repeat(4, 1)


def test_a_wipe_goes_over_block_by_block(shots: tuple[np.ndarray, np.ndarray]) -> None:  # type: ignore[type-arg]
    """From the left: a quarter, half and three quarters of the columns are of the other shot."""
    one, other = shots
    way = [np.concatenate([other[:, :edge], one[:, edge:]], 1) for edge in (32, 64, 96)]
    assert measure_wipe([PictureBlocks(frame) for frame in (one, one, *way, other, other)]) == (1.0, 1.0, 0.5)


def test_a_dissolve_is_never_divided(shots: tuple[np.ndarray, np.ndarray]) -> None:  # type: ignore[type-arg]
    """Halfway each block is like both shots or like none."""
    one, other = (shot.astype(float) for shot in shots)
    way = [((1 - part) * one + part * other).astype(np.uint8) for part in (0.45, 0.5, 0.55)]
    frames = [shots[0], shots[0], *way, shots[1], shots[1]]
    differ, divided, _ = measure_wipe([PictureBlocks(frame) for frame in frames])
    assert differ == 1.0
    assert divided < 0.35


def test_where_the_shots_are_alike_nothing_goes_over(shots: tuple[np.ndarray, np.ndarray]) -> None:  # type: ignore[type-arg]
    assert measure_wipe([PictureBlocks(shots[0])] * 7) == (0.0, 0.0, 0.0)


class NoEncoder:
    """What moves is measured without vectors."""

    def encode(self, squares: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        raise AssertionError("no frame has to be encoded")


def film(luma: np.ndarray) -> FrameVectors:  # type: ignore[type-arg]
    vectors = FrameVectors(NoEncoder(), 200)
    count = len(luma)
    vectors.push(FramePlanes(luma, np.full((count, 2, 64, 64), 128, np.uint8), np.arange(count) / 25))
    return vectors


def test_a_camera_that_goes_over_a_picture_brings_nothing_new_inside_it() -> None:
    """100 frames, 4 samples of 128 a frame to the right: in steps of three frames 12 / 128 of the picture, as before
    and after."""
    wide = np.random.default_rng(1).integers(20, 230, (16, 72), np.uint8).repeat(8, 0).repeat(8, 1)
    luma = np.stack([wide[:, 4 * place : 4 * place + 128] for place in range(100)])
    appears, least, shifts, appeared, shifted = measure_motion(film(luma), 30, 61)
    assert (appears, least, appeared) == (0.0, 0.0, 0.0)
    assert shifts == pytest.approx(12 / 128) == shifted


def test_a_wipe_brings_new_things_inside_the_picture_and_a_push_moves_what_stood(
    shots: tuple[np.ndarray, np.ndarray],  # type: ignore[type-arg]
) -> None:
    """Frames 30 to 61; 12 of 128 columns are new in each step of three, which lie in one or two of
    eight columns of blocks, six of them inner ones; nothing moves outside."""
    one, other = shots
    edges = (np.arange(100) - 29).clip(0, 32) * 4
    wipe = np.stack([np.concatenate([other[:, :edge], one[:, edge:]], 1) for edge in edges])
    appears, _, shifts, appeared, shifted = measure_motion(film(wipe), 30, 61)
    assert 0.1 < appears <= 2 / 6
    assert (shifts, appeared, shifted) == (0.0, 0.0, 0.0)
    push = np.stack([np.concatenate([one, other], 1)[:, edge : edge + 128] for edge in edges])
    appears, _, shifts, appeared, shifted = measure_motion(film(push), 30, 61)
    assert (appears, appeared, shifted) == (0.0, 0.0, 0.0)
    assert shifts == pytest.approx(12 / 128)


@pytest.mark.parametrize(
    ("kind", "seconds", "numbers", "counts"),
    [
        ("dissolve", 4.4, {"appears": 0.2}, True),
        ("dissolve", 5.0, {"appears": 0.2}, False),
        ("fade", 5.0, {}, True),
        # All is found again and nothing stays, as beside it, where the camera moves a thirtieth of the picture.
        ("wipe", 1.6, {"appears": 0.02, "stayed": 0.1, "shifted": 0.03}, False),
        ("dissolve", 1.6, {"appears": 0.02, "stayed": 0.1, "shifted": 0.03}, False),
        ("wipe", 0.6, {"appears": 0.02, "stayed": 0.1, "shifted": 0.03}, True),
        ("wipe", 1.6, {"appears": 0.1, "stayed": 0.1, "shifted": 0.03}, True),  # a tenth is new in every step
        ("wipe", 1.6, {"appears": 0.02, "stayed": 0.6, "shifted": 0.03}, True),
        ("wipe", 1.6, {"appears": 0.02, "stayed": 0.1, "shifted": 0.0}, True),  # nothing moves beside it: a push
    ],
)
def test_a_moving_camera_makes_no_transition(
    kind: Transition, seconds: float, numbers: dict[str, float], counts: bool
) -> None:
    none = dict.fromkeys(GRADUAL_NUMBERS, 0.0)
    assert can_be_a_transition(kind, tuple({**none, **numbers}.values()), seconds) is counts

"""Vectors of single frames: which frames are held, what a distance is."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.frame_vectors import FrameVectors, squares_of_planes


class BrightnessNetwork:
    """Dark squares become (1, 0), bright ones (0, 1); notes what it was asked for."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def encode(self, squares: NDArray[np.float32]) -> NDArray[np.float32]:
        self.batches.append(len(squares))
        bright = (squares.mean((1, 2, 3)) > 127.5).astype(np.float32)
        return np.stack([1 - bright, bright], 1)


def gray_planes(levels: list[int]) -> FramePlanes:
    luma = np.repeat(np.array(levels, np.uint8), 128 * 128).reshape(-1, 128, 128)
    chroma = np.full((len(levels), 2, 64, 64), 128, np.uint8)
    return FramePlanes(luma, chroma, np.arange(len(levels)) / 25)


@pytest.fixture
def network() -> BrightnessNetwork:
    return BrightnessNetwork()


def test_dark_and_bright_frames_are_one_apart_and_like_frames_zero(network: BrightnessNetwork) -> None:
    vectors = FrameVectors(network, room=8)
    vectors.push(gray_planes([16, 16, 235]))
    assert vectors.distance(0, 1) == 0
    assert vectors.distance(1, 2) == 1


def test_a_frame_goes_through_the_network_once(network: BrightnessNetwork) -> None:
    vectors = FrameVectors(network, room=8)
    vectors.push(gray_planes([16, 100, 235]))
    vectors.encode([0, 1, 1])
    vectors.encode([0, 1, 2, 7])  # 7 was not pushed
    assert network.batches == [2, 1]
    assert vectors.encoded == 3


def test_only_the_last_frames_are_held_and_earlier_numbers_mean_the_first_of_them(
    network: BrightnessNetwork,
) -> None:
    vectors = FrameVectors(network, room=4)
    vectors.push(gray_planes([16, 16, 16]))
    vectors.encode([0])
    vectors.push(gray_planes([235, 235, 16]))
    assert (vectors.first, vectors.count) == (2, 6)
    assert vectors.hold(0) == 2
    assert vectors.hold(99) == 5
    assert vectors.distance(0, 3) == 1  # frame 2 is dark, frame 3 bright
    assert vectors.luma(4).max() == 235


def test_squares_are_rgb_of_limited_range_averaged_over_two_by_two_samples() -> None:
    luma = np.full((1, 128, 128), 16, np.uint8)
    luma[0, ::2, ::2] = 236  # one of four samples: the mean is 71, (71 - 16) / 219
    squares = squares_of_planes(luma, np.full((1, 2, 64, 64), 128, np.uint8))
    assert squares.shape == (1, 3, 64, 64)
    assert np.allclose(squares, 55 / 219 * 255, atol=1e-3)
    red = squares_of_planes(
        np.full((1, 128, 128), 82, np.uint8),
        np.stack([np.full((64, 64), 90, np.uint8), np.full((64, 64), 240, np.uint8)])[None],
    )
    assert np.allclose(red[0, :, 0, 0], [255, 0, 0], atol=2.5)  # BT.601 red is (82, 90, 240)

"""Poses are composed, inverted and applied to boxes, and estimated from the thumbnails of two segments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import pan
from vidkin.errors import InvalidArgumentError
from vidkin.features import look_at, make_thumbnails
from vidkin.match import Pose, find_pose
from vidkin.similarity import WHOLE

POSES = [Pose(flip, quarter) for flip in (False, True) for quarter in range(4)]
FRAME = np.arange(4 * 6 * 1).reshape(4, 6, 1)


@pytest.mark.parametrize("first", POSES)
@pytest.mark.parametrize("second", POSES)
def test_composed_poses_equal_applying_one_after_the_other(first: Pose, second: Pose) -> None:
    after = second.apply(first.apply(FRAME))
    np.testing.assert_array_equal(first.compose(second).apply(FRAME), after)


@pytest.mark.parametrize("pose", POSES)
def test_inverse_undoes_a_pose(pose: Pose) -> None:
    np.testing.assert_array_equal(pose.inverse.apply(pose.apply(FRAME)), FRAME)
    assert pose.compose(pose.inverse) == Pose()


@pytest.mark.parametrize("pose", POSES)
def test_box_moves_with_the_frame(pose: Pose) -> None:
    frame = np.zeros((40, 60, 1))
    frame[10:20, 6:24] = 1
    moved = pose.apply(frame)[..., 0]
    height, width = moved.shape
    left, top, right, bottom = pose.apply_to_box((0.1, 0.25, 0.4, 0.5))
    marked = np.zeros_like(moved)
    marked[round(top * height) : round(bottom * height), round(left * width) : round(right * width)] = 1
    np.testing.assert_array_equal(marked, moved)


def test_quarter_turn_is_clockwise() -> None:
    frame = np.array([[[1], [2]], [[3], [4]]])
    assert Pose(quarter=1).apply(frame)[..., 0].tolist() == [[3, 1], [4, 2]]


@pytest.mark.parametrize("quarter", [-1, 4])
def test_quarters_are_zero_to_three(quarter: int) -> None:
    with pytest.raises(InvalidArgumentError, match="quarter must be 0, 1, 2 or 3"):
        Pose(quarter=quarter)


Frames = NDArray[np.uint8]


def footage(name: str, count: int = 60) -> Frames:
    """Every fifth frame of a camera moving over a photograph, [T, 128, 192, 3]."""
    return np.stack(list(pan(name, count))[::5])


def thumbnails(frames: Frames) -> Frames:
    return make_thumbnails(look_at(frames).luma, np.array([WHOLE], np.float32))[:, 0]


def apply_pose(pose: Pose, frames: Frames) -> Frames:
    return np.ascontiguousarray(pose.apply(frames)).astype(np.uint8)


def cut(frames: Frames) -> Frames:
    """Crop to the right two thirds of the lower three quarters."""
    return frames[:, 32:, 64:]


def noise(frames: Frames) -> Frames:
    change = np.random.default_rng(3).normal(0, 25, frames.shape)
    return (frames * 0.7 + 40 + change).clip(0, 255).astype(np.uint8)


def logo(frames: Frames) -> Frames:
    marked = frames.copy()
    marked[:, 8:32, 12:52] = (250, 240, 40)
    return marked


def bars(frames: Frames) -> Frames:
    """Shrink the frame between black bars above and below."""
    return np.concatenate([0 * frames[:, :20], frames[:, ::2], 0 * frames[:, :20]], axis=1)


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("edit", [None, cut, noise, logo, bars])
@pytest.mark.parametrize("name", ["astronaut", "coffee", "chelsea", "rocket"])
def test_pose_of_an_edited_copy_is_found(name: str, edit: Callable[[Frames], Frames] | None, pose: Pose) -> None:
    frames = footage(name)
    copy = apply_pose(pose, edit(frames) if edit else frames)
    assert find_pose(thumbnails(frames), thumbnails(copy)) == pose
    assert find_pose(thumbnails(copy), thumbnails(frames)) == pose.inverse


def test_uniform_and_missing_frames_are_upright() -> None:
    black = np.zeros((6, 8, 8), np.uint8)
    assert find_pose(black, black) == find_pose(black[:0], black[:0]) == Pose()


def test_symmetrical_frames_are_upright() -> None:
    half = np.random.default_rng(4).integers(0, 256, (6, 8, 4)).astype(np.uint8)
    frames = np.concatenate([half, half[:, :, ::-1]], axis=2)
    assert find_pose(frames, frames) == Pose()

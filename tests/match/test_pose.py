"""Poses compose, invert and move boxes as the frames move."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.match import Pose

POSES = [Pose(flip, quarter) for flip in (False, True) for quarter in range(4)]
FRAME = np.arange(4 * 6 * 1).reshape(4, 6, 1)


@pytest.mark.parametrize("first", POSES)
@pytest.mark.parametrize("second", POSES)
def test_a_pose_followed_by_another_one_is_their_composition(first: Pose, second: Pose) -> None:
    after = second.apply(first.apply(FRAME))
    np.testing.assert_array_equal(first.compose(second).apply(FRAME), after)


@pytest.mark.parametrize("pose", POSES)
def test_the_inverse_undoes_a_pose(pose: Pose) -> None:
    np.testing.assert_array_equal(pose.inverse.apply(pose.apply(FRAME)), FRAME)
    assert pose.compose(pose.inverse) == Pose()


@pytest.mark.parametrize("pose", POSES)
def test_a_box_moves_with_the_frame(pose: Pose) -> None:
    frame = np.zeros((40, 60, 1))
    frame[10:20, 6:24] = 1
    moved = pose.apply(frame)[..., 0]
    height, width = moved.shape
    left, top, right, bottom = pose.apply_to_box((0.1, 0.25, 0.4, 0.5))
    marked = np.zeros_like(moved)
    marked[round(top * height) : round(bottom * height), round(left * width) : round(right * width)] = 1
    np.testing.assert_array_equal(marked, moved)


def test_a_quarter_turn_is_clockwise() -> None:
    frame = np.array([[[1], [2]], [[3], [4]]])
    assert Pose(quarter=1).apply(frame)[..., 0].tolist() == [[3, 1], [4, 2]]


@pytest.mark.parametrize("quarter", [-1, 4])
def test_quarters_are_zero_to_three(quarter: int) -> None:
    with pytest.raises(InvalidArgumentError, match="quarter must be 0, 1, 2 or 3"):
        Pose(quarter=quarter)

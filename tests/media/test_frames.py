"""Frames validate their fields."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.media import Frames


def make(count: int) -> Frames:
    return Frames(np.zeros((count, 4, 6, 3), dtype=np.uint8), np.arange(count) / 2)


def test_frames_have_length_slices_and_repr() -> None:
    frames = make(5)
    assert len(frames) == 5
    assert frames[1:3].timestamps.tolist() == [0.5, 1.0]
    assert frames[np.array([0, 4])].timestamps.tolist() == [0.0, 2.0]
    assert repr(frames) == "Frames(images=[5, 4, 6, 3], timestamps=0.000..2.000 s)"
    assert repr(frames[:0]) == "Frames(images=[0, 4, 6, 3], timestamps=empty)"


@pytest.mark.parametrize(
    ("images", "timestamps", "message"),
    [
        (
            np.zeros((2, 4, 6), dtype=np.uint8),
            [0, 1],
            r"must be \[T, H, W, 3\] uint8, got \[2, 4, 6\] uint8",
        ),
        (np.zeros((2, 4, 6, 3)), [0, 1], r"must be \[T, H, W, 3\] uint8, got \[2, 4, 6, 3\] float64"),
        (np.zeros((2, 4, 6, 3), dtype=np.uint8), [0], r"timestamps must be one per image, \[2\], got \[1\]"),
        (np.zeros((2, 4, 6, 3), dtype=np.uint8), [1, 1], "timestamps must be strictly increasing"),
    ],
)
def test_inconsistent_frames_are_refused(images: object, timestamps: list[float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Frames(images, np.array(timestamps, dtype=np.float64))  # type: ignore[arg-type]

"""Features validate their shapes, select views and concatenate segments."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.similarity import FrameFeatures


def features(frames: int, views: int = 2, *, start: float = 0.0, end: float | None = None) -> FrameFeatures:
    return FrameFeatures(
        np.arange(float(frames * views)).reshape(frames, views, 1, 1),
        start + np.arange(float(frames)),
        np.ones(frames, np.float32),
        "made-1",
        np.zeros((frames, views), np.float32),
        np.broadcast_to(np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.5, 1.0]])[:views], (frames, views, 4)),
        end=end,
    )


def test_first_view_is_the_whole_frame() -> None:
    assert features(2).whole.flatten().tolist() == [0.0, 2.0]
    whole = FrameFeatures.of_whole(np.ones((2, 3, 4), np.float32), np.arange(2.0), baseline=np.array([0.1, 0.2]))
    assert whole.values.shape == (2, 1, 3, 4)
    assert whole.box(0, np.array([0, 1])) == (0.0, 0.0, 1.0, 1.0)
    assert whole.information.tolist() == [1.0, 1.0]
    assert whole.baselines.flatten().tolist() == pytest.approx([0.1, 0.2])


def test_views_are_selected_with_their_boxes() -> None:
    half = features(2).views([1])
    assert half.values.flatten().tolist() == [1.0, 3.0]
    assert half.box(0, np.array([0])) == (0.0, 0.0, 0.5, 1.0)
    assert half.baseline is not None
    assert half.baseline.shape == (2, 1)


def test_segments_are_concatenated_in_order() -> None:
    joined = FrameFeatures.concatenate([features(2), features(3, start=2.0, end=5.5)])
    assert joined.timestamps.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert len(joined) == 5
    assert joined.end == 5.5
    assert joined.period == 1.0
    assert FrameFeatures.concatenate([features(1)]).period == 1.0
    with pytest.raises(InvalidArgumentError, match="parts must not be empty"):
        FrameFeatures.concatenate([])


def test_malformed_features_are_refused() -> None:
    times, ones = np.arange(3.0), np.ones(3, np.float32)
    with pytest.raises(InvalidArgumentError, match=r"values must be \[T, V, R, D\] floating point, got \[3, 2\]"):
        FrameFeatures(np.zeros((3, 2), np.float32), times, ones)
    values = np.zeros((3, 1, 2, 4), np.float32)
    with pytest.raises(
        InvalidArgumentError,
        match=r"information must be \[3\] as values has 3 frames and 1 views, got \[2\]",
    ):
        FrameFeatures(values, times, np.ones(2, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"boxes must be \[3, 1, 4\]"):
        FrameFeatures(values, times, ones, boxes=np.zeros((3, 2, 4), np.float32))
    with pytest.raises(InvalidArgumentError, match=r"end must be at or after the last frame, at 2.0 s, got 1.0 s"):
        FrameFeatures(values, times, ones, end=1.0)


def test_repr_shows_shapes_only() -> None:
    assert repr(features(2)) == "FrameFeatures(values=[2, 2, 1, 1] float64, fingerprint='made-1')"

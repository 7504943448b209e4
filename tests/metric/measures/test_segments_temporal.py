"""Average precision of event spotting."""

from __future__ import annotations

import math

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import temporal_average_precision

T = torch.tensor


def test_average_precision_of_one_video_matches_a_hand_computed_value() -> None:
    # In order of confidence: 10.4 matches 10 (correct), 50 is false, 21 matches 20 (correct): (1/1 + 2/3) / 2.
    times, confidences, truth = T([50.0, 10.4, 21.0]), T([0.8, 0.9, 0.7]), T([10.0, 20.0])
    assert temporal_average_precision(times, confidences, truth, tolerance=2.0) == pytest.approx((1 + 2 / 3) / 2)
    # The tolerance is the full width of the window: with 1 s, 21 is too far away.
    assert temporal_average_precision(times, confidences, truth, tolerance=1.0) == pytest.approx(1 / 2)
    assert temporal_average_precision(times, confidences, truth, tolerance=[1.0, 2.0]) == pytest.approx(
        (1 / 2 + (1 + 2 / 3) / 2) / 2
    )


def test_an_event_is_matched_once_and_the_nearest_first() -> None:
    # 11.2 matches 12 (nearer than 10), which leaves 10 for 10.9 and nothing for 11.1.
    times, confidences = T([11.2, 10.9, 11.1]), T([0.9, 0.8, 0.7])
    value = temporal_average_precision(times, confidences, T([10.0, 12.0]), tolerance=4.0)
    assert value == pytest.approx((1 + 2 / 2) / 2)


def test_events_of_another_video_do_not_count() -> None:
    times, confidences = T([10.0, 10.0]), T([0.9, 0.8])
    value = temporal_average_precision(
        times, confidences, T([10.0]), tolerance=1.0, videos=T([1, 2]), truth_videos=T([2])
    )
    assert value == pytest.approx(1 / 2)


def test_eleven_point_interpolation_matches_a_hand_computed_value() -> None:
    # Two events; correct, false, correct: precision 1, 1/2, 2/3. Recall levels 0 to 0.5 get 1, 0.6 to 1 get 2/3.
    times, confidences, truth = T([50.0, 10.4, 21.0]), T([0.8, 0.9, 0.7]), T([10.0, 20.0])
    value = temporal_average_precision(times, confidences, truth, tolerance=2.0, interpolation="eleven-point")
    assert value == pytest.approx((6 * 1 + 5 * 2 / 3) / 11)
    one = temporal_average_precision(times[1:2], confidences[1:2], truth, tolerance=2.0, interpolation="eleven-point")
    assert one == pytest.approx(6 / 11)


def test_missing_predictions_or_events_are_handled() -> None:
    nothing = T([], dtype=torch.float32)
    assert math.isnan(temporal_average_precision(T([1.0]), T([0.5]), nothing, tolerance=1.0))
    assert temporal_average_precision(nothing, nothing, T([1.0]), tolerance=1.0) == 0.0
    assert temporal_average_precision(nothing, nothing, T([1.0]), tolerance=1.0, interpolation="eleven-point") == 0.0


def test_the_order_of_videos_and_of_distinct_confidences_does_not_matter() -> None:
    generator = torch.Generator().manual_seed(0)
    times, truth = torch.rand(30, generator=generator) * 60, torch.rand(10, generator=generator) * 60
    confidences = torch.rand(30, generator=generator)
    videos, events = torch.arange(30) % 3, torch.arange(10) % 3
    value = temporal_average_precision(times, confidences, truth, tolerance=10.0, videos=videos, truth_videos=events)
    assert 0 < value < 1
    order = torch.randperm(30, generator=generator)
    again = temporal_average_precision(
        times[order],
        confidences[order],
        truth.flip(0),
        tolerance=10.0,
        videos=videos[order],
        truth_videos=events.flip(0),
    )
    assert again == pytest.approx(value)


def test_invalid_input_is_rejected() -> None:
    one = T([1.0])
    with pytest.raises(InvalidArgumentError, match=r"confidences must be one per time, got \[2\] for times \[1\]"):
        temporal_average_precision(one, T([0.1, 0.2]), one, tolerance=1.0)
    with pytest.raises(InvalidArgumentError, match="confidences must not contain NaN"):
        temporal_average_precision(one, T([float("nan")]), one, tolerance=1.0)
    with pytest.raises(InvalidArgumentError, match=r"tolerance must be at least 0 s, got -1\.0"):
        temporal_average_precision(one, one, one, tolerance=-1.0)
    with pytest.raises(InvalidArgumentError, match="interpolation must be one of 'none', 'eleven-point', got 'all'"):
        temporal_average_precision(one, one, one, tolerance=1.0, interpolation="all")  # type: ignore[arg-type]

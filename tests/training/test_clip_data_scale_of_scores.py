"""Calibration of a comparator's score scale on unrelated training videos."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from vidkin.models import ComparatorConfig, build_comparator
from vidkin.training import ClipFeatures, ScheduleRecipe, Window
from vidkin.training.clip_data import ClipData, raise_unrelated

DIMENSION = 80


def data_of(vectors: torch.Tensor) -> ClipData:
    """One window of three equal frames for each vector [V, D], each window from a different video."""
    windows = [Window(number, number, 0, 3) for number in range(len(vectors))]
    stored = {
        number: [ClipFeatures(vector.expand(3, 1, -1), torch.arange(3), (number,), (number,))]
        for number, vector in enumerate(vectors)
    }
    return ClipData(
        name="videos",
        broken=(),
        windows=windows,
        validation=(),
        maker=cast("Any", None),
        schedule=ScheduleRecipe(),
        device=torch.device("cpu"),
        stored=stored,
    )


def alike(count: int, cosine: float) -> torch.Tensor:
    """Unit vectors with this cosine to each other, [count, D]."""
    vectors = torch.eye(count, DIMENSION) * (1 - cosine) ** 0.5
    vectors[:, -1] = cosine**0.5
    return vectors


@pytest.fixture
def chamfer() -> Any:
    """A comparator that scores the mean of the largest cosines."""
    return build_comparator(ComparatorConfig(network="none", dimension=DIMENSION), weights="random")


@pytest.mark.parametrize(("high", "expected"), [(0.1, 0.3), (0.5, 0.5)])
def test_training_videos_more_similar_than_photographs_raise_the_scale(
    chamfer: Any, high: float, expected: float
) -> None:
    assert raise_unrelated((0.0, high), chamfer, data_of(alike(12, 0.3))) == pytest.approx((0.0, expected))
    assert chamfer.training


def test_copies_in_the_folder_do_not_raise_the_scale(chamfer: Any) -> None:
    vectors = alike(14, 0.3)
    vectors[:4] = vectors[0]  # four copies: 6 of 91 pairs
    assert raise_unrelated((0.0, 0.1), chamfer, data_of(vectors)) == pytest.approx((0.0, 0.3))
    # If all videos are copies, there is no unrelated pair to measure.
    assert raise_unrelated((0.0, 0.1), chamfer, data_of(vectors[:1].expand(12, -1))) == (0.0, 0.1)


def test_few_videos_do_not_change_the_scale(chamfer: Any) -> None:
    assert raise_unrelated((0.0, 0.1), chamfer, data_of(alike(11, 0.3))) == (0.0, 0.1)


def test_at_most_64_videos_are_compared(chamfer: Any) -> None:
    vectors = alike(70, 0.3)
    data = data_of(vectors)
    assert data.stored is not None
    # Positions 0, 70 / 64, 140 / 64, ... are selected, which skips about every tenth, starting with position 11.
    del data.stored[11]
    assert raise_unrelated((0.0, 0.1), chamfer, data) == pytest.approx((0.0, 0.3))

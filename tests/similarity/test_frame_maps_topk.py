"""Means of the k largest values match hand-computed values and sorting."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vidkin.errors import InvalidArgumentError
from vidkin.similarity.frame_maps import check_top_share, mean_of_largest, mean_of_valid, top_count


@pytest.mark.parametrize(
    ("share", "size", "expected"),
    [
        (None, 9, 1),
        (0.0, 9, 1),
        (0.1, 9, 1),  # the published k_s with 3 x 3 regions: plain Chamfer
        (0.35, 9, 3),
        (0.03, 49, 1),  # the published k_t for short videos
        (0.03, 50, 2),  # 1.5 is rounded to even
        (0.5, 5, 2),  # so is 2.5
        (1.0, 7, 7),
        (2.0, 7, 2),  # a count instead of a fraction
        (9.0, 7, 7),
    ],
)
def test_count_is_the_rounded_fraction(share: float | None, size: int, expected: int) -> None:
    assert top_count(share, size) == expected


@pytest.mark.parametrize("share", [-0.1, 1.1, 2.5, float("nan")])
def test_fraction_outside_the_unit_interval_is_refused(share: float) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=r"share must be None \(only the largest value\), a fraction in \[0, 1\], or a count of at least 2",
    ):
        check_top_share("spatial_share", share)


def test_mean_of_largest_matches_hand_computed_values() -> None:
    values = torch.tensor([[4.0, 1.0, 3.0, 2.0]])
    assert mean_of_largest(values, dim=1, share=None).tolist() == [4.0]
    assert mean_of_largest(values, dim=1, share=0.5).tolist() == [3.5]
    assert mean_of_largest(values, dim=1, share=1.0).tolist() == [2.5]


def test_count_depends_on_the_valid_values() -> None:
    values = torch.tensor([[4.0, 1.0, 3.0, 2.0], [4.0, 1.0, 3.0, 2.0], [9.0, 9.0, 9.0, 9.0]])
    valid = torch.tensor([[True, True, True, True], [False, True, True, False], [False] * 4])
    # Half of four is two values, half of two is one value, and without valid values the mean is 0.
    assert mean_of_largest(values, dim=1, share=0.5, valid=valid).tolist() == [3.5, 3.0, 0.0]
    assert mean_of_valid(values, dim=1, valid=valid).tolist() == [2.5, 2.0, 0.0]


def test_half_precision_is_averaged_in_float32() -> None:
    values = torch.tensor([[1.0, 1.0078125]], dtype=torch.bfloat16)  # adjacent values in bfloat16
    mean = mean_of_largest(values, dim=1, share=1.0)
    assert mean.dtype == torch.float32
    assert mean.item() == 1.00390625  # not representable in bfloat16


@given(
    size=st.integers(1, 30),
    share=st.one_of(st.none(), st.floats(0, 1)),
    dim=st.integers(0, 2),
    seed=st.integers(0, 1000),
)
def test_mean_of_largest_equals_sorting(size: int, share: float | None, dim: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    shape = [2, 3, 4]
    shape[dim] = size
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    valid = torch.rand(shape, generator=generator) < 0.7
    rows = zip(values.movedim(dim, -1).reshape(-1, size), valid.movedim(dim, -1).reshape(-1, size), strict=True)
    expected, expected_masked = [], []
    for row, kept in rows:
        expected.append(row.sort(descending=True).values[: top_count(share, size)].mean().item())
        row = row[kept].sort(descending=True).values
        expected_masked.append(row[: top_count(share, len(row))].mean().item() if len(row) else 0.0)
    assert mean_of_largest(values, dim=dim, share=share).flatten().tolist() == pytest.approx(expected)
    masked = mean_of_largest(values, dim=dim, share=share, valid=valid)
    assert masked.flatten().tolist() == pytest.approx(expected_masked)

"""The largest numbers of rows are those that sorting finds."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin._base.blas import largest_columns


@pytest.mark.parametrize("length", [1, 5, 40, 1629])
@pytest.mark.parametrize("count", [1, 3, 18])
def test_largest_columns_are_those_of_a_stable_sort(length: int, count: int) -> None:
    # Few different numbers, so that many are equal.
    values = np.random.default_rng(length).integers(-9, 9, (7, length)).astype(np.float32)
    expected = np.argsort(-values, axis=1, kind="stable")[:, :count]
    assert np.array_equal(largest_columns(values, count), expected)


def test_no_rows_have_no_largest_columns() -> None:
    assert largest_columns(np.zeros((0, 100), np.float32), 3).shape == (0, 3)

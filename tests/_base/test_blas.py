"""The selected largest values of each row match a stable sort."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from vidkin._base.blas import largest_columns, median


@pytest.mark.parametrize("length", [1, 5, 40, 1629])
@pytest.mark.parametrize("count", [1, 3, 18])
def test_largest_columns_match_a_stable_sort(length: int, count: int) -> None:
    # Few distinct values produce many ties.
    values = np.random.default_rng(length).integers(-9, 9, (7, length)).astype(np.float32)
    expected = np.argsort(-values, axis=1, kind="stable")[:, :count]
    assert np.array_equal(largest_columns(values, count), expected)


def test_largest_columns_of_an_empty_array_are_empty() -> None:
    assert largest_columns(np.zeros((0, 100), np.float32), 3).shape == (0, 3)


@pytest.mark.parametrize("shape", [(1, 3), (4, 3), (5, 2, 3)])
@pytest.mark.parametrize("axis", [0, 1])
def test_median_equals_numpy_median(shape: tuple[int, ...], axis: int) -> None:
    values = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(median(values, axis), np.median(values, axis=axis))


def test_threadpoolctl_is_not_loaded_if_the_environment_allows_only_one_thread() -> None:
    code = (
        "import sys, numpy as np\n"
        "from vidkin._base.blas import one_blas_thread\n"
        "with one_blas_thread(): print((np.ones((2, 2)) @ np.ones((2, 2))).sum(), 'threadpoolctl' in sys.modules)"
    )
    for threads, is_loaded in (("1", False), ("2", True)):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        is_openblas = "openblas" in str(np.show_config(mode="dicts")).lower()
        assert done.stdout.split() == ["8.0", str(is_loaded or not is_openblas)]

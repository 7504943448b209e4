"""Tuples: members as rows, and checks of their lengths and types."""

from __future__ import annotations

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import Quadlets, Triplets

ONE, TWO = torch.tensor([1, 2]), torch.tensor([3, 4])


def test_rows_are_tuples() -> None:
    assert Quadlets(ONE, TWO, ONE + 10, TWO + 10).stacked().tolist() == [[1, 3, 11, 13], [2, 4, 12, 14]]
    assert Triplets(ONE, TWO, ONE + 10).stacked().tolist() == [[1, 3, 11], [2, 4, 12]]
    assert len(Triplets(ONE, TWO, TWO)) == 2
    assert len(Quadlets(*(ONE[:0],) * 4)) == 0


@pytest.mark.parametrize("wrong", [torch.tensor([1]), torch.tensor([1.0, 2.0]), torch.tensor([[1, 2]]), ONE.int()])
def test_members_of_different_length_or_type_are_rejected(wrong: torch.Tensor) -> None:
    with pytest.raises(InvalidArgumentError, match=r"the parts must be \[B\] int64 of the same length, got \[\[2\]"):
        Triplets(ONE, TWO, wrong)
    with pytest.raises(InvalidArgumentError, match=r"the parts must be \[B\] int64 of the same length"):
        Quadlets(wrong, ONE, TWO, TWO)

"""The parts of tuples have one length and the right type."""

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
def test_parts_that_do_not_fit_are_refused(wrong: torch.Tensor) -> None:
    with pytest.raises(InvalidArgumentError, match=r"the parts must be \[B\] int64 with one B, got \[\[2\]"):
        Triplets(ONE, TWO, wrong)
    with pytest.raises(InvalidArgumentError, match=r"the parts must be \[B\] int64 with one B"):
        Quadlets(wrong, ONE, TWO, TWO)

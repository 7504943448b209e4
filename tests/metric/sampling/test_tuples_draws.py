"""Random integers below limits, independent generators for epochs and processes, and checks of labels."""

from __future__ import annotations

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling.tuples import check_labels, epoch_generator, generator_of, uniform_below


def test_random_integers_stay_below_their_limits() -> None:
    limits = torch.tensor([1, 2, 3, 2**52])
    for seed in range(50):
        values = uniform_below(limits, torch.Generator().manual_seed(seed))
        assert bool((values >= 0).all() and (values < limits).all())
    thirds = uniform_below(torch.full((3000,), 3), torch.Generator().manual_seed(1)).bincount().tolist()
    assert all(abs(count - 1000) < 120 for count in thirds)


def test_epochs_and_processes_get_different_random_numbers() -> None:
    firsts = {
        torch.rand(1, generator=epoch_generator(seed, epoch, rank)).item()
        for seed in range(3)
        for epoch in range(3)
        for rank in range(3)
    }
    assert len(firsts) == 27
    assert torch.rand(1, generator=epoch_generator(1, 2, 0)) == torch.rand(1, generator=epoch_generator(1, 2))
    own = torch.Generator().manual_seed(5)
    assert generator_of(own) is own
    assert torch.rand(1, generator=generator_of(5)) == torch.rand(1, generator=own)


def test_labels_with_the_wrong_type_or_number_of_levels_are_rejected() -> None:
    assert check_labels(torch.tensor([3, 4], dtype=torch.int16), 1).tolist() == [[3], [4]]
    for wrong in (torch.tensor([3, 4]), torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 2)):
        with pytest.raises(InvalidArgumentError, match=r"labels must be \[N, 2\] integers, the coarsest level"):
            check_labels(wrong, 2)

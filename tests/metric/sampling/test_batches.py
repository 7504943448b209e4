"""Balanced batches: sizes, uniform class frequencies, coverage, epochs and ranks."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import BalancedBatchSampler

# 5 classes of 1, 2, 3, 7 and 20 items.
LONG_TAIL = torch.tensor([0] + [1] * 2 + [2] * 3 + [3] * 7 + [4] * 20)


def test_batch_has_p_classes_and_k_items_of_each() -> None:
    sampler = BalancedBatchSampler(LONG_TAIL, sizes=(3, 4), seed=1)
    assert sampler.batch_size == 12
    for batch in sampler:
        counts = Counter(LONG_TAIL[batch].tolist())
        assert list(counts.values()) == [4, 4, 4]
        for label in counts:
            items = [item for item in batch if LONG_TAIL[item] == label]
            # Four different items, or all items of a smaller class.
            assert len(set(items)) == min(4, LONG_TAIL.tolist().count(label))


def test_an_epoch_covers_every_item_in_as_few_batches_as_possible() -> None:
    sampler = BalancedBatchSampler(LONG_TAIL, sizes=(3, 4), seed=1)
    # 20 items need 5 visits of 4; each class is visited 3 times in 5 batches: 25/3 -> 9 batches.
    assert len(sampler) == 9
    for epoch in range(5):
        sampler.set_epoch(epoch)
        batches = list(sampler)
        assert len(batches) == 9
        assert {item for batch in batches for item in batch} == set(range(33))


def test_classes_appear_equally_often_regardless_of_size() -> None:
    sampler = BalancedBatchSampler(LONG_TAIL, sizes=(2, 3), batches=25, seed=0)
    visits = Counter(label for batch in sampler for label in set(LONG_TAIL[batch].tolist()))
    assert visits == dict.fromkeys(range(5), 10)
    uneven = BalancedBatchSampler(LONG_TAIL, sizes=(2, 3), batches=24, seed=0)
    visits = Counter(label for batch in uneven for label in set(LONG_TAIL[batch].tolist()))
    assert sorted(visits.values()) == [9, 9, 10, 10, 10]


def test_batches_of_three_levels_contain_quadlets() -> None:
    labels = torch.tensor([[c, s] for c in range(3) for s in range(2 + c) for _ in range(5)])
    sampler = BalancedBatchSampler(labels, sizes=(2, 2, 2), seed=3)
    seen = set()
    for batch in sampler:
        rows = [tuple(row) for row in labels[batch].tolist()]
        assert len(batch) == len(set(batch)) == 8
        assert len({category for category, _ in rows}) == 2
        assert sorted(Counter(rows).values()) == [2, 2, 2, 2]
        seen |= set(batch)
    assert seen == set(range(len(labels)))


def test_epochs_differ_and_are_reproducible() -> None:
    def epoch(number: int, seed: int = 0) -> list[list[int]]:
        sampler = BalancedBatchSampler(LONG_TAIL, sizes=(2, 2), seed=seed)
        sampler.set_epoch(number)
        assert list(sampler) == list(sampler)
        return list(sampler)

    assert epoch(3) == epoch(3)
    assert epoch(3) != epoch(4)
    assert epoch(0, seed=1) != epoch(1, seed=0)


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_ranks_share_one_sequence(world_size: int) -> None:
    alone = BalancedBatchSampler(LONG_TAIL, sizes=(3, 4), batches=4 * world_size, seed=2)
    ranks = [
        BalancedBatchSampler(LONG_TAIL, sizes=(3, 4), batches=4, seed=2, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    together = [batch for step in zip(*ranks, strict=True) for batch in step]
    assert together == list(alone)
    covering = [
        BalancedBatchSampler(LONG_TAIL, sizes=(3, 4), seed=2, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    assert {len(rank) for rank in covering} == {math.ceil(9 / world_size)}
    assert {item for rank in covering for batch in rank for item in batch} == set(range(33))


@given(st.data())
def test_coverage_holds_for_any_sizes(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.lists(st.integers(1, 9), min_size=2, max_size=4), min_size=2, max_size=4))
    rows = [[c, s] for c, subs in enumerate(counts) for s, size in enumerate(subs) for _ in range(size)]
    sizes = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 4)))
    sampler = BalancedBatchSampler(torch.tensor(rows), sizes=sizes, seed=data.draw(st.integers(0, 100)))
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert all(len(batch) == math.prod(sizes) for batch in batches)
    assert {item for batch in batches for item in batch} == set(range(len(rows)))


@pytest.mark.parametrize(
    ("labels", "arguments", "message"),
    [
        (LONG_TAIL, {"sizes": (6, 2)}, "sizes need 6 classes at level 0 of the labels, got 5"),
        (LONG_TAIL, {"sizes": (2, 2, 2)}, r"sizes must be 2 numbers of at least 1, .* got \(2, 2, 2\)"),
        (LONG_TAIL, {"sizes": (2, 0)}, r"sizes must be 2 numbers of at least 1, .* got \(2, 0\)"),
        (
            LONG_TAIL,
            {"sizes": (2, 2), "rank": 2, "world_size": 2},
            "rank must be from 0 to world_size - 1, got 2 with world_size 2",
        ),
        (LONG_TAIL, {"sizes": (2, 2), "batches": 0}, "batches must be at least 1, got 0"),
        (LONG_TAIL.float(), {"sizes": (2, 2)}, r"labels must be \[N\] or \[N, L\] integers"),
        (
            torch.tensor([[4, 0], [4, 0], [7, 0], [7, 1]]),
            {"sizes": (2, 2, 1)},
            r"sizes need 2 classes at level 1 of the labels of class \(4,\), got 1",
        ),
    ],
)
def test_arguments_are_checked(labels: torch.Tensor, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        BalancedBatchSampler(labels, **arguments)  # type: ignore[arg-type]

"""Sampling of quadlets and triplets from labels: all eligible tuples, uniformly, and no others."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch

from tests.metric.sampling.chi_square import assert_follows
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import (
    Quadlets,
    QuadletSampler,
    Triplets,
    sample_hard_quadlets,
    sample_quadlets,
    sample_triplets,
)

# Deliberately shuffled, with subcategory 0 in both categories. Sizes: (0,0) 3, (0,1) 2, (1,0) 2, (1,5) 2.
LABELS = torch.tensor([[1, 5], [0, 0], [0, 1], [1, 0], [0, 0], [0, 1], [1, 5], [0, 0], [1, 0]])


def all_quadlets(labels: torch.Tensor) -> list[tuple[int, int, int, int]]:
    """All quadlets, found by trying all combinations."""
    rows = labels.tolist()
    return [
        (q, p, i, n)
        for q, p, i, n in itertools.permutations(range(len(rows)), 4)
        if rows[q] == rows[p] and rows[i][0] == rows[q][0] and rows[i] != rows[q] and rows[n][0] != rows[q][0]
    ]


def as_tuples(drawn: Quadlets | Triplets) -> list[tuple[int, ...]]:
    return [tuple(row) for row in drawn.stacked().tolist()]


def test_quadlets_are_equally_likely() -> None:
    drawn = sample_quadlets(LABELS, 20_000, seed=0, uniform="tuples")
    assert_follows(as_tuples(drawn), dict.fromkeys(all_quadlets(LABELS), 1.0))


def test_queries_and_the_quadlets_of_a_query_are_equally_likely() -> None:
    drawn = sample_quadlets(LABELS, 20_000, seed=1)
    quadlets = all_quadlets(LABELS)
    per_query = Counter(quadlet[0] for quadlet in quadlets)
    assert set(per_query) == set(range(9))
    assert_follows(drawn.query.tolist(), dict.fromkeys(range(9), 1.0))
    assert_follows(as_tuples(drawn), {quadlet: 1 / per_query[quadlet[0]] for quadlet in quadlets})


@pytest.mark.parametrize("uniform", ["queries", "tuples"])
def test_triplets_with_one_level_have_the_expected_probabilities(uniform: str) -> None:
    labels = torch.tensor([4, 9, 4, 9, 9, 2, 2])
    rows = labels.tolist()
    triplets = [(q, p, n) for q, p, n in itertools.permutations(range(7), 3) if rows[q] == rows[p] != rows[n]]
    per_query = Counter(triplet[0] for triplet in triplets)
    chances = {triplet: 1 / per_query[triplet[0]] if uniform == "queries" else 1.0 for triplet in triplets}
    drawn = sample_triplets(labels, 20_000, seed=3, uniform=uniform)  # type: ignore[arg-type]
    assert_follows(as_tuples(drawn), chances)


def test_triplets_of_two_levels_take_negatives_from_any_other_subcategory() -> None:
    drawn = as_tuples(sample_triplets(LABELS, 5000, seed=0))
    rows = LABELS.tolist()
    assert all(rows[q] == rows[p] and q != p and rows[n] != rows[q] for q, p, n in drawn)
    assert {rows[n][0] == rows[q][0] for q, _, n in drawn} == {True, False}


def test_seed_reproduces_samples_and_a_generator_continues() -> None:
    first = sample_quadlets(LABELS, 50, seed=7).stacked()
    assert torch.equal(first, sample_quadlets(LABELS, 50, seed=7).stacked())
    assert not torch.equal(first, sample_quadlets(LABELS, 50, seed=8).stacked())
    generator = torch.Generator().manual_seed(7)
    assert torch.equal(first, sample_quadlets(LABELS, 50, seed=generator).stacked())
    assert not torch.equal(first, sample_quadlets(LABELS, 50, seed=generator).stacked())


def test_a_count_of_zero_returns_no_tuples() -> None:
    assert len(sample_quadlets(LABELS, 0, seed=0)) == 0
    assert len(sample_triplets(LABELS, 0, seed=0)) == 0
    assert len(sample_hard_quadlets(LABELS, torch.zeros(9, 9), 0, seed=0)) == 0


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [[0, 0], [0, 0], [1, 0], [1, 0], [1, 1], [1, 1]],
            "category 0 has one subcategory, so its items have no",
        ),
        (
            [[0, 0], [0, 0], [0, 3], [1, 0], [1, 0], [1, 1], [1, 1]],
            "subcategory 3 of category 0 has one item",
        ),
        ([[2, 0], [2, 0], [2, 1], [2, 1]], r"all items have the same category \(2\): quadlets need negatives"),
    ],
)
def test_error_names_labels_that_allow_no_quadlet(labels: list[list[int]], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        sample_quadlets(torch.tensor(labels), 1, seed=0)


def test_skipped_items_are_never_queries_but_can_be_other_members() -> None:
    # (0,3) has one item, so no positive. Category 1 has one subcategory, so no intermediates.
    labels = torch.tensor([[0, 0], [0, 0], [0, 3], [1, 0], [1, 0]])
    drawn = sample_quadlets(labels, 2000, seed=0, ineligible="skip")
    assert_follows(as_tuples(drawn), dict.fromkeys(all_quadlets(labels), 1.0))
    assert set(drawn.query.tolist()) == {0, 1}
    assert set(drawn.intermediate.tolist()) == {2}
    assert set(drawn.negative.tolist()) == {3, 4}
    with pytest.raises(InvalidArgumentError, match=r"category 0 has one subcategory.*no item can be a query"):
        sample_quadlets(labels[2:], 1, seed=0, ineligible="skip")


def test_error_says_why_triplets_are_impossible() -> None:
    with pytest.raises(InvalidArgumentError, match="class 8 has one item, which has no positive"):
        sample_triplets(torch.tensor([3, 3, 8]), 1, seed=0)
    with pytest.raises(InvalidArgumentError, match=r"all items have the same class \(3\): triplets need negatives"):
        sample_triplets(torch.tensor([3, 3]), 1, seed=0)
    with pytest.raises(InvalidArgumentError, match="there are no items to sample triplets from"):
        sample_triplets(torch.tensor([], dtype=torch.long), 1, seed=0)
    drawn = sample_triplets(torch.tensor([3, 3, 8]), 100, seed=0, ineligible="skip")
    assert set(drawn.query.tolist()) == {0, 1}


def test_arguments_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match=r"labels must be \[N, 2\] integers.*got \[3\] torch.int64"):
        sample_quadlets(torch.tensor([1, 2, 3]), 1, seed=0)
    with pytest.raises(InvalidArgumentError, match="count must be at least 0, got -1"):
        sample_quadlets(LABELS, -1, seed=0)
    with pytest.raises(InvalidArgumentError, match="uniform must be one of 'queries', 'tuples', got 'items'"):
        sample_quadlets(LABELS, 1, seed=0, uniform="items")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"parts must be \[B\] int64 of the same length, got \[\[1\], \[2\]"):
        Triplets(torch.tensor([1]), torch.tensor([1, 2]), torch.tensor([1]))


def test_hardest_quadlet_equals_that_of_an_exhaustive_search() -> None:
    similarity = torch.rand(9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    quadlets = all_quadlets(LABELS)
    drawn = as_tuples(sample_hard_quadlets(LABELS, similarity, 200, seed=0))
    assert {quadlet[0] for quadlet in drawn} == set(range(9))
    for q, p, i, n in drawn:
        own = [quadlet for quadlet in quadlets if quadlet[0] == q]
        assert p == min({quadlet[1] for quadlet in own}, key=lambda item: similarity[q, item].item())
        assert i == max({quadlet[2] for quadlet in own}, key=lambda item: similarity[q, item].item())
        assert n == max({quadlet[3] for quadlet in own}, key=lambda item: similarity[q, item].item())


def test_hardest_items_are_equally_likely() -> None:
    similarity = torch.rand(9, 9, generator=torch.Generator().manual_seed(0))
    drawn = sample_hard_quadlets(LABELS, similarity, 9000, seed=0, hardest=2)
    negatives = [n for q, _, _, n in as_tuples(drawn) if q == 1]
    outside = [item for item in range(9) if LABELS[item, 0] != LABELS[1, 0]]
    hardest = sorted(outside, key=lambda item: -similarity[1, item].item())[:2]
    assert_follows(negatives, dict.fromkeys(hardest, 1.0))
    # A k above the number of items means all of them, so quadlets are uniform.
    everything = sample_hard_quadlets(LABELS, similarity, 20_000, seed=0, hardest=99, uniform="tuples")
    assert_follows(as_tuples(everything), dict.fromkeys(all_quadlets(LABELS), 1.0))


def test_similarity_callable_gives_the_same_result_as_the_matrix() -> None:
    similarity = torch.rand(9, 9, generator=torch.Generator().manual_seed(1))
    asked: list[int] = []

    def rows(query: torch.Tensor) -> torch.Tensor:
        asked.extend(query.tolist())
        return similarity[query]

    on_demand = sample_hard_quadlets(LABELS, rows, 30, seed=4)
    assert torch.equal(on_demand.stacked(), sample_hard_quadlets(LABELS, similarity, 30, seed=4).stacked())
    assert asked == on_demand.query.tolist()


def test_similarity_of_the_wrong_shape_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"similarity must return \[2, 9\] floating point"):
        sample_hard_quadlets(LABELS, torch.zeros(9, 8), 2, seed=0)
    with pytest.raises(InvalidArgumentError, match="similarity must not return NaN"):
        sample_hard_quadlets(LABELS, torch.full((9, 9), float("nan")), 2, seed=0)
    with pytest.raises(InvalidArgumentError, match="hardest must be at least 1, got 0"):
        sample_hard_quadlets(LABELS, torch.zeros(9, 9), 2, seed=0, hardest=0)


@pytest.mark.parametrize("hard", [False, True])
def test_epochs_have_the_given_number_of_batches_and_are_reproducible(hard: bool) -> None:
    similarity = torch.rand(9, 9) if hard else None

    def epoch(number: int, rank: int = 0) -> list[tuple[int, ...]]:
        sampler = QuadletSampler(LABELS, batch_size=16, batches=3, seed=5, similarity=similarity, hardest=2, rank=rank)
        sampler.set_epoch(number)
        assert len(sampler) == 3
        parts = list(sampler)
        assert [len(part) for part in parts] == [16, 16, 16]
        return [row for part in parts for row in as_tuples(part)]

    assert set(epoch(0)) <= set(all_quadlets(LABELS))
    assert epoch(0) == epoch(0)
    assert epoch(0) != epoch(1)
    assert epoch(0) != epoch(0, rank=1)


def test_sampler_rejects_invalid_labels_on_construction() -> None:
    with pytest.raises(InvalidArgumentError, match="all items have the same category"):
        QuadletSampler(LABELS[:1], batch_size=1, batches=1)
    with pytest.raises(InvalidArgumentError, match="batch_size must be at least 1, got 0"):
        QuadletSampler(LABELS, batch_size=0, batches=1)

"""Online triplets: reservoir probabilities, acceptance rules, and the stream of triplets."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.metric.sampling.chi_square import assert_follows
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import OnlineTripletSampler

# Two categories of 4 and 3 items; labels have two levels.
LABELS = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 1]])
CATEGORIES = LABELS[:, 0]


def test_full_buffer_keeps_items_with_probabilities_given_by_their_weights() -> None:
    """With room for 2 of 4 items, {a, b} stays with probability w_a/W w_b/(W-w_a) + w_b/W w_a/(W-w_b)."""
    weight = torch.tensor([1.0, 2.0, 3.0, 6.0])
    generator = torch.Generator().manual_seed(0)
    kept = []
    for _ in range(2500):
        sampler = OnlineTripletSampler(
            torch.zeros(4, dtype=torch.long),
            lambda one, other: 1.0,
            total_relevance=weight,
            buffer_size=2,
            seed=generator,
        )
        for item in (2, 0, 3, 1):
            sampler.add(item)
        kept.append(tuple(sampler.buffer(0)))
    w = weight.tolist()
    total = sum(w)
    chances = {
        (a, b): w[a] / total * w[b] / (total - w[a]) + w[b] / total * w[a] / (total - w[b])
        for a, b in itertools.combinations(range(4), 2)
    }
    assert_follows(kept, chances)


def matrix_of_labels() -> torch.Tensor:
    first = LABELS[:, None, 0] == LABELS[None, :, 0]
    return first.float() + (first & (LABELS[:, None, 1] == LABELS[None, :, 1])).float()


def test_labels_matrix_and_callable_give_the_same_triplets() -> None:
    matrix = matrix_of_labels()
    own = matrix * (CATEGORIES[:, None] == CATEGORIES[None, :]) * ~torch.eye(7, dtype=torch.bool)
    samplers = [
        OnlineTripletSampler(CATEGORIES, LABELS, seed=3),
        OnlineTripletSampler(CATEGORIES, matrix, seed=3),
        OnlineTripletSampler(
            CATEGORIES, lambda one, other: matrix[one, other].item(), total_relevance=own.sum(dim=1), seed=3
        ),
    ]
    streams = [list(sampler.stream(list(range(7)) * 20)) for sampler in samplers]
    assert len(streams[0]) > 50
    assert streams[0] == streams[1] == streams[2]


@pytest.mark.large
def test_triplets_follow_the_acceptance_rules() -> None:
    """If the buffers hold all items, the probability of a triplet is the product of its acceptance probabilities."""
    relevance = torch.rand(7, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    sampler = OnlineTripletSampler(CATEGORIES, relevance, threshold=0.1, in_class=0.5, scale=0.5, seed=0)
    for item in range(7):
        sampler.add(item)
    category = CATEGORIES.tolist()
    total = [sum(relevance[j, k].item() for k in range(7) if k != j and category[k] == category[j]) for j in range(7)]

    def accepted(i: int, j: int) -> float:
        return min(1.0, 0.5 * relevance[i, j].item() / total[j])

    chances = {}
    for q, p, n in itertools.permutations(range(7), 3):
        if category[p] != category[q] or relevance[q, p] - relevance[q, n] < 0.1:
            continue
        own = category.count(category[q])
        # The category of the query is sampled uniformly, then query and positive uniformly from its buffer.
        chance = 0.5 / own / own * accepted(q, p) * 0.5
        chance *= accepted(q, n) / own if category[n] == category[q] else 1 / (7 - own)
        if chance > 0:
            chances[q, p, n] = chance
    drawn = [sampler.sample() for _ in range(12_000)]
    assert None not in drawn
    likely = {triplet: chance for triplet, chance in chances.items() if chance / sum(chances.values()) > 1e-3}
    assert set(drawn) <= set(chances)
    assert_follows([triplet for triplet in drawn if triplet in likely], likely)


def test_negatives_of_the_query_category_can_be_excluded() -> None:
    for share, same in ((0.0, False), (1.0, True)):
        sampler = OnlineTripletSampler(CATEGORIES, LABELS, in_class=share, seed=0)
        triplets = list(sampler.stream(list(range(7)) * 10))
        assert triplets
        assert all(CATEGORIES[q] == CATEGORIES[p] for q, p, _ in triplets)
        assert all((CATEGORIES[q] == CATEGORIES[n]).item() == same for q, _, n in triplets)
        assert all(q != p != n != q for q, p, n in triplets)


def test_sample_returns_triplets_of_the_category_or_none() -> None:
    sampler = OnlineTripletSampler(CATEGORIES, LABELS, seed=0)
    assert sampler.sample() is None
    for item in (0, 1, 4):
        sampler.add(item)
    assert sampler.sample(1) is None
    triplet = sampler.sample(0)
    assert triplet is not None
    assert set(triplet[:2]) == {0, 1}
    assert triplet[2] == 4
    # With a single category, negatives can only come from that category.
    alone = OnlineTripletSampler(CATEGORIES, LABELS, in_class=0.0, tries=200, seed=0)
    assert list(alone.stream(range(4))) == []
    # No pair reaches this margin, so all attempts fail.
    strict = OnlineTripletSampler(CATEGORIES, LABELS, threshold=3, tries=20, seed=0)
    assert list(strict.stream(range(7))) == []


def test_an_item_added_twice_is_stored_once() -> None:
    sampler = OnlineTripletSampler(CATEGORIES, LABELS, buffer_size=3, seed=0)
    for item in (0, 0, 1, 0, 1):
        sampler.add(item)
    assert sampler.buffer(0) == [0, 1]
    assert sampler.buffer(9) == []


def test_items_without_relevance_leave_the_buffer_first() -> None:
    sampler = OnlineTripletSampler(
        torch.zeros(4, dtype=torch.long),
        lambda a, b: 1.0,
        total_relevance=torch.tensor([0.0, 0, 5, 5]),
        buffer_size=2,
    )
    for item in (0, 1, 2, 3):
        sampler.add(item)
    assert sampler.buffer(0) == [2, 3]


def test_arguments_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="must be given if relevance is a callable"):
        OnlineTripletSampler(CATEGORIES, lambda a, b: 1.0)
    with pytest.raises(InvalidArgumentError, match=r"relevance must be integer labels \[7\] or \[7, L\], a floating"):
        OnlineTripletSampler(CATEGORIES, torch.rand(7, 3))
    with pytest.raises(InvalidArgumentError, match="relevance must be at least 0 and not NaN"):
        OnlineTripletSampler(CATEGORIES, -torch.ones(7, 7))
    with pytest.raises(InvalidArgumentError, match=r"total_relevance must be \[7\] numbers of at least 0, got \[3\]"):
        OnlineTripletSampler(CATEGORIES, LABELS, total_relevance=torch.ones(3))
    with pytest.raises(InvalidArgumentError, match=r"buffer_size must be at least 2, got 1"):
        OnlineTripletSampler(CATEGORIES, LABELS, buffer_size=1)
    with pytest.raises(InvalidArgumentError, match=r"categories must be \[N\] integers, got \[7, 2\]"):
        OnlineTripletSampler(LABELS, LABELS)
    with pytest.raises(InvalidArgumentError, match=r"item must be from 0 to 6, got 7"):
        OnlineTripletSampler(CATEGORIES, LABELS).add(7)

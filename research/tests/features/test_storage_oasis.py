"""OASIS: a hand-computed step, the solution it converges to, and a ranking learned from triplets."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import BilinearSimilarity, ImageFeature, learn_bilinear

ROWS = torch.eye(3)


def test_one_step_equals_hand_computed_values() -> None:
    # p = e0, p+ = e1, p- = e2: the loss is 1 - 0 + 0, ||V||^2 = 1 * 2, tau = 1/2.
    matrix = learn_bilinear(ROWS, [(0, 1, 2)], aggressiveness=10.0)
    assert matrix.tolist() == [[1, 0.5, -0.5], [0, 1, 0], [0, 0, 1]]
    # Now p W (p+ - p-) = 1, so the loss is 0 and the same triplet has no effect.
    assert torch.equal(matrix, learn_bilinear(ROWS, [(0, 1, 2)] * 5, aggressiveness=10.0))


def test_aggressiveness_limits_the_step_size() -> None:
    matrix = learn_bilinear(ROWS, [(0, 1, 2)], aggressiveness=0.1)
    assert matrix[0].tolist() == pytest.approx([1, 0.1, -0.1])
    several = learn_bilinear(ROWS, [(0, 1, 2)] * 3, aggressiveness=0.1)
    assert several[0].tolist() == pytest.approx([1, 0.3, -0.3])


def test_ordered_or_equal_triplets_have_no_effect() -> None:
    far = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    assert torch.equal(learn_bilinear(far, [(0, 1, 2)]), torch.eye(2))
    assert torch.equal(learn_bilinear(far, [(0, 1, 1)]), torch.eye(2))


def test_oasis_learns_the_direction_that_determines_the_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 2
    # The first column determines the label; nine others are larger but irrelevant.
    rows = torch.randn(60, 10, generator=generator)
    rows[:, 0] = labels * 1.0 - 0.5
    vectors = torch.nn.functional.normalize(rows, dim=1)
    groups = [(labels == value).nonzero()[:, 0] for value in (0, 1)]
    triplets = []
    for number in range(4000):
        own, other = groups[number % 2], groups[1 - number % 2]
        query, positive = own[torch.randint(len(own), (2,), generator=generator)].tolist()
        negative = int(other[torch.randint(len(other), (), generator=generator)])
        triplets.append((query, positive, negative))
    matrix = learn_bilinear(vectors, triplets)

    def right(scores: torch.Tensor) -> float:
        return sum(bool(scores[q, p] > scores[q, n]) for q, p, n in triplets) / len(triplets)

    assert right(vectors @ matrix @ vectors.T) > right(vectors @ vectors.T) + 0.2


def test_distances_are_bilinear_and_embeddings_use_the_positive_part(features: dict[str, ImageFeature]) -> None:
    base = features["hash_kpca"]
    matrix = torch.eye(8)
    matrix[0, 1] = 0.5
    matrix[2, 2] = -1.0
    feature = BilinearSimilarity(base, matrix)
    vectors = torch.nn.functional.normalize(torch.rand(2, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    expected = -float(vectors[0] @ matrix @ vectors[1])
    assert float(feature.distances(vectors[:1], vectors[1:])) == pytest.approx(expected)
    positive = torch.eye(8)
    positive[0, 1] = positive[1, 0] = 0.25
    positive[2, 2] = 0
    embedded = feature.embed(vectors)
    lengths = (vectors @ positive * vectors).sum(dim=1).sqrt()
    cosine = float(vectors[0] @ positive @ vectors[1] / lengths.prod())
    assert float(embedded[0] @ embedded[1]) == pytest.approx(cosine, abs=1e-5)


def test_values_are_validated(features: dict[str, ImageFeature]) -> None:
    with pytest.raises(InvalidArgumentError, match="aggressiveness must be above 0, got 0"):
        learn_bilinear(ROWS, [], aggressiveness=0)
    oasis = features["oasis"]
    assert isinstance(oasis, BilinearSimilarity)
    with pytest.raises(InvalidArgumentError, match=r"matrix must be \[D, D\], got \[2, 8\]"):
        replace(oasis, matrix=torch.zeros(2, 8))

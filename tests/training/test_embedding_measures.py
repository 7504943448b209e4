"""Measures of embeddings match enumerated quadlets."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from vidkin.training import measure_embeddings, measure_one
from vidkin.training.embedding_measures import RANKED, TUPLES, measure_scores


def unit(*angles: float) -> Tensor:
    """Two-dimensional unit vectors at these angles in degrees."""
    radians = torch.tensor([math.radians(angle) for angle in angles], dtype=torch.float64)
    return torch.stack([radians.cos(), radians.sin()], dim=1)


def make_embeddings(count: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.nn.functional.normalize(torch.randn(count, 3, generator=generator, dtype=torch.float64), dim=-1)
    category = torch.randint(0, 2, (count,), generator=generator)
    return vectors, torch.stack([category, 2 * category + torch.randint(0, 2, (count,), generator=generator)], dim=1)


def enumerate_quadlets(
    queries: Tensor, labels: Tensor, gallery: Tensor, others: Tensor, *, same: bool
) -> tuple[float, float, int]:
    """(QP, TP, number of quadlets), computed by enumerating every quadlet."""
    distances = (queries[:, None] - gallery[None]).square().sum(-1).tolist()
    in_order = triplets = count = 0
    for query in range(len(queries)):
        row, groups = distances[query], {2: [], 1: [], 0: []}
        for place in range(len(gallery)):
            if not (same and place == query):
                shared = (labels[query] == others[place]).tolist()
                groups[2 if all(shared) else 1 if shared[0] else 0].append(place)
        for p, i, n in product(groups[2], groups[1], groups[0]):
            count += 1
            in_order += row[p] < row[i] < row[n]
            triplets += (row[p] < row[n]) + (row[i] < row[n])
    return in_order / count, triplets / (2 * count), count


@pytest.mark.parametrize("seed", range(5))
def test_precision_equals_that_of_enumerated_quadlets(seed: int) -> None:
    queries, labels = make_embeddings(12, seed)
    gallery, others = make_embeddings(15, seed + 100)
    figures = measure_embeddings(queries, labels, gallery, others, samples=4000)
    qp, tp, count = enumerate_quadlets(queries, labels, queries, labels, same=True)
    assert (figures["qp"], figures["tp"], figures["quadlets"]) == (
        pytest.approx(qp),
        pytest.approx(tp),
        count,
    )
    qp_gallery, tp_gallery, _ = enumerate_quadlets(queries, labels, gallery, others, same=False)
    assert figures["qp_gallery"] == pytest.approx(qp_gallery)
    assert figures["tp_gallery"] == pytest.approx(tp_gallery)
    # The estimate from 4,000 samples has a standard deviation of at most 0.008.
    assert figures["qp_sampled"] == pytest.approx(qp, abs=0.04)
    assert figures["tp_sampled"] == pytest.approx(tp, abs=0.04)
    assert set(figures) == {*TUPLES, *RANKED, "quadlets", "qp_gallery", "tp_gallery"}


def test_without_a_gallery_queries_rank_each_other() -> None:
    queries, labels = make_embeddings(12, 7)
    figures = measure_embeddings(queries, labels, None, None)
    assert (figures["qp_gallery"], figures["tp_gallery"]) == (figures["qp"], figures["tp"])
    # Items do not rank themselves; otherwise every first result would be correct.
    assert figures["recall_at_1"] < 1


def test_perfectly_ordered_items_have_the_best_results() -> None:
    """Two well-separated categories, each with two pairs of neighbors."""
    vectors = unit(0, 1, 10, 11, 90, 91, 100, 101)
    labels = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2], [1, 3], [1, 3]])
    figures = measure_embeddings(vectors, labels, None, None, samples=100)
    # Every query has one positive, two intermediates and four negatives.
    assert figures.pop("quadlets") == 8 * 8
    assert figures.pop("recall_at_5") == figures.pop("recall_at_10") == 1.0
    assert all(value == pytest.approx(1.0) for value in figures.values()), figures


def test_measure_one_equals_the_result_of_measure_embeddings() -> None:
    queries, labels = make_embeddings(10, 3)
    gallery, others = make_embeddings(14, 4)
    figures = measure_embeddings(queries, labels, gallery, others)
    for name in ("qp", "tp", "map", "ndcg", "recall_at_1"):
        assert measure_one(name, queries, labels, gallery, others) == pytest.approx(figures[name]), name


def test_seed_determines_the_sampled_quadlets() -> None:
    queries, labels = make_embeddings(12, 1)
    scores = queries @ queries.T
    relevance = (labels[:, None] == labels[None]).long().cumprod(-1).sum(-1)
    valid = ~torch.eye(12, dtype=torch.bool)

    def drawn(seed: int) -> float:
        return measure_scores(scores, relevance, valid, names=["qp_sampled"], samples=50, seed=seed)["qp_sampled"]

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(8)}) > 1


def test_undefined_measures_are_nan() -> None:
    labels = torch.tensor([[0, 0], [1, 1], [2, 2]])
    figures = measure_embeddings(unit(0, 90, 180), labels, None, None)
    assert figures["quadlets"] == 0
    assert all(math.isnan(figures[name]) for name in ("qp", "tp", "qp_sampled", "map", "recall_at_1"))

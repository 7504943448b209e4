"""Figures of embeddings: the measures of `vidkin evaluate` in percent, and the nearest items of each query."""

from __future__ import annotations

import torch
from torch import Tensor

from vidkin.metric import measures
from vidkin.training.embedding_measures import measure_embeddings, measure_one, measure_scores
from vidkin_research.retrieval.geometry import order_and_distances

__all__ = ["nearest_items", "score_retrieval", "score_validation"]

_RANKED = ("ndcg", "map", "map_subcategory", "recall_at_1")


def score_retrieval(
    queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor
) -> dict[str, float]:
    """Figures of `vidkin.training.Evaluation` in percent, and the result of `order_and_distances`.

    Args:
        queries: Unit vectors [Q, D].
        query_labels: [Q, 2] (category, subcategory).
        gallery: Unit vectors [G, D].
        labels: [G, 2] labels of the gallery.

    Returns:
        ``qp``, ``tp`` and their sampled forms are over test quadlets, ``qp_gallery`` and ``tp_gallery`` over gallery
        quadlets (`vidkin.training.embedding_measures`); of the figures that rank the gallery ``ndcg``, ``map``,
        ``map_subcategory`` and ``recall_at_1``. The distances and ``quadlets`` are not percentages. Figures
        that have nothing to count are NaN.
    """
    figures = measure_embeddings(queries, query_labels, gallery, labels, ranked=_RANKED)
    quadlets = figures.pop("quadlets")
    percent = {name: 100.0 * value for name, value in figures.items()}
    return percent | {"quadlets": quadlets} | order_and_distances(queries, query_labels, gallery, labels)


def score_validation(
    queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor
) -> dict[str, float]:
    """``qp`` and ``qp_gallery`` in percent, by which learning rates are chosen; arguments as in `score_retrieval`."""
    inside = measure_one("qp", queries, query_labels, gallery, labels)
    relevance = measures.graded_relevance(query_labels, labels)
    crossed = measure_scores(queries @ gallery.T, relevance, names=["qp"])["qp"]
    return {"qp": 100.0 * inside, "qp_gallery": 100.0 * crossed}


def nearest_items(queries: Tensor, gallery: Tensor, *, count: int) -> list[list[int]]:
    """For each query [Q, D] the numbers of the ``count`` nearest items of the gallery [G, D], nearest first."""
    nearest = torch.cdist(queries, gallery).topk(min(count, len(gallery)), largest=False, sorted=True)
    return [[int(number) for number in row] for row in nearest.indices]

"""What embeddings are worth: measures of queries against a gallery, and the nearest items of each query."""

from __future__ import annotations

import torch
from torch import Tensor

from vidkin.experiments.retrieval.geometry import order_and_distances
from vidkin.metric import measures
from vidkin.training.embedding_measures import measure_scores

__all__ = ["nearest_items", "score_retrieval"]

_FIGURES = ("qp", "qp_sampled", "ndcg", "tp", "tp_sampled", "map", "map_subcategory", "recall_at_1")


def score_retrieval(
    queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor
) -> dict[str, float]:
    """QP, NDCG, TP, MAP and more of queries [Q, D] against a gallery [G, D], in percent.

    q is a query; p, i and n are of the gallery, which holds other recordings than the queries.

    Args:
        queries: Unit vectors [Q, D].
        query_labels: [Q, 2] (category, subcategory).
        gallery: Unit vectors [G, D].
        labels: [G, 2] of the gallery.

    Returns:
        ``qp``, ``tp``: over all such quadlets. ``qp_sampled``, ``tp_sampled``: over 15,000 drawn ones. ``qp_inside``:
        over the quadlets that lie in the queries altogether. ``ndcg``. ``map``: positives and intermediates are
        relevant. ``map_subcategory``: positives alone are. ``recall_at_1``: the first item has the same subcategory.
        And what `order_and_distances` returns; its distances are not percentages.
    """
    scores = -torch.cdist(queries, gallery)
    relevance = measures.graded_relevance(query_labels, labels)
    figures = measure_scores(scores, relevance, names=_FIGURES)
    others = ~torch.eye(len(queries), dtype=torch.bool)
    inside = measures.quadlet_precision(
        -torch.cdist(queries, queries), measures.graded_relevance(query_labels, query_labels), valid=others
    )
    shares = {**figures, "qp_inside": inside}
    percent = {name: 100.0 * float(value) for name, value in shares.items()}
    return percent | order_and_distances(queries, query_labels, gallery, labels)


def nearest_items(queries: Tensor, gallery: Tensor, *, count: int) -> list[list[int]]:
    """For each query [Q, D] the numbers of the ``count`` nearest items of the gallery [G, D], nearest first."""
    nearest = torch.cdist(queries, gallery).topk(min(count, len(gallery)), largest=False, sorted=True)
    return [[int(number) for number in row] for row in nearest.indices]

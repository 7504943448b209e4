"""What embeddings are worth: measures of queries against a gallery, and the nearest items of each query."""

from __future__ import annotations

import torch
from torch import Tensor

from vidkin.experiments.retrieval.geometry import order_and_distances
from vidkin.metric import measures

__all__ = ["nearest_items", "score_retrieval"]

_SAMPLES = 15_000


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
    shared = measures.RetrievalAccumulator(
        ["quadlet_precision", "ndcg", "triplet_precision", "mean_average_precision"]
    )
    shared.update(scores, relevance)
    exact = shared.compute()
    others = ~torch.eye(len(queries), dtype=torch.bool)
    inside = measures.quadlet_precision(
        -torch.cdist(queries, queries), measures.graded_relevance(query_labels, query_labels), valid=others
    )
    shares = {
        "qp": exact["quadlet_precision"],
        "qp_sampled": measures.quadlet_precision(scores, relevance, samples=_SAMPLES, seed=0),
        "qp_inside": inside,
        "ndcg": exact["ndcg"],
        "tp": exact["triplet_precision"],
        "tp_sampled": measures.triplet_precision(scores, relevance, samples=_SAMPLES, seed=0),
        "map": exact["mean_average_precision"],
        "map_subcategory": measures.mean_average_precision(scores, relevance, level=2),
        "recall_at_1": (relevance.gather(1, scores.argmax(dim=1, keepdim=True)) == 2).double().mean().item(),
    }
    percent = {name: 100.0 * float(value) for name, value in shares.items()}
    return percent | order_and_distances(queries, query_labels, gallery, labels)


def nearest_items(queries: Tensor, gallery: Tensor, *, count: int) -> list[list[int]]:
    """For each query [Q, D] the numbers of the ``count`` nearest items of the gallery [G, D], nearest first."""
    nearest = torch.cdist(queries, gallery).topk(min(count, len(gallery)), largest=False, sorted=True)
    return [[int(number) for number in row] for row in nearest.indices]

"""Details of a QP: which of its two orders hold, and how far apart embeddings are."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.metric import measures
from vidkin.metric.sampling import sample_quadlets

__all__ = ["order_and_distances"]

# c of the Radial loss in the source: the negative must be c times as far from the center as q, p and i.
_RADIAL = 3.0
_QUADLETS = 5_000


def order_and_distances(
    queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor
) -> dict[str, float]:
    """The parts of QP over test quadlets, squared distances of unit vectors [Q, D], and one figure of a gallery [G, D].

    Returns:
        ``order_inside``: percent of the (q, p, i) with d(q, p) < d(q, i). ``order_across``: percent of the (q, i, n)
        with d(q, i) < d(q, n). ``distance_positive``, ``distance_intermediate``, ``distance_negative``: mean squared
        distance of q to p, i and n, in [0, 4]; all of them queries. ``unreachable``: percent of 5,000 drawn (q, p, i)
        of the gallery for which no unit vector n satisfies the constraint of the Radial loss,
        ``(3R)^2 <= ||n - X||^2 <= (1 + ||X||)^2``; NaN if the gallery has no such triplets.
    """
    squared = torch.cdist(queries, queries).square()
    relevance = measures.graded_relevance(query_labels, query_labels)
    others = ~torch.eye(len(queries), dtype=torch.bool)
    kinds = {
        "positive": others & (relevance == 2),
        "intermediate": relevance == 1,
        "negative": relevance == 0,
    }
    inside = measures.triplet_precision(
        -squared, 2 * kinds["positive"].long(), weighting="triplets", valid=others & ~kinds["negative"]
    )
    across = measures.triplet_precision(
        -squared, 2 * kinds["intermediate"].long(), weighting="triplets", valid=others & ~kinds["positive"]
    )
    figures = {"order_inside": 100.0 * float(inside), "order_across": 100.0 * float(across)}
    for name, kind in kinds.items():
        figures[f"distance_{name}"] = float(squared[kind].double().mean())
    try:
        drawn = sample_quadlets(labels, _QUADLETS, seed=0, ineligible="skip")
    except InvalidArgumentError:
        return figures | {"unreachable": math.nan}
    members = torch.stack([gallery[part] for part in (drawn.query, drawn.positive, drawn.intermediate)])
    center = members.mean(dim=0)
    radius = (members - center).norm(dim=-1).amax(dim=0)
    unreachable = float((_RADIAL * radius > 1.0 + center.norm(dim=-1)).double().mean())
    return figures | {"unreachable": 100.0 * unreachable}

"""The figures of an embedding: one evaluator for validation, `vidkin evaluate` and the retrieval comparison.

There are two protocols for quadlets. *Test quadlets*, the published protocol: q, p, i and n all come from the query
split (``qp``, ``tp``, and ``qp_sampled``, ``tp_sampled`` for a random sample). *Gallery quadlets*: q comes from the
query split, and p, i and n from the gallery (``qp_gallery``, ``tp_gallery``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from vidkin.metric import measures
from vidkin.training.recipe import Measure

__all__ = ["RANKED", "SAMPLES", "TUPLES", "measure_embeddings", "measure_one", "measure_scores"]

SAMPLES = 15_000
"""Number of quadlets drawn for the sampled figures, as in the sources."""

_Figure = Callable[[Tensor, Tensor, Tensor | None], float]

_RANKED: dict[str, _Figure] = {
    "ndcg": lambda s, r, v: _number(measures.ndcg(s, r, valid=v)),
    "map": lambda s, r, v: _number(measures.mean_average_precision(s, r, valid=v)),
    "map_subcategory": lambda s, r, v: _number(measures.mean_average_precision(s, r, level=2, valid=v)),
    "hap": lambda s, r, v: _number(measures.hierarchical_average_precision(s, r, valid=v)),
    "asi": lambda s, r, v: _number(measures.average_set_intersection(s, r, valid=v)),
    "recall_at_1": lambda s, r, v: _number(measures.recall_at_k(s, r, 1, level=2, valid=v)),
    "recall_at_5": lambda s, r, v: _number(measures.recall_at_k(s, r, 5, level=2, valid=v)),
    "recall_at_10": lambda s, r, v: _number(measures.recall_at_k(s, r, 10, level=2, valid=v)),
    "r_precision": lambda s, r, v: _number(measures.r_precision(s, r, level=2, valid=v)),
}
RANKED = tuple(_RANKED)
"""Figures of a gallery ranked for every query."""

TUPLES = ("qp", "qp_sampled", "tp", "tp_sampled")
"""Figures of test quadlets and of their triplets."""


def measure_scores(
    scores: Tensor,
    relevance: Tensor,
    valid: Tensor | None = None,
    *,
    names: Sequence[str],
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[str, float]:
    """Figures in [0, 1] by name, higher is better; nan if undefined.

    Args:
        scores: [Q, G] scores; higher is more similar.
        relevance: [Q, G]: 2 for the same subcategory, 1 for the same category, 0 for neither.
        valid: [Q, G] bool, pairs that count; None: all.
        names: Figures to compute, from `TUPLES` and `RANKED`.
        samples: Number of quadlets drawn for the sampled figures.
        seed: Seed of the draw.
    """
    figures = {}
    for name in names:
        if name in _RANKED:
            figures[name] = _RANKED[name](scores, relevance, valid)
            continue
        figure = measures.quadlet_precision if name.startswith("qp") else measures.triplet_precision
        if name.endswith("_sampled"):
            figures[name] = _number(figure(scores, relevance, valid=valid, samples=samples, seed=seed))
        else:
            figures[name] = _number(figure(scores, relevance, valid=valid))
    return figures


def measure_embeddings(
    queries: Tensor,
    query_labels: Tensor,
    gallery: Tensor | None,
    gallery_labels: Tensor | None,
    *,
    ranked: Sequence[str] = RANKED,
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[str, float]:
    """The figures of :class:`vidkin.training.Evaluation` by name, computed from unit vectors.

    Args:
        queries: [Q, D] vectors.
        query_labels: [Q, 2] labels (category, subcategory).
        gallery: [G, D] vectors; None: the queries, none of which ranks itself.
        gallery_labels: [G, 2] labels; None: those of the queries.
        ranked: Which figures of `RANKED` to compute; they take most of the time.
        samples: Number of quadlets drawn for the sampled figures.
        seed: Seed of the draw.
    """
    among = _among(queries, query_labels)
    exact = measures.quadlet_precision(*among[:2], valid=among[2])
    assert isinstance(exact, measures.CountedMean)
    figures = {"qp": float(exact), "quadlets": float(exact.count)}
    figures |= measure_scores(*among, names=TUPLES[1:], samples=samples, seed=seed)
    crossed: tuple[Tensor, Tensor, Tensor | None] = among
    if gallery is not None and gallery_labels is not None:
        crossed = queries @ gallery.T, measures.graded_relevance(query_labels, gallery_labels), None
    # The gallery protocol: the same figures with p, i and n from the gallery.
    figures |= {
        f"{name}_gallery": value for name, value in measure_scores(*crossed, names=("qp", "tp")).items()
    }
    return figures | measure_scores(*crossed, names=ranked)


def measure_one(
    name: Measure, queries: Tensor, query_labels: Tensor, gallery: Tensor, gallery_labels: Tensor
) -> float:
    """Compute one figure: ``qp`` and ``tp`` among the queries, all others on the gallery."""
    if name in ("qp", "tp"):
        return measure_scores(*_among(queries, query_labels), names=[name])[name]
    relevance = measures.graded_relevance(query_labels, gallery_labels)
    return measure_scores(queries @ gallery.T, relevance, names=[name])[name]


def _among(vectors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(scores, relevance, pairs that count) for items compared with each other."""
    return (
        vectors @ vectors.T,
        measures.graded_relevance(labels, labels),
        ~torch.eye(len(vectors), dtype=torch.bool),
    )


def _number(value: measures.CountedMean | Tensor | float) -> float:
    assert not isinstance(value, Tensor)
    return float(value)

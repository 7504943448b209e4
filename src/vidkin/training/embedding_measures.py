"""Evaluation measures for embeddings, shared by validation, `vidkin evaluate` and the retrieval comparison.

There are two quadlet protocols. *Test quadlets* (the published protocol): q, p, i and n all come from the query
split (``qp`` and ``tp``, or ``qp_sampled`` and ``tp_sampled`` for a random sample). *Gallery quadlets*: q comes from
the query split, and p, i and n from the gallery (``qp_gallery`` and ``tp_gallery``).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.metric import measures
from vidkin.training.recipe import Measure

SAMPLES = 15_000
"""Number of quadlets sampled for the sampled measures, as published."""

# Minimum relevance of a positive, and name of the measure in `vidkin.metric`.
_RANKED: dict[str, tuple[int, str]] = {
    "ndcg": (1, "ndcg"),
    "map": (1, "mean_average_precision"),
    "map_subcategory": (2, "mean_average_precision"),
    "hap": (1, "hierarchical_average_precision"),
    "asi": (1, "average_set_intersection"),
    "recall_at_1": (2, "recall_at_1"),
    "recall_at_5": (2, "recall_at_5"),
    "recall_at_10": (2, "recall_at_10"),
    "r_precision": (2, "r_precision"),
}
RANKED = tuple(_RANKED)
"""Measures computed by ranking a gallery for every query."""

TUPLES = ("qp", "qp_sampled", "tp", "tp_sampled")
"""Measures of test quadlets and their triplets."""


def measure_scores(
    scores: Tensor,
    relevance: Tensor,
    valid: Tensor | None = None,
    *,
    names: Sequence[str],
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[str, float]:
    """Compute measures by name, in [0, 1]; higher is better, NaN if undefined.

    Args:
        scores: [Q, G] scores; higher is more similar.
        relevance: [Q, G]: 2 for the same subcategory, 1 for the same category, 0 otherwise.
        valid: [Q, G] bool, False for pairs to exclude; None: all pairs count.
        names: Measures to compute, from `TUPLES` and `RANKED`.
        samples: Number of quadlets for the sampled measures.
        seed: Seed for sampling.
    """
    values = _rank_once(scores, relevance, valid, [name for name in names if name in _RANKED])
    for name in names:
        if name in _RANKED:
            continue
        measure = measures.quadlet_precision if name.startswith("qp") else measures.triplet_precision
        if name.endswith("_sampled"):
            values[name] = _number(measure(scores, relevance, valid=valid, samples=samples, seed=seed))
        else:
            values[name] = _number(measure(scores, relevance, valid=valid))
    return {name: values[name] for name in names}


def check_vectors(queries: Tensor, gallery: Tensor) -> None:
    """Raise :class:`InvalidArgumentError` unless both are [N, D] floating point with the same D."""
    for name, vectors in (("queries", queries), ("gallery", gallery)):
        if vectors.ndim != 2 or vectors.shape[1] != queries.shape[-1] or not vectors.is_floating_point():
            raise InvalidArgumentError(
                f"{name} must be [N, D] floating point with the same D, got {list(vectors.shape)} {vectors.dtype}"
            )


@check_arguments
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
    """Compute the measures of :class:`vidkin.training.Evaluation` by name, from unit vectors.

    Args:
        queries: [Q, D] vectors.
        query_labels: [Q, 2] labels (category, subcategory).
        gallery: [G, D] vectors; None: each query is compared with the other queries.
        gallery_labels: [G, 2] labels; None: the labels of the queries.
        ranked: Measures from `RANKED` to compute; they take most of the time.
        samples: Number of quadlets for the sampled measures.
        seed: Seed for sampling.

    Raises:
        InvalidArgumentError: The vectors or labels have the wrong shape.
    """
    check_vectors(queries, queries if gallery is None else gallery)
    among = _compare_all(queries, query_labels)
    exact = measures.quadlet_precision(*among[:2], valid=among[2])
    assert isinstance(exact, measures.CountedMean)
    values = {"qp": float(exact), "quadlets": float(exact.count)}
    values |= measure_scores(*among, names=TUPLES[1:], samples=samples, seed=seed)
    crossed: tuple[Tensor, Tensor, Tensor | None] = among
    if gallery is not None and gallery_labels is not None:
        crossed = queries @ gallery.T, measures.graded_relevance(query_labels, gallery_labels), None
    # The gallery protocol: the same measures with p, i and n from the gallery.
    values |= {f"{name}_gallery": value for name, value in measure_scores(*crossed, names=("qp", "tp")).items()}
    return values | measure_scores(*crossed, names=ranked)


@check_arguments
def measure_one(name: Measure, queries: Tensor, query_labels: Tensor, gallery: Tensor, gallery_labels: Tensor) -> float:
    """Compute a single measure: ``qp`` and ``tp`` among the queries, all others on the gallery."""
    if name in ("qp", "tp"):
        return measure_scores(*_compare_all(queries, query_labels), names=[name])[name]
    relevance = measures.graded_relevance(query_labels, gallery_labels)
    return measure_scores(queries @ gallery.T, relevance, names=[name])[name]


def _rank_once(scores: Tensor, relevance: Tensor, valid: Tensor | None, names: Sequence[str]) -> dict[str, float]:
    """Compute measures of a ranked gallery, sorting only once for all measures with the same positives."""
    by_name: dict[str, float] = {}
    finest = max(1, int(relevance.max())) if relevance.numel() else 1
    for level in sorted({_RANKED[name][0] for name in names}):
        at_level = {name: _RANKED[name][1] for name in names if _RANKED[name][0] == level}
        accumulator = measures.RetrievalAccumulator(
            list(at_level.values()), recall_at=(1, 5, 10), level=level, levels=finest
        )
        accumulator.update(scores, relevance, valid)
        values = accumulator.compute()
        by_name |= {name: float(values[measure]) for name, measure in at_level.items()}
    return by_name


def _compare_all(vectors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute (scores, relevance, valid) for items compared with each other."""
    return (
        vectors @ vectors.T,
        measures.graded_relevance(labels, labels),
        ~torch.eye(len(vectors), dtype=torch.bool),
    )


def _number(value: measures.CountedMean | Tensor) -> float:
    assert not isinstance(value, Tensor)
    return float(value)

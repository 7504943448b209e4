"""Quality measures of embeddings, shared by validation, `vidkin evaluate` and the retrieval comparison.

There are two quadlet protocols. *Test quadlets* (the published protocol): q, p, i and n all come from the query
split (``qp``, ``tp``, and ``qp_sampled``, ``tp_sampled`` for a random sample). *Gallery quadlets*: q comes from the
query split, and p, i and n from the gallery (``qp_gallery``, ``tp_gallery``).
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
"""Number of quadlets drawn for the sampled figures, as in the sources."""

# Minimum relevance of a positive, and name of the measure.
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
"""Figures computed from a gallery ranked for every query."""

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
        valid: [Q, G] bool, False for pairs to leave out; None: all pairs count.
        names: Figures to compute, from `TUPLES` and `RANKED`.
        samples: Number of quadlets drawn for the sampled figures.
        seed: Seed of the draw.
    """
    figures = _rank_once(scores, relevance, valid, [name for name in names if name in _RANKED])
    for name in names:
        if name in _RANKED:
            continue
        figure = measures.quadlet_precision if name.startswith("qp") else measures.triplet_precision
        if name.endswith("_sampled"):
            figures[name] = _number(figure(scores, relevance, valid=valid, samples=samples, seed=seed))
        else:
            figures[name] = _number(figure(scores, relevance, valid=valid))
    return {name: figures[name] for name in names}


def check_vectors(queries: Tensor, gallery: Tensor) -> None:
    """Raise :class:`InvalidArgumentError` unless both are [N, D] floating point, of one D."""
    for name, given in (("queries", queries), ("gallery", gallery)):
        if given.ndim != 2 or given.shape[1] != queries.shape[-1] or not given.is_floating_point():
            raise InvalidArgumentError(
                f"{name} must be [N, D] floating point with one D, got {list(given.shape)} {given.dtype}"
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
    """The figures of :class:`vidkin.training.Evaluation` by name, computed from unit vectors.

    Args:
        queries: [Q, D] vectors.
        query_labels: [Q, 2] labels (category, subcategory).
        gallery: [G, D] vectors; None: the queries, each ranked against the others.
        gallery_labels: [G, 2] labels; None: the labels of the queries.
        ranked: Figures of `RANKED` to compute; they take most of the time.
        samples: Number of quadlets drawn for the sampled figures.
        seed: Seed of the draw.

    Raises:
        InvalidArgumentError: Vectors or labels have another shape.
    """
    check_vectors(queries, queries if gallery is None else gallery)
    among = _compare_all(queries, query_labels)
    exact = measures.quadlet_precision(*among[:2], valid=among[2])
    assert isinstance(exact, measures.CountedMean)
    figures = {"qp": float(exact), "quadlets": float(exact.count)}
    figures |= measure_scores(*among, names=TUPLES[1:], samples=samples, seed=seed)
    crossed: tuple[Tensor, Tensor, Tensor | None] = among
    if gallery is not None and gallery_labels is not None:
        crossed = queries @ gallery.T, measures.graded_relevance(query_labels, gallery_labels), None
    # The gallery protocol: the same figures with p, i and n from the gallery.
    figures |= {f"{name}_gallery": value for name, value in measure_scores(*crossed, names=("qp", "tp")).items()}
    return figures | measure_scores(*crossed, names=ranked)


@check_arguments
def measure_one(name: Measure, queries: Tensor, query_labels: Tensor, gallery: Tensor, gallery_labels: Tensor) -> float:
    """Compute one figure: ``qp`` and ``tp`` among the queries, all others on the gallery."""
    if name in ("qp", "tp"):
        return measure_scores(*_compare_all(queries, query_labels), names=[name])[name]
    relevance = measures.graded_relevance(query_labels, gallery_labels)
    return measure_scores(queries @ gallery.T, relevance, names=[name])[name]


def _rank_once(scores: Tensor, relevance: Tensor, valid: Tensor | None, names: Sequence[str]) -> dict[str, float]:
    """Figures of a ranked gallery, which is sorted once for all figures with the same positives."""
    figures: dict[str, float] = {}
    finest = max(1, int(relevance.max())) if relevance.numel() else 1
    for level in sorted({_RANKED[name][0] for name in names}):
        at_level = {name: _RANKED[name][1] for name in names if _RANKED[name][0] == level}
        accumulator = measures.RetrievalAccumulator(
            list(at_level.values()), recall_at=(1, 5, 10), level=level, levels=finest
        )
        accumulator.update(scores, relevance, valid)
        values = accumulator.compute()
        figures |= {name: float(values[measure]) for name, measure in at_level.items()}
    return figures


def _compare_all(vectors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(scores, relevance, valid) for items compared with each other."""
    return (
        vectors @ vectors.T,
        measures.graded_relevance(labels, labels),
        ~torch.eye(len(vectors), dtype=torch.bool),
    )


def _number(value: measures.CountedMean | Tensor) -> float:
    assert not isinstance(value, Tensor)
    return float(value)

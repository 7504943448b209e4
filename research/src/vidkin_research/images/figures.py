"""Metrics of a row: classification, and retrieval among the test images."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from vidkin.metric.measures import accuracy, graded_relevance, recall_at_k, triplet_precision
from vidkin.training.classifier import retrieval_figures
from vidkin_research.images.contract import ImageTask

__all__ = ["RECALLS", "MeasuredRow", "RowFigures", "measure_row"]

RECALLS = (1, 4, 8, 16)
"""Values of K for Recall@K."""

# Number of queries, and of results per query, in the ranking images.
_QUERIES, _RESULTS = 4, 8


@dataclass(frozen=True)
class RowFigures:
    """Metrics of one run of one row on one set; rates are in [0, 1], higher is better.

    Attributes:
        set: Name of the set.
        row: Name of the row.
        group: Group of the row.
        seed: Seed of the run.
        top_1: Top-1 accuracy on the test images, by the row's own classifier or else by the nearest training image.
        macro: Mean of the per-class accuracies.
        triplet_precision: Fraction of test triplets (query, image of the same class, image of another class) in which
            the image of the same class is nearer.
        recalls: Recall@K among the test images for each K in `RECALLS`: whether one of the first K has the same class.
        seconds_to_fit: Wall-clock time of the fit.
        milliseconds: Wall-clock time to describe one test image.
        learning_rate: Learning rate of a row that fine-tunes a network.
        layers: For the layers ``embedding`` and ``penultimate`` of a two-head network: Recall@K for each K in
            `RECALLS`, then the normalized mutual information of k-means clusters and classes.
    """

    set: str
    row: str
    group: str
    seed: int
    top_1: float
    macro: float
    triplet_precision: float
    recalls: tuple[float, ...]
    seconds_to_fit: float
    milliseconds: float
    learning_rate: float | None = None
    layers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasuredRow:
    """Metrics of one run, with examples of its rankings.

    Attributes:
        figures: The metrics.
        nearest: For four evenly sampled test images, the same for every row: the image's index, and the indices of its
            eight nearest test images, nearest first.
    """

    figures: RowFigures
    nearest: tuple[tuple[int, tuple[int, ...]], ...]


def measure_row(fitted: Any, task: ImageTask, *, row: str, group: str, seed: int, seconds_to_fit: float) -> MeasuredRow:
    """Describe the training and test images once and compute the metrics."""
    images = task.test.images
    began = time.perf_counter()
    test = fitted.describe(images)
    spent = time.perf_counter() - began
    labels = task.test.labels
    classify = getattr(fitted, "classify", None)
    layers_of = getattr(fitted, "layers", None)
    predicted: Tensor
    if classify is not None:
        predicted = classify(test)
    else:
        nearest = fitted.distances(test, fitted.describe(task.train.images)).argmin(dim=1)
        predicted = task.train.labels[nearest, 1]
    layers: dict[str, tuple[float, ...]] = {}
    if layers_of is not None:
        known = layers_of(fitted.describe(task.train.images))
        for name, vectors in layers_of(test).items():
            own = retrieval_figures(vectors, labels[:, 1], known[name], task.train.labels[:, 1], seed)
            layers[name] = (*(own.recalls[k] for k in RECALLS), own.nmi)
    scores = -fitted.distances(test, test)
    # Use only the class level, so that items of another class are negatives even in the same category.
    relevance = graded_relevance(labels[:, 1:], labels[:, 1:])
    valid = ~torch.eye(len(labels), dtype=torch.bool)
    level = float(relevance.max())
    precision = triplet_precision(scores, relevance, weighting="triplets", positive_level=level, valid=valid)
    assert not isinstance(precision, Tensor)
    recalls = [recall_at_k(scores, relevance, k, valid=valid) for k in RECALLS]
    chosen = torch.linspace(0, len(labels) - 1, min(_QUERIES, len(labels))).round().long()
    others = scores[chosen].scatter(1, chosen[:, None], -torch.inf)
    order = others.argsort(dim=1, descending=True, stable=True)[:, : min(_RESULTS, len(labels) - 1)]
    figures = RowFigures(
        set=task.name,
        row=row,
        group=group,
        seed=seed,
        top_1=accuracy(predicted, labels[:, 1]),
        macro=accuracy(predicted, labels[:, 1], average="macro"),
        triplet_precision=float(precision),
        recalls=tuple(float(recall) for recall in recalls if not isinstance(recall, Tensor)),
        seconds_to_fit=seconds_to_fit,
        milliseconds=1000 * spent / len(images),
        learning_rate=task.learning_rate if layers else None,
        layers=layers,
    )
    ranked = zip(chosen.tolist(), order.tolist(), strict=True)
    return MeasuredRow(figures, tuple((query, tuple(results)) for query, results in ranked))

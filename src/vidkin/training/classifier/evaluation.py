"""How well a classifier with an embedding head classifies and retrieves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vidkin._base.parts import import_part
from vidkin._base.plain_values import Result
from vidkin.datasets import LabelledSet
from vidkin.metric.losses.distances import squared_distances
from vidkin.metric.measures import (
    accuracy,
    accuracy_per_class,
    normalized_mutual_information,
    recall_at_k,
)
from vidkin.models import HeadOutputs, TwoHeadNetwork
from vidkin.training.classifier.neighbors import nearest
from vidkin.training.data.inputs import Inputs, OnItem, prepare_parts

__all__ = [
    "RECALLS",
    "ClassifierEvaluation",
    "DescribedParts",
    "RetrievalFigures",
    "describe_splits",
    "evaluate_classifier",
]

RECALLS = (1, 4, 8, 16)
"""Values of K for Recall@K."""


@dataclass(frozen=True)
class RetrievalFigures(Result):
    """How well vectors group the test items; values in [0, 1], higher is better.

    Attributes:
        recalls: Recall@K by K among the test items: whether another item of the class is among the K nearest.
        nmi: Normalized mutual information between classes and as many k-means clusters.
        nearest_label: Share of test items whose nearest training item has their class.
    """

    recalls: Mapping[int, float]
    nmi: float
    nearest_label: float


@dataclass(frozen=True)
class ClassifierEvaluation(Result):
    """Figures of a classifier in [0, 1], higher is better.

    Attributes:
        data: Name of the collection.
        items: Number of test items.
        top_1: Share of test items classified correctly (micro accuracy).
        macro: Mean of that share over the classes.
        per_class: (test items, share classified correctly) by class.
        embedding: Retrieval with the embedding head.
        penultimate: Retrieval with the penultimate layer.
        wrong: Number of test items classified incorrectly.
        explained: Share of these whose nearest training item has the predicted class; nan if there are none.
        broken: (file, cause) of items that could not be read.
    """

    data: str
    items: int
    top_1: float
    macro: float
    per_class: Mapping[str, tuple[int, float]]
    embedding: RetrievalFigures
    penultimate: RetrievalFigures
    wrong: int
    explained: float
    broken: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class DescribedParts:
    """Test and training items with all outputs of a model.

    Attributes:
        test: Test items.
        train: Training items.
        test_outputs: Outputs of the test items, in their order.
        train_outputs: Outputs of the training items, in their order.
    """

    test: Inputs
    train: Inputs
    test_outputs: HeadOutputs
    train_outputs: HeadOutputs


def describe_splits(
    model: TwoHeadNetwork,
    labelled: LabelledSet,
    *,
    query_split: str = "test",
    gallery_split: str = "train",
    cache: str | os.PathLike[str] | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> DescribedParts:
    """All outputs of a model for the items of two splits.

    Raises:
        InvalidArgumentError: A split is missing, or the model takes another kind of item.
        DatasetError: No item can be read.
    """
    test, train = prepare_parts(
        model,
        [labelled.part(query_split), labelled.part(gallery_split)],
        cache=None if cache is None else Path(cache),
        threads=threads,
        on_item=on_item,
    )
    outputs = [part.outputs(model, device=model.device) for part in (test, train)]
    return DescribedParts(test, train, *outputs)


def evaluate_classifier(parts: DescribedParts, *, seed: int = 0) -> ClassifierEvaluation:
    """Compute the figures of described items.

    Args:
        parts: Test and training items.
        seed: Seed of k-means.
    """
    labels, train_labels = parts.test.labels[:, 1], parts.train.labels[:, 1]
    logits = parts.test_outputs.logits
    counts = torch.bincount(labels)
    names = parts.test.labelled.subcategories()
    predicted = logits.argmax(dim=1)
    wrong = predicted != labels
    _, positions = nearest(parts.test_outputs.embeddings, parts.train_outputs.embeddings, 1)
    agrees = train_labels[positions[:, 0]][wrong] == predicted[wrong]
    normal = torch.nn.functional.normalize
    return ClassifierEvaluation(
        data=parts.test.labelled.name,
        items=len(labels),
        top_1=accuracy(logits, labels),
        macro=accuracy(logits, labels, average="macro"),
        per_class={
            names[number]: (int(counts[number]), share)
            for number, share in accuracy_per_class(logits, labels).items()
        },
        embedding=_retrieval(
            parts.test_outputs.embeddings, labels, parts.train_outputs.embeddings, train_labels, seed
        ),
        penultimate=_retrieval(
            normal(parts.test_outputs.pooled), labels, normal(parts.train_outputs.pooled), train_labels, seed
        ),
        wrong=int(wrong.sum()),
        explained=float(agrees.double().mean()),
        broken=tuple(
            (error.path, error.cause) for part in (parts.test, parts.train) for error in part.broken
        ),
    )


def _retrieval(
    vectors: Tensor, labels: Tensor, train: Tensor, train_labels: Tensor, seed: int
) -> RetrievalFigures:
    clustering = import_part("sklearn.cluster", extra="train")
    scores = -squared_distances(vectors, vectors)
    relevance = (labels[:, None] == labels[None, :]).long()
    valid = ~torch.eye(len(labels), dtype=torch.bool)
    recalls = {}
    for k in RECALLS:
        recall = recall_at_k(scores, relevance, k, valid=valid)
        assert not isinstance(recall, Tensor)
        recalls[k] = float(recall)
    count = min(len(labels), len(torch.unique(labels)))
    clusters = clustering.KMeans(count, n_init=3, random_state=seed).fit_predict(vectors.numpy())
    _, positions = nearest(vectors, train, 1)
    return RetrievalFigures(
        recalls,
        normalized_mutual_information(torch.from_numpy(clusters).long(), labels),
        accuracy(train_labels[positions[:, 0]], labels),
    )

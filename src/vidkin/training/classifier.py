"""Classify files with a trained classifier, find their nearest training items, and evaluate the classifier."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin._base.files import IMAGE_EXTENSIONS, PathLike, check_regular_file, write_bytes
from vidkin._base.registry import import_part
from vidkin._base.values import Result, check_at_least, check_not_negative, parse_json
from vidkin.datasets import LabelledItem, LabelledSet
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.metric.losses.base import squared_distances
from vidkin.metric.measures import accuracy, accuracy_per_class, normalized_mutual_information, recall_at_k
from vidkin.models import HeadOutputs, TwoHeadNetwork, load_model
from vidkin.training.embedding_measures import check_vectors
from vidkin.training.inputs import Inputs, OnItem, broken_files, prepare_parts, read_input

NEIGHBORS_FILE = "neighbors.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class TrainingItems:
    """N training items saved with a model.

    Attributes:
        embeddings: [N, D] unit vectors.
        labels: [N] class numbers.
        keys: Keys of the files, see :meth:`vidkin.datasets.LabelledItem.key`.
    """

    embeddings: Tensor
    labels: Tensor
    keys: tuple[str, ...]

    @classmethod
    def load(cls, folder: PathLike) -> TrainingItems:
        """Load the training items in a model's folder.

        Raises:
            InvalidArgumentError: The folder has no training items, or the file is damaged.
        """
        path = Path(folder).expanduser() / NEIGHBORS_FILE
        try:
            check_regular_file(path)
            with safe_open(os.fspath(path), framework="pt") as file:
                embeddings, labels = file.get_tensor("embeddings"), file.get_tensor("labels")
                keys = parse_json((file.metadata() or {})["keys"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise InvalidArgumentError(f"{path}: cannot be read: {error}; train the model again") from error
        damage = None
        if embeddings.ndim != 2 or labels.ndim != 1 or labels.is_floating_point() or not isinstance(keys, list):
            damage = "not a list of vectors with classes and files"
        elif len(embeddings) != len(labels) or len(labels) != len(keys):
            damage = "lists of different lengths"
        elif not bool(embeddings.isfinite().all()):
            damage = "non-finite values"
        if damage is not None:
            raise InvalidArgumentError(f"{path}: damaged: {damage}; train the model again")
        return cls(embeddings, labels, tuple(map(str, keys)))


def store_training_items(model: TwoHeadNetwork, train: Inputs, folder: PathLike, *, device: torch.device) -> None:
    """Embed the training items and write them to the model's folder.

    Raises:
        InvalidArgumentError: The folder cannot be written.
    """
    root = train.labelled.root
    tensors = {"embeddings": train.embed(model, device=device), "labels": train.labels[:, 1].contiguous()}
    keys = json.dumps([item.key(root) for item in train.labelled.items])
    path = Path(folder).expanduser() / NEIGHBORS_FILE
    try:
        write_bytes(path, save(tensors, metadata={"keys": keys}))
    except OSError as error:
        raise InvalidArgumentError(f"{path}: {error.strerror or error}") from error


@check_arguments
def nearest(queries: Tensor, gallery: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Find the squared Euclidean distances and positions [Q, count] of the nearest gallery vectors, nearest first.

    Raises:
        InvalidArgumentError: The vectors have the wrong shape, or the count is negative.
    """
    check_vectors(queries, gallery)
    check_not_negative(count=count)
    distances = squared_distances(queries, gallery)
    smallest = distances.topk(min(count, len(gallery)), dim=1, largest=False, sorted=True)
    return smallest.values, smallest.indices


@dataclass(frozen=True, slots=True)
class Neighbor(Result):
    """A training item near a file.

    Attributes:
        path: Path relative to the training data folder.
        label: Class of the training item.
        distance: Squared Euclidean distance of the embeddings, in [0, 4].
    """

    path: str
    label: str
    distance: float


@dataclass(frozen=True, slots=True)
class ClassifiedFile(Result):
    """A classifier's prediction for a file.

    Attributes:
        path: Path of the file.
        label: Predicted class.
        probability: Softmax probability of that class, in [0, 1]; not calibrated.
        others: (class, probability) of the next most likely classes, most likely first.
        neighbors: Nearest training items, nearest first.
    """

    path: Path
    label: str
    probability: float
    others: tuple[tuple[str, float], ...]
    neighbors: tuple[Neighbor, ...]


@check_arguments
def classify(
    model: PathLike, files: Sequence[PathLike], *, classes: int = 3, neighbors: int = 3, device: str = "cpu"
) -> tuple[list[ClassifiedFile], list[MediaError]]:
    """Classify files and find their nearest training items; also return the errors of files that cannot be classified.

    Args:
        model: Folder of a model of kind ``two_head``.
        files: Images or videos; for videos, an image model uses the middle frame, and a motion model the first clip.
        classes: Number of most likely classes to report, at least 1.
        neighbors: Number of training items to report, at least 0.
        device: Device of the model.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The folder contains a different kind of model.
    """
    check_at_least(1, classes=classes)
    check_at_least(0, neighbors=neighbors)
    network = load_model(model, device=device)
    if not isinstance(network, TwoHeadNetwork):
        raise InvalidArgumentError(
            f"{os.fspath(model)}: must contain a model of kind 'two_head' to classify, got {network.config.kind!r}; "
            "train one with `vidkin train two-head`"
        )
    known = TrainingItems.load(model)
    names = network.class_names
    of_classes = {*known.labels.tolist()} <= {*range(len(names))}
    if known.embeddings.shape[1] != network.dimension or not of_classes:
        raise InvalidArgumentError(
            f"{Path(model) / NEIGHBORS_FILE}: must contain this model's training items, got those of another model; "
            "train the model again"
        )
    done: list[ClassifiedFile] = []
    broken: list[MediaError] = []
    for file in map(Path, files):
        kind = "image" if file.suffix.lower() in IMAGE_EXTENSIONS else "video"
        if kind == "image" and network.config.takes_clips:
            broken.append(MediaError(file, "is an image, but the model classifies motion; use a video"))
            continue
        try:
            item = LabelledItem(path=file, category="?", group="?")
            images, _ = read_input(item, kind, network.config)
        except MediaError as error:
            broken.append(error)
            continue
        inputs = torch.tensor(images).movedim(-1, -3).float()[None] / 255
        with torch.no_grad():
            outputs = network(inputs.to(network.device))
        ordered = outputs.logits[0].float().softmax(dim=0).cpu().sort(descending=True, stable=True)
        ranked = [
            (names[position], value)
            for position, value in zip(ordered.indices.tolist(), ordered.values.tolist(), strict=True)
        ]
        distances, positions = nearest(outputs.embeddings.float().cpu(), known.embeddings, neighbors)
        done.append(
            ClassifiedFile(
                path=file,
                label=ranked[0][0],
                probability=ranked[0][1],
                others=tuple(ranked[1:classes]),
                neighbors=tuple(
                    Neighbor(known.keys[position], names[int(known.labels[position])], distance)
                    for position, distance in zip(positions[0].tolist(), distances[0].tolist(), strict=True)
                ),
            )
        )
    return done, broken


RECALLS = (1, 4, 8, 16)

"""Values of K for Recall@K."""


@dataclass(frozen=True)
class RetrievalFigures(Result):
    """Retrieval metrics of a model's vectors on the test items, in [0, 1]; higher is better.

    Attributes:
        recalls: Recall@K by K: fraction of test items with another item of the same class among the K nearest.
        nmi: Normalized mutual information between classes and k-means clusters, with one cluster per class.
        nearest_label: Fraction of test items whose nearest training item has the same class.
    """

    recalls: Mapping[int, float]
    nmi: float
    nearest_label: float


@dataclass(frozen=True)
class ClassifierEvaluation(Result):
    """Evaluation metrics of a classifier in [0, 1]; higher is better.

    Attributes:
        data: Name of the dataset.
        items: Number of test items.
        top_1: Top-1 accuracy over all test items (micro accuracy).
        macro: Mean of the accuracies of the classes (macro accuracy).
        per_class: (number of test items, accuracy) by class.
        embedding: Retrieval metrics of the embedding head.
        penultimate: Retrieval metrics of the penultimate layer.
        wrong: Number of misclassified test items.
        explained: Fraction of the misclassified items whose nearest training item has the predicted class; NaN if no
            item is misclassified.
        broken: (file, cause) for each item that could not be read.
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
    """Test and training items with a model's outputs.

    Attributes:
        test: Test items.
        train: Training items.
        test_outputs: Outputs for the test items, in the same order.
        train_outputs: Outputs for the training items, in the same order.
    """

    test: Inputs
    train: Inputs
    test_outputs: HeadOutputs
    train_outputs: HeadOutputs


@check_arguments
def describe_splits(
    model: TwoHeadNetwork,
    labelled: LabelledSet,
    *,
    query_split: str = "test",
    gallery_split: str = "train",
    cache: PathLike | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> DescribedParts:
    """Compute all outputs of a model for the items in two splits.

    Raises:
        InvalidArgumentError: A split is missing, or the model does not accept such items.
        DatasetError: No item can be read.
    """
    test, train = prepare_parts(
        model,
        [labelled.part(query_split), labelled.part(gallery_split)],
        cache=cache,
        threads=threads,
        on_item=on_item,
    )
    outputs = [part.outputs(model, device=model.device) for part in (test, train)]
    return DescribedParts(test, train, *outputs)


@check_arguments
def evaluate_classifier(parts: DescribedParts, *, seed: int = 0) -> ClassifierEvaluation:
    """Compute the evaluation metrics of a classifier from its outputs.

    Args:
        parts: Outputs for test and training items.
        seed: Seed for k-means.
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
            names[number]: (int(counts[number]), value) for number, value in accuracy_per_class(logits, labels).items()
        },
        embedding=retrieval_figures(
            parts.test_outputs.embeddings, labels, parts.train_outputs.embeddings, train_labels, seed
        ),
        penultimate=retrieval_figures(
            normal(parts.test_outputs.pooled), labels, normal(parts.train_outputs.pooled), train_labels, seed
        ),
        wrong=int(wrong.sum()),
        explained=float(agrees.double().mean()),
        broken=broken_files((parts.test, parts.train)),
    )


def retrieval_figures(
    vectors: Tensor, labels: Tensor, train: Tensor, train_labels: Tensor, seed: int = 0
) -> RetrievalFigures:
    """Compute the retrieval metrics of vectors.

    Args:
        vectors: [N, D] vectors of the test items.
        labels: [N] classes of the test items.
        train: [M, D] vectors of the training items.
        train_labels: [M] classes of the training items.
        seed: Seed for k-means.
    """
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

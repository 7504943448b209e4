"""Classify files with a trained classifier, and explain the result with the nearest training items."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from vidkin._base.checks import check_at_least
from vidkin._base.extensions import IMAGE_EXTENSIONS
from vidkin._base.plain_values import Result
from vidkin.datasets import LabelledItem
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.models import TwoHeadNetwork, load_model
from vidkin.training.classifier.neighbors import NEIGHBORS_FILE, TrainingItems, nearest
from vidkin.training.data.item_inputs import read_input

__all__ = ["ClassifiedFile", "Neighbor", "classify"]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Neighbor(Result):
    """A training item near a file.

    Attributes:
        path: Path relative to the folder of the training data.
        label: Class of the training item.
        distance: Squared Euclidean distance of the embeddings, in [0, 4].
    """

    path: str
    label: str
    distance: float


@dataclass(frozen=True, slots=True)
class ClassifiedFile(Result):
    """The prediction of a classifier for a file.

    Attributes:
        path: Path of the file.
        label: Predicted class.
        probability: Probability of that class in [0, 1], the softmax of the logits; not calibrated.
        others: (class, probability) of the next classes, most likely first.
        neighbors: Nearest training items, nearest first.
    """

    path: Path
    label: str
    probability: float
    others: tuple[tuple[str, float], ...]
    neighbors: tuple[Neighbor, ...]


def classify(
    model: PathLike, files: Sequence[PathLike], *, classes: int = 3, neighbors: int = 3, device: str = "cpu"
) -> tuple[list[ClassifiedFile], list[MediaError]]:
    """The class of each file with its nearest training items, and the errors of files that cannot be classified.

    Args:
        model: Folder of a model of kind ``two_head``.
        files: Images, or videos: a model of images takes their middle frame, one of motion their first clip.
        classes: Number of most likely classes to report, at least 1.
        neighbors: Number of training items to report, at least 0.
        device: Device of the model.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The folder holds a model of another kind.
    """
    check_at_least(1, classes=classes)
    check_at_least(0, neighbors=neighbors)
    network = load_model(model, device=device)
    if not isinstance(network, TwoHeadNetwork):
        raise InvalidArgumentError(
            f"{os.fspath(model)}: must hold a model of kind 'two_head' to classify, got {network.config.kind!r}; "
            "train one with `vidkin train two-head`"
        )
    known = TrainingItems.load(model)
    names = network.class_names
    of_classes = {*known.labels.tolist()} <= {*range(len(names))}
    if known.embeddings.shape[1] != network.dimension or not of_classes:
        raise InvalidArgumentError(
            f"{Path(model) / NEIGHBORS_FILE}: must hold the training items of this model, got those of another; "
            "train the model again"
        )
    done: list[ClassifiedFile] = []
    broken: list[MediaError] = []
    for file in map(Path, files):
        kind = "image" if file.suffix.lower() in IMAGE_EXTENSIONS else "video"
        if kind == "image" and network.config.takes_clips:
            broken.append(MediaError(file, "is an image, but the model classifies motion; give it a video"))
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
        shares = outputs.logits[0].float().softmax(dim=0).cpu().sort(descending=True, stable=True)
        ranked = [
            (names[position], value)
            for position, value in zip(shares.indices.tolist(), shares.values.tolist(), strict=True)
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

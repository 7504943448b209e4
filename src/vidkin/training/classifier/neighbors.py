"""The training items of a classifier, stored with it: the nearest ones explain its predictions."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from vidkin._base.atomic import write_bytes
from vidkin._base.plain_values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.distances import squared_distances
from vidkin.models import TwoHeadNetwork
from vidkin.training.data.inputs import Inputs

__all__ = ["NEIGHBORS_FILE", "TrainingItems", "nearest", "store_training_items"]

PathLike = str | os.PathLike[str]

NEIGHBORS_FILE = "neighbors.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class TrainingItems:
    """N training items as stored with a model.

    Attributes:
        embeddings: [N, D] unit vectors.
        labels: [N] class numbers.
        keys: Keys of their files, see :meth:`vidkin.datasets.LabelledItem.key`.
    """

    embeddings: Tensor
    labels: Tensor
    keys: tuple[str, ...]

    @classmethod
    def load(cls, folder: PathLike) -> TrainingItems:
        """Load the training items in a model's folder.

        Raises:
            InvalidArgumentError: The folder has none, or the file is damaged.
        """
        path = Path(folder).expanduser() / NEIGHBORS_FILE
        try:
            with safe_open(os.fspath(path), framework="pt") as file:
                embeddings, labels = file.get_tensor("embeddings"), file.get_tensor("labels")
                keys = parse_json((file.metadata() or {})["keys"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise InvalidArgumentError(f"{path}: cannot be read: {error}; train the model again") from error
        damage = None
        if (
            embeddings.ndim != 2
            or labels.ndim != 1
            or labels.is_floating_point()
            or not isinstance(keys, list)
        ):
            damage = "no list of vectors with a class and a file each"
        elif len(embeddings) != len(labels) or len(labels) != len(keys):
            damage = "lists of different lengths"
        elif not bool(embeddings.isfinite().all()):
            damage = "values that are not finite"
        if damage is not None:
            raise InvalidArgumentError(f"{path}: damaged: {damage}; train the model again")
        return cls(embeddings, labels, tuple(map(str, keys)))


def store_training_items(
    model: TwoHeadNetwork, train: Inputs, folder: PathLike, *, device: torch.device
) -> None:
    """Embed the training items and write them beside the model.

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


def nearest(queries: Tensor, gallery: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Squared Euclidean distances and places [Q, count] of the nearest gallery vectors, nearest first."""
    distances = squared_distances(queries, gallery)
    smallest = distances.topk(min(count, len(gallery)), dim=1, largest=False, sorted=True)
    return smallest.values, smallest.indices

"""The contract of a row in the comparison of images: a method fitted to training images that measures distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidkin.datasets import LabelledSet, read_item

__all__ = ["BACKBONE", "ImagePart", "ImageRow", "ImageTask"]

BACKBONE = "timm:mobilenetv2_100?pad_type=same"
"""The default backbone: MobileNetV2, small enough for a CPU."""


@dataclass(frozen=True)
class ImagePart:
    """The items of one split, decoded once.

    Attributes:
        labelled: The items; a video is represented by its middle frame.
        size: S, side of the square images in pixels.
        fit: How images are made square, see :func:`vidkin.datasets.read_item`.
    """

    labelled: LabelledSet
    size: int
    fit: str = "crop"

    def __len__(self) -> int:
        return len(self.labelled)

    @cached_property
    def images(self) -> NDArray[np.uint8]:
        """[N, S, S, 3] RGB."""
        kind = self.labelled.kind
        frames = None if kind == "image" else 1
        rows = [
            read_item(item, kind, size=self.size, frames=frames, fit=self.fit)  # type: ignore[arg-type]
            for item in self.labelled.items
        ]
        return np.stack([row if row.ndim == 3 else row[0] for row in rows])

    @cached_property
    def labels(self) -> Tensor:
        """[N, 2] int64 (category, subcategory); the second is the class."""
        return torch.stack([torch.from_numpy(level) for level in self.labelled.labels()], dim=1)


@dataclass(frozen=True)
class ImageTask:
    """A set of images, divided into training and test images.

    Attributes:
        name: Name of the set.
        train: Images for fitting, and the gallery for classification by neighbors.
        test: Images for evaluation.
        weights: Weights of the backbone, for rows that start from it; None downloads them from the hub.
        steps: Number of optimizer steps of rows that train.
        learning_rate: Learning rate of rows that fine-tune a network.
        backbone: Network from which rows of networks start.
        frozen_batch_norm: Whether its batch norms are frozen, as required for the default network, whose batch norms
            are folded into its convolutions.
        device: Device of networks: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``.
    """

    name: str
    train: ImagePart
    test: ImagePart
    weights: Path | None = None
    steps: int = 300
    # The paper's .01 ends at chance level if a batch has 8 of 81 classes: each step raises the logits of its classes
    # along the common direction of all features, the next step undoes it, and the features shrink to zero.
    learning_rate: float = 0.002
    backbone: str = BACKBONE
    frozen_batch_norm: bool = True
    device: str = "cpu"

    @property
    def classes(self) -> int:
        """C, number of classes."""
        return len(self.train.labelled.subcategories())


@dataclass(frozen=True)
class ImageRow:
    """A row of the comparison.

    Attributes:
        name: Name in tables, for example ``classical: HOG`` or ``two-head, semi-hard``.
        fit: Function of (task, seed) that returns the method fitted to ``task.train``; it must not use ``task.test``.
            The method has ``describe(images)``, from [N, S, S, 3] uint8 to any form that it can compare (this gives the
            time per image), and ``distances(queries, gallery)``, [Q, G] of at least 0, between two such results. A
            method that classifies also has ``classify(described)``, the numbers of the classes [N]; otherwise the
            nearest training image gives the class.
        group: Rows of a group are shown together: ``classical``, ``network`` or ``learned``.
        is_seeded: Whether the seed has an effect; other rows are run once.
        settings: Everything besides the name that affects the row's figures; stored results with other settings are not
            used.
    """

    name: str
    fit: Callable[[ImageTask, int], Any]
    group: str = "learned"
    is_seeded: bool = True
    settings: tuple[Any, ...] = ()

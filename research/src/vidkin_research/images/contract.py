"""Rows of the image comparison: methods that are fitted to training images and compute distances."""

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
    """The images of one split, decoded once.

    Attributes:
        labelled: Items of the split; a video is represented by its middle frame.
        size: S, side of the square images in pixels.
        fit: How images are fitted to the square, see :func:`vidkin.datasets.read_item`.
    """

    labelled: LabelledSet
    size: int
    fit: str = "crop"

    def __len__(self) -> int:
        return len(self.labelled)

    @cached_property
    def images(self) -> NDArray[np.uint8]:
        """RGB images [N, S, S, 3]."""
        kind = self.labelled.kind
        frames = None if kind == "image" else 1
        rows = [
            read_item(item, kind, size=self.size, frames=frames, fit=self.fit)  # type: ignore[arg-type]
            for item in self.labelled.items
        ]
        return np.stack([row if row.ndim == 3 else row[0] for row in rows])

    @cached_property
    def labels(self) -> Tensor:
        """Labels [N, 2] int64: category and subcategory, which is the class."""
        return torch.stack([torch.from_numpy(level) for level in self.labelled.labels()], dim=1)


@dataclass(frozen=True)
class ImageTask:
    """An image set, split into training and test images.

    Attributes:
        name: Name of the set.
        train: Images for fitting, and the gallery for nearest-neighbor classification.
        test: Images for evaluation.
        weights: Backbone weights for rows that start from the backbone; None downloads them from the hub.
        steps: Number of optimizer steps of rows that train.
        learning_rate: Learning rate of rows that fine-tune a network.
        backbone: Network that the network rows start from.
        frozen_batch_norm: Whether its batch norms are frozen, as required for the default network, where they are
            folded into the convolutions.
        device: Device for networks: ``cpu``, ``cuda``, ``cuda:1`` or ``auto``.
    """

    name: str
    train: ImagePart
    test: ImagePart
    weights: Path | None = None
    steps: int = 300
    # The paper's 0.01 ends at chance level if a batch has 8 of 81 classes: each step raises the logits of its classes
    # along the direction that all features share, the next step undoes this, and the features shrink to zero.
    learning_rate: float = 0.002
    backbone: str = BACKBONE
    frozen_batch_norm: bool = True
    device: str = "cpu"

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return len(self.train.labelled.subcategories())


@dataclass(frozen=True)
class ImageRow:
    """A row of the comparison.

    Attributes:
        name: Name in tables, for example ``classical: HOG`` or ``two-head, semi-hard``.
        fit: Function of (task, seed) that returns the method fitted to ``task.train``; it must not use ``task.test``.
            The method has ``describe(images)``, which converts [N, S, S, 3] uint8 to any form that it can compare (and
            is timed), and ``distances(queries, gallery)``, which returns [Q, G] for two such results. A classifier also
            has ``classify(described)``, which returns class indices [N]; otherwise the nearest training image
            determines the class.
        group: Group of rows shown together: ``classical``, ``network`` or ``learned``.
        is_seeded: Whether the seed has an effect; other rows are run once.
        settings: Everything besides the name that affects the row's results; stored results with other settings are not
            reused.
    """

    name: str
    fit: Callable[[ImageTask, int], Any]
    group: str = "learned"
    is_seeded: bool = True
    settings: tuple[Any, ...] = ()

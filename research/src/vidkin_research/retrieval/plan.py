"""Settings and stored runs of a comparison."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from vidkin._base.values import short_digest
from vidkin.errors import InvalidArgumentError
from vidkin.models.config import Trainable
from vidkin_research.retrieval.methods import METHODS, method_named
from vidkin_research.retrieval.sets import comparison_set
from vidkin_research.retrieval.training import RunSchedule, VolumeSettings

__all__ = ["ComparisonPlan", "ComparisonRun"]

# Part of the protocol, so that runs stored before a measurement was added are repeated.
_MEASURED = "test and gallery quadlets"


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """Settings of the comparison.

    Every method gets the same steps and learning rates, and every method except 3D-CNN the same frame network, head and
    number of items per step. 3D-CNN learns from pixels: by default with an eighth of its width, frames of 32 pixels and
    an eighth of the items per step, because its clips cost about forty times as much.

    Attributes:
        sets: Names of collections, see `COMPARISON_SETS`.
        methods: Names of methods, see `METHODS`; 3D-CNN is left out for images.
        seeds: Seeds of weights and draws.
        schedule: Steps and other settings; its learning rate is ignored.
        learning_rates: All seeds are run at the first. The first seed is also run at all other rates; then all seeds
            are run at the rate with the best QP on the validation split.
        backbone: The frame network.
        trainable: ``head``: the frame network is frozen and its features are computed once. ``all``: it is trained as
            well, as published, from pixels; ``schedule.head_factor`` is the factor by which the head learns faster.
        hidden: Number of units of the fully connected layer.
        units: Number of units of the LSTM (for images of a second layer), the length of an embedding.
        frames: Number of frames in a clip.
        size: Pixels along each side of the frame network's input; None: the set's default.
        volume: Size of 3D-CNN.
        device: Device of networks: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``. Not part of the protocol.

    Raises:
        InvalidArgumentError: A name is unknown or repeated, or there is no seed, set, method or learning rate.
    """

    sets: tuple[str, ...]
    methods: tuple[str, ...] = tuple(method.name for method in METHODS)
    seeds: tuple[int, ...] = (0, 1, 2)
    schedule: RunSchedule = field(default_factory=RunSchedule)
    learning_rates: tuple[float, ...] = (1e-3, 3e-3, 3e-4, 1e-4)
    backbone: str = "timm:mobilenetv2_100?pad_type=same&mean=0.5&std=0.5"
    trainable: Trainable = "head"
    hidden: int = 128
    units: int = 128
    frames: int = 10
    size: int | None = None
    volume: VolumeSettings = field(default_factory=VolumeSettings)
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in self.sets:
            comparison_set(name)
        for name in self.methods:
            method_named(name)
        for what in ("sets", "methods", "seeds", "learning_rates"):
            values = getattr(self, what)
            if not values:
                raise InvalidArgumentError(f"{what} must have at least one entry, got none")
            if len(set(values)) < len(values):
                # Duplicates would count as additional trainings.
                raise InvalidArgumentError(f"{what} must be distinct, got {', '.join(map(str, values))}")
        for rate in self.learning_rates:
            if not (rate > 0 and math.isfinite(rate)):
                raise InvalidArgumentError(f"a learning rate must be a number above 0, got {rate}")

    def protocol(self) -> str:
        """Digest of all settings that affect the result of a run, so that other runs are not mixed in."""
        schedule = asdict(replace(self.schedule, learning_rate=0.0))
        later = {name: schedule.pop(name) for name in ("optimizer", "head_factor")}
        later |= {"trainable": self.trainable, "size": self.size, "volume": asdict(self.volume)}
        usual = RunSchedule()
        plain: dict[str, Any] = {"optimizer": usual.optimizer, "head_factor": usual.head_factor}
        plain |= {"trainable": "head", "size": None, "volume": asdict(VolumeSettings())}
        parts = [_MEASURED, schedule, self.backbone, self.hidden, self.units, self.frames]
        # Later settings only count if they differ from the earlier fixed values, so that older runs remain valid.
        return short_digest(parts if later == plain else [*parts, later])


@dataclass(frozen=True, kw_only=True)
class ComparisonRun:
    """A stored run: one method on one collection with one seed.

    Attributes:
        set: Name of the collection.
        method: Name of the method.
        seed: Seed of weights and draws.
        learning_rate: Learning rate of the training; 0 for a method that is not trained.
        validation: ``qp`` and ``qp_gallery`` of the validation split, the only basis of choices.
        test: Measures of the test split, from `score_retrieval`.
        training: The fields of `TrainedMethod`.
        collapsed: Whether nearly all embeddings ended at one point.
        ranked: Numbers of the nearest training items by number of the test item, for the image.
    """

    set: str
    method: str
    seed: int
    learning_rate: float
    validation: dict[str, float]
    test: dict[str, float]
    training: dict[str, float | None]
    collapsed: bool
    ranked: dict[str, list[int]]

    @property
    def choice(self) -> float:
        """The figure by which learning rates and methods are chosen: QP on the validation split.

        Over test quadlets, whose items are all in the validation split; if there are none, over gallery quadlets.
        """
        figure = self.validation["qp"]
        return self.validation["qp_gallery"] if math.isnan(figure) else figure

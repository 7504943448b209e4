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

# Part of the protocol, so that runs stored before a metric was added are repeated.
_MEASURED = "test and gallery quadlets"


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """Settings of the comparison.

    Every method gets the same steps and learning rates; every method except 3D-CNN also gets the same frame network,
    head and number of items per step. 3D-CNN learns from pixels, by default with an eighth of its width, 32 x 32 frames
    and an eighth of the items per step, because its clips cost about forty times as much.

    Attributes:
        sets: Names of collections, see `COMPARISON_SETS`.
        methods: Names of methods, see `METHODS`; 3D-CNN is left out for images.
        seeds: Random seeds for weights and sampling.
        schedule: Steps and other settings; its learning rate is ignored.
        learning_rates: All seeds run at the first rate. The first seed also runs at all other rates; then all seeds run
            at the rate with the best QP on the validation split.
        backbone: The frame network.
        trainable: ``head``: the frame network is frozen and its features are computed once. ``all``: it is also trained
            from pixels, as published; ``schedule.head_factor`` is the learning rate of the head relative to it.
        hidden: Number of units in the fully connected layer.
        units: Number of units in the LSTM (in a second layer for images), which is the embedding size.
        frames: Number of frames per clip.
        size: Side in pixels of the frame network's input; None for the set's default.
        volume: Size of 3D-CNN.
        device: Device for networks: ``cpu``, ``cuda``, ``cuda:1`` or ``auto``. Not part of the protocol.

    Raises:
        InvalidArgumentError: A name is unknown or repeated, or there are no seeds, sets, methods or learning rates.
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
                # Duplicates would count as additional runs.
                raise InvalidArgumentError(f"{what} must be distinct, got {', '.join(map(str, values))}")
        for rate in self.learning_rates:
            if not (rate > 0 and math.isfinite(rate)):
                raise InvalidArgumentError(f"a learning rate must be a number above 0, got {rate}")

    def protocol(self) -> str:
        """Return a digest of all settings that affect a run, so that runs with other settings are not reused."""
        schedule = asdict(replace(self.schedule, learning_rate=0.0))
        later = {name: schedule.pop(name) for name in ("optimizer", "head_factor")}
        later |= {"trainable": self.trainable, "size": self.size, "volume": asdict(self.volume)}
        usual = RunSchedule()
        plain: dict[str, Any] = {"optimizer": usual.optimizer, "head_factor": usual.head_factor}
        plain |= {"trainable": "head", "size": None, "volume": asdict(VolumeSettings())}
        parts = [_MEASURED, schedule, self.backbone, self.hidden, self.units, self.frames]
        # Settings added later only count if they differ from the earlier fixed values, so older runs remain valid.
        return short_digest(parts if later == plain else [*parts, later])


@dataclass(frozen=True, kw_only=True)
class ComparisonRun:
    """A stored run: one method on one collection with one seed.

    Attributes:
        set: Name of the collection.
        method: Name of the method.
        seed: Random seed for weights and sampling.
        learning_rate: Learning rate of the run; 0 for a method that is not trained.
        validation: ``qp`` and ``qp_gallery`` on the validation split, the only basis for choices.
        test: Measures on the test split, from `score_retrieval`.
        training: The fields of `TrainedMethod`.
        collapsed: Whether nearly all embeddings have collapsed to one point.
        ranked: Indices of the nearest training items by index of the test item, for the image.
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
        """QP on the validation split, by which learning rates and methods are chosen.

        Computed over test quadlets, whose items are all in the validation split; if there are none, over gallery
        quadlets.
        """
        figure = self.validation["qp"]
        return self.validation["qp_gallery"] if math.isnan(figure) else figure

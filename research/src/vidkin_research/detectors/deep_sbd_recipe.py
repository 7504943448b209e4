"""Recipes of DeepSBD: ``[segments]`` configures training, ``[model]`` the network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vidkin._base.toml import check_names, from_table
from vidkin._base.values import check_at_least, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig
from vidkin_research.detectors.deep_sbd_rules import CLASSES, SEGMENT

__all__ = ["SegmentPlan", "SegmentRecipe", "parse_segment_recipe"]

_FIXED: Mapping[str, Any] = {
    "kind": "deep_sbd",
    "frames": SEGMENT,
    "classes": len(CLASSES),
    "trainable": "all",
}
_DEFAULTS: Mapping[str, Any] = {"fit": "stretch", "size": 112, "batch_norm": True}


@dataclass(frozen=True, kw_only=True)
class SegmentRecipe:
    """How the network of DeepSBD is trained, and which classifier it uses.

    Attributes:
        classifier: ``softmax``, the network's own classifier, or ``svm``, a linear SVM on its second fully connected
            layer.
        steps: Number of optimizer steps.
        batch: Number of segments per step.
        learning_rate: Highest learning rate of the cycle, above 0.
        weight_decay: Weight decay of AdamW, at least 0.
        memory: GiB of images to keep; others are decoded again whenever they are drawn.
        seed: Seed of initial weights, the choice of segments and their random changes.
    """

    classifier: Literal["softmax", "svm"] = "softmax"
    steps: int = 3000
    batch: int = 24
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4
    memory: float = 4.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("classifier", self.classifier, ("softmax", "svm"))
        check_at_least(0, steps=self.steps, seed=self.seed)
        check_at_least(1, batch=self.batch)
        numbers = (self.learning_rate, self.weight_decay, self.memory)
        if not (self.learning_rate > 0 and self.weight_decay >= 0 and self.memory >= 0) or not all(
            math.isfinite(number) for number in numbers
        ):
            raise InvalidArgumentError(
                "learning_rate must be above 0, weight_decay and memory at least 0, and all finite, "
                f"got {self.learning_rate}, {self.weight_decay} and {self.memory}"
            )


@dataclass(frozen=True, kw_only=True)
class SegmentPlan:
    """A whole recipe: training and network.

    Attributes:
        segments: Batches, steps and classifier.
        model: Configuration of kind ``deep_sbd``; width 1 and size 112 are the published values.
    """

    segments: SegmentRecipe
    model: EncoderConfig


def parse_segment_recipe(content: Mapping[str, Any]) -> SegmentPlan:
    """Parse and check the content of a TOML recipe.

    Raises:
        InvalidArgumentError: A setting is unknown, out of range, or not a setting of DeepSBD.
    """
    check_names(content, ("segments", "model"), "recipe")
    given = content.get("model", {})
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"[model] must be a table of settings, got {given!r}")
    for name, needed in _FIXED.items():
        if given.get(name, needed) != needed:
            raise InvalidArgumentError(f"model.{name} must be {needed!r} for DeepSBD, got {given[name]!r}")
    model = EncoderConfig.from_mapping({**_DEFAULTS, **given, **_FIXED})
    return SegmentPlan(
        segments=from_table(SegmentRecipe, content.get("segments", {}), "segments"), model=model
    )

"""Recipes of the learned detector: ``[shots]`` configures training, ``[model]`` the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vidkin._base.toml_tables import check_names
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig
from vidkin.shots.learned.training.head import ShotRecipe

__all__ = ["ShotPlan", "parse_shot_recipe"]

_DEFAULTS: Mapping[str, Any] = {"kind": "clip", "trainable": "head", "fit": "stretch"}


@dataclass(frozen=True, kw_only=True)
class ShotPlan:
    """A whole recipe: training and network.

    Attributes:
        shots: Loss, batches and number of steps, and the rule for cuts.
        model: Configuration of the clip encoder; ``trainable`` says whether its frame network is trained, too, and
            ``frames`` is the window.
        weights: File with the weights of the frame network, see :func:`vidkin.models.build_model`; empty: weights from
            the hub, or random ones for ``small``.
    """

    shots: ShotRecipe
    model: EncoderConfig
    weights: str = ""


def parse_shot_recipe(content: Mapping[str, Any]) -> ShotPlan:
    """Parse and check the content of a TOML recipe.

    Args:
        content: ``[shots]`` holds the fields of `ShotRecipe`; ``[model]`` those of
            :class:`vidkin.models.EncoderConfig` (``kind`` is ``clip``, ``frames`` the window) and ``weights``.

    Raises:
        InvalidArgumentError: A setting is unknown or out of range.
    """
    check_names(content, ("shots", "model"), "recipe")
    shots = ShotRecipe.from_mapping(content.get("shots", {}))
    given = content.get("model", {})
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"[model] must be a table of settings, got {given!r}")
    model = {**_DEFAULTS, "frames": shots.window, **given}
    weights = model.pop("weights", "")
    if not isinstance(weights, str):
        raise InvalidArgumentError(f"model.weights must be text, got {weights!r}")
    for name, needed in (("kind", "clip"), ("frames", shots.window)):
        if model[name] != needed:
            raise InvalidArgumentError(
                f"model.{name} must be {needed!r} to train on windows of {shots.window} frames, got {model[name]!r}"
            )
    return ShotPlan(shots=shots, model=EncoderConfig.from_mapping(model), weights=weights)

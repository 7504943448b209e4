"""Recipes for metrics of shots as TOML: ``[shots]`` says how to train, ``[model]`` what."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vidkin._base.tables import check_names
from vidkin._base.toml import format_toml
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig
from vidkin.shots.learned.training import ShotRecipe

__all__ = ["ShotPlan", "load_shot_recipe", "show_shot_recipe"]

_DEFAULTS: Mapping[str, Any] = {"kind": "clip", "trainable": "head", "fit": "stretch"}


@dataclass(frozen=True, kw_only=True)
class ShotPlan:
    """A metric for shots to be trained.

    Attributes:
        shots: How.
        model: The clip encoder; its frame network stays as it is, and its ``frames`` are the window.
        weights: Of the frame network, see :func:`vidkin.models.build_model`; empty: from the hub, or fresh for
            ``small``.
    """

    shots: ShotRecipe
    model: EncoderConfig
    weights: str = ""


def load_shot_recipe(source: str | os.PathLike[str] | Mapping[str, Any]) -> ShotPlan:
    """Read and check a recipe.

    Args:
        source: A TOML file, or its content as a mapping. ``[shots]`` holds the fields of `ShotRecipe`; ``[model]``
            those of :class:`vidkin.models.EncoderConfig` (``kind`` is ``clip``, ``trainable`` is ``head``, and
            ``frames`` the window) and ``weights``.

    Raises:
        InvalidArgumentError: There is no such file, it is no TOML, or a setting is unknown or not allowed.
    """
    content = source if isinstance(source, Mapping) else _read(Path(source).expanduser())
    check_names(content, ("shots", "model"), "recipe")
    shots = ShotRecipe.from_mapping(content.get("shots", {}))
    model = {**_DEFAULTS, "frames": shots.window, **content.get("model", {})}
    weights = model.pop("weights", "")
    if not isinstance(weights, str):
        raise InvalidArgumentError(f"model.weights is {weights!r}, it must be text")
    for name, needed in (("kind", "clip"), ("trainable", "head"), ("frames", shots.window)):
        if model[name] != needed:
            raise InvalidArgumentError(
                f"model.{name} is {model[name]!r}; a metric of shots is trained from cached features of windows of "
                f"{shots.window} frames, which needs {needed!r}"
            )
    return ShotPlan(shots=shots, model=EncoderConfig.from_mapping(model), weights=weights)


def show_shot_recipe(plan: ShotPlan) -> str:
    """The recipe as TOML with every default visible; :func:`load_shot_recipe` reads it back to an equal plan."""
    shots = {entry.name: getattr(plan.shots, entry.name) for entry in fields(plan.shots)}
    model = {entry.name: getattr(plan.model, entry.name) for entry in fields(plan.model)}
    return format_toml({"shots": shots, "model": {**model, "weights": plan.weights}})


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgumentError(f"the recipe {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path} is no TOML: {error}") from error

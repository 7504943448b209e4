"""Recipes of the learned detector as TOML: ``[shots]`` tells how to train, ``[model]`` what."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vidkin._base.toml import format_toml, parse_toml
from vidkin._base.toml_tables import check_names
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig
from vidkin.shots.learned.training import ShotRecipe

__all__ = ["ShotPlan", "load_shot_recipe", "show_shot_recipe"]

_DEFAULTS: Mapping[str, Any] = {"kind": "clip", "trainable": "head", "fit": "stretch"}


@dataclass(frozen=True, kw_only=True)
class ShotPlan:
    """A whole recipe: how to train, and what.

    Attributes:
        shots: Loss, batches and number of steps.
        model: The clip encoder; its frame network is not trained, and its ``frames`` are the window.
        weights: File with the weights of the frame network, see :func:`vidkin.models.build_model`; empty: from the hub,
            or random for ``small``.
    """

    shots: ShotRecipe
    model: EncoderConfig
    weights: str = ""


def load_shot_recipe(source: str | os.PathLike[str] | Mapping[str, Any]) -> ShotPlan:
    """The recipe in a file or mapping, checked.

    Args:
        source: A TOML file, or its content as a mapping. ``[shots]`` holds the fields of `ShotRecipe`; ``[model]``
            those of :class:`vidkin.models.EncoderConfig` (``kind`` is ``clip``, ``trainable`` is ``head``, and
            ``frames`` the window) and ``weights``.

    Raises:
        InvalidArgumentError: The file cannot be read or is not TOML, or a setting is unknown or out of range.
    """
    content = source if isinstance(source, Mapping) else _read(Path(source).expanduser())
    check_names(content, ("shots", "model"), "recipe")
    shots = ShotRecipe.from_mapping(content.get("shots", {}))
    model = {**_DEFAULTS, "frames": shots.window, **content.get("model", {})}
    weights = model.pop("weights", "")
    if not isinstance(weights, str):
        raise InvalidArgumentError(f"model.weights must be text, got {weights!r}")
    for name, needed in (("kind", "clip"), ("trainable", "head"), ("frames", shots.window)):
        if model[name] != needed:
            raise InvalidArgumentError(
                f"model.{name} must be {needed!r} to train on cached features of windows of {shots.window} frames, "
                f"got {model[name]!r}"
            )
    return ShotPlan(shots=shots, model=EncoderConfig.from_mapping(model), weights=weights)


def show_shot_recipe(plan: ShotPlan) -> str:
    """The recipe as TOML with every default visible; :func:`load_shot_recipe` reads it back to an equal plan."""
    shots = {entry.name: getattr(plan.shots, entry.name) for entry in fields(plan.shots)}
    model = {entry.name: getattr(plan.model, entry.name) for entry in fields(plan.model)}
    return format_toml({"shots": shots, "model": {**model, "weights": plan.weights}})


def _read(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgumentError(f"{path}: the recipe cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: not TOML: {error}") from error

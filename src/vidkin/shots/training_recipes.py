"""Recipes of detectors by name, file or content, for every method of `vidkin train-shots`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from vidkin._base.checks import check_choice
from vidkin._base.toml import format_toml, parse_toml
from vidkin.errors import InvalidArgumentError
from vidkin.shots.baselines.deep_sbd.recipe import SegmentPlan, parse_segment_recipe
from vidkin.shots.learned.training.recipes import ShotPlan, parse_shot_recipe

__all__ = [
    "SHOT_METHODS",
    "ShotMethod",
    "available_shot_recipes",
    "load_shot_recipe",
    "read_shot_recipe",
    "show_shot_recipe",
]

ShotMethod = Literal["learned", "deepsbd"]
"""``learned``: a metric on labeled shots, and a rule on its curve. ``deepsbd``: a 3-D CNN on segments."""

SHOT_METHODS: tuple[ShotMethod, ...] = get_args(ShotMethod)

_DEFAULT: Mapping[ShotMethod, str] = {"learned": "extended", "deepsbd": "deepsbd"}


def available_shot_recipes() -> tuple[str, ...]:
    """Names of the recipes that come with the package, sorted."""
    folder = resources.files("vidkin.shots") / "data"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_shot_recipe(
    source: str | os.PathLike[str] | Mapping[str, Any] | None = None, *, method: ShotMethod | None = None
) -> ShotPlan | SegmentPlan:
    """Load a recipe, checked and with all defaults filled in.

    Args:
        source: A TOML file, the name of a recipe that comes with the package, or its content as a mapping; None: the
            default recipe of the method.
        method: ``learned`` or ``deepsbd``; None: the method of the recipe, or ``learned`` if it names none.

    Raises:
        InvalidArgumentError: The recipe does not exist, belongs to another method or is not TOML, or a setting is
            unknown or out of range.
    """
    if method is not None:
        check_choice("method", method, SHOT_METHODS)
    content = read_shot_recipe(_DEFAULT[method or "learned"] if source is None else source)
    own_method: ShotMethod = "deepsbd" if "segments" in content else "learned"
    if method is not None and method != own_method:
        raise InvalidArgumentError(
            f"the recipe is of method {own_method!r}, got method {method!r}; choose one of the recipes "
            f"{', '.join(available_shot_recipes())}, or leave out one of the two"
        )
    return parse_segment_recipe(content) if own_method == "deepsbd" else parse_shot_recipe(content)


def read_shot_recipe(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """The content of a recipe as written, not checked.

    Raises:
        InvalidArgumentError: There is no such recipe, or it is not TOML.
    """
    if isinstance(source, Mapping):
        return dict(source)
    path = Path(source).expanduser()
    try:
        if path.is_file():
            return parse_toml(path.read_text(encoding="utf-8"))
        if os.fspath(source) in available_shot_recipes():
            text = (resources.files("vidkin.shots") / "data" / f"{source}.toml").read_text("utf-8")
            return parse_toml(text)
    except OSError as error:
        raise InvalidArgumentError(f"{path}: the recipe cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: not TOML: {error}") from error
    raise InvalidArgumentError(
        f"{os.fspath(source)!r} is not a recipe; choose a TOML file, or one of {', '.join(available_shot_recipes())}"
    )


def show_shot_recipe(plan: ShotPlan | SegmentPlan) -> str:
    """The recipe as TOML with every default visible; :func:`load_shot_recipe` reads it back to an equal plan."""
    model = {entry.name: getattr(plan.model, entry.name) for entry in fields(plan.model)}
    if isinstance(plan, SegmentPlan):
        own = {entry.name: getattr(plan.segments, entry.name) for entry in fields(plan.segments)}
        return format_toml({"segments": own, "model": model})
    shots = {entry.name: getattr(plan.shots, entry.name) for entry in fields(plan.shots)}
    return format_toml({"shots": shots, "model": {**model, "weights": plan.weights}})

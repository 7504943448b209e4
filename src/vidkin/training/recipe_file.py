"""Recipe files: read TOML with checks and defaults, and write it with descriptions of the settings."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from vidkin._base.arguments import check_arguments
from vidkin._base.registry import parse_name
from vidkin._base.toml import check_names, format_toml, from_table, parse_toml, read_toml
from vidkin._base.values import describe_settings
from vidkin.datasets.augmentation import EditSettings, PairSettings, WarpSettings
from vidkin.datasets.collections import find_reader
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig
from vidkin.models.config import ComparatorConfig
from vidkin.training.clip_data import COMPARATOR_CALLS
from vidkin.training.clip_views import clip_settings, describe_clip_settings
from vidkin.training.image_set import ImageSettings
from vidkin.training.objectives import available_objectives, find_loss, settle_parameters
from vidkin.training.recipe import DataRecipe, ObjectiveRecipe, Recipe, ScheduleRecipe, ValidationRecipe
from vidkin.training.unlabeled import UnlabeledData


@check_arguments
def describe_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return the descriptions of all settings from their docstrings, with the table structure of a recipe file."""
    described = describe_settings(Recipe)
    model = describe_settings(ComparatorConfig if recipe.is_comparator else EncoderConfig)
    if recipe.is_comparator:
        options: Mapping[str, Any] = describe_clip_settings()
    elif recipe.data.kind == "unlabeled":
        edits: Mapping[str, Any] = {
            **describe_settings(EditSettings),
            "warp": describe_settings(WarpSettings),
        }
        options = {
            **describe_settings(PairSettings),
            "scene_images": describe_settings(UnlabeledData)["scene_images"],
            "neighbor_seconds": describe_settings(ImageSettings)["neighbor_seconds"],
            "plain": edits,
            "heavy": edits,
        }
    else:
        options = describe_settings(find_reader(recipe.data.reader))
    return {
        "name": described.get("name", ""),
        "data": {**describe_settings(DataRecipe), "options": options},
        "model": {**model, **{name: described.get(name, "") for name in ("weights", "whitening")}},
        "objective": [_describe_objective(part) for part in recipe.objectives],
        "schedule": describe_settings(ScheduleRecipe),
        "validation": describe_settings(ValidationRecipe),
    }


def _describe_objective(part: ObjectiveRecipe) -> Mapping[str, str]:
    make = find_loss(part.name).make
    # Options are documented in the loss class or in the function that computes the loss.
    computed: Callable[..., Any] | None = getattr(make, "compute", None)
    options = {} if computed is None else describe_settings(computed)
    return {**options, **describe_settings(make), **describe_settings(ObjectiveRecipe)}


# Model settings that a recipe must not contain, because they are derived from the data or measured.
_DERIVED = ("classes", "unrelated")

_FILES = ("weights", "whitening")

_TABLES = ("name", "data", "model", "objective", "schedule", "validation")

# Table in a GPU recipe with the settings, by path as in `--set`, that make it trainable on a CPU.
_REDUCED = "reduced"


@check_arguments
def has_reduced_form(name: str) -> bool:
    """Whether an included recipe has a table ``[reduced]``."""
    if name not in available_recipes():
        return False
    file = resources.files("vidkin.training") / "recipes" / f"{name}.toml"
    return _REDUCED in parse_toml(file.read_text("utf-8"))


def available_recipes() -> tuple[str, ...]:
    """Return the sorted names of the included recipes."""
    folder = resources.files("vidkin.training") / "recipes"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


@check_arguments
def load_recipe(source: str | os.PathLike[str] | Mapping[str, Any], *, reduced: bool = False) -> Recipe:
    """Load a recipe, check it, and fill in all defaults.

    Args:
        source: TOML file, name of an included recipe, or content of a recipe as a mapping.
        reduced: Apply the settings in the recipe's table ``[reduced]``, which make a GPU recipe trainable on a CPU.

    Raises:
        InvalidArgumentError: The recipe does not exist or is not valid TOML, a setting is unknown or not allowed, or
            ``reduced`` is set for a recipe without this table.
    """
    if isinstance(source, Mapping):
        return _parse(take_reduced(source, "recipe", reduced=reduced), "recipe")
    path = Path(source).expanduser()
    try:
        if path.is_file():
            document = read_toml(path, follow_links=True)
        elif os.fspath(source) in available_recipes():
            shipped = resources.files("vidkin.training") / "recipes" / f"{source}.toml"
            document = parse_toml(shipped.read_text("utf-8"))
        else:
            raise InvalidArgumentError(
                f"{os.fspath(source)!r} is not a recipe; choose a TOML file, or one of {', '.join(available_recipes())}"
            )
        return _parse(take_reduced(document, path.stem, reduced=reduced), path.stem)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise InvalidArgumentError(f"{path}: cannot be read: {error.strerror or error}") from error


def take_reduced(document: Mapping[str, Any], name: str, *, reduced: bool) -> dict[str, Any]:
    """Return the document without its table ``[reduced]``, after applying its settings if ``reduced``.

    Raises:
        InvalidArgumentError: ``reduced`` is set for a recipe without this table.
    """
    tables: dict[str, Any] = _drop_none(document)
    changes = tables.pop(_REDUCED, None)
    if not reduced:
        return tables
    if not isinstance(changes, Mapping) or not changes:
        raise InvalidArgumentError(
            f"recipe {name!r} has no table [{_REDUCED}]; train without --reduced, or change settings with --set"
        )
    for path, value in changes.items():
        try:
            override_setting(tables, path, value)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"[{_REDUCED}] {error}") from None
    return tables


def override_setting(tables: dict[str, Any], path: str, value: Any) -> None:
    """Set a value in the tables of a recipe.

    Args:
        tables: Result of :func:`recipe_tables`, or the content of a recipe file.
        path: Path of the setting, such as ``schedule.steps``; ``objective.c`` is a setting of the first objective, and
            ``objective.1.c`` of the second. A new ``objective.name`` removes the settings of the previous loss except
            its weight.
        value: The new value.

    Raises:
        InvalidArgumentError: There is no such table or objective.
    """
    parts = path.split(".")
    target: Any = tables
    if parts[0] == "objective":
        which = int(parts.pop(1)) if len(parts) > 2 and parts[1].isdigit() else 0
        if which >= len(tables["objective"]):
            raise InvalidArgumentError(
                f"{path!r}: there is no objective {which}; the recipe has {len(tables['objective'])}, counted from 0"
            )
        target, parts = tables["objective"][which], parts[1:]
        if parts == ["name"]:
            weight = target.get("weight", 1.0)
            target.clear()
            target["weight"] = weight
    for part in parts[:-1]:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise InvalidArgumentError(f"{path!r}: {part} is a value, not a table of settings")
    target[parts[-1]] = value


@check_arguments
def show_recipe(recipe: Recipe, *, comments: bool = True) -> str:
    """Format a recipe as TOML with all defaults; :func:`load_recipe` restores an equal recipe from it.

    Args:
        recipe: The recipe.
        comments: Whether to write a description above each setting.
    """
    return format_toml(_document(recipe), describe_recipe(recipe) if comments else None)


@check_arguments
def recipe_tables(recipe: Recipe) -> dict[str, Any]:
    """Return the tables of a recipe file with all defaults; :func:`load_recipe` restores an equal recipe from them.

    The tables are copies that the caller may change. Settings that are None are omitted.
    """
    tables: dict[str, Any] = _drop_none(_document(recipe))
    return tables


# Learning rate for the included encoder, which is smaller than the backbones that recipes are designed for and learns
# too slowly at their learning rates.
_SHIPPED_RATE = 0.01


def use_shipped_encoder(recipe: Recipe, name: str | None) -> Recipe | None:
    """Return a classifier's recipe with the encoder included in vidkin, for machines without a network connection.

    Args:
        recipe: The recipe.
        name: Name or file that the recipe was loaded from.

    Returns:
        The new recipe; None unless the recipe is an included one with its original backbone.
    """
    if recipe.model.get("kind") != "two_head" or recipe.weights or name not in available_recipes():
        return None
    shipped = load_recipe(name)
    if recipe.model.get("backbone") != shipped.model.get("backbone"):
        return None
    tables = recipe_tables(recipe)
    tables["model"]["backbone"] = "vidkin"
    if recipe.schedule.learning_rate == shipped.schedule.learning_rate:
        tables["schedule"]["learning_rate"] = _SHIPPED_RATE
    return load_recipe(tables)


def _drop_none(value: Any) -> Any:
    """Return a deep copy of tables and lists without entries that are None."""
    if isinstance(value, Mapping):
        return {name: _drop_none(inner) for name, inner in value.items() if inner is not None}
    return [_drop_none(inner) for inner in value] if isinstance(value, list | tuple) else value


def _document(recipe: Recipe) -> dict[str, Any]:
    config = recipe.comparator() if recipe.is_comparator else recipe.config()
    model = {entry.name: getattr(config, entry.name) for entry in fields(config) if entry.name not in _DERIVED}
    files = {"weights": recipe.weights, **({"whitening": recipe.whitening} if recipe.is_comparator else {})}
    return {
        "name": recipe.name,
        "data": _values(recipe.data),
        "model": {**model, **files},
        "objective": [{"name": part.name, "weight": part.weight, **part.parameters} for part in recipe.objectives],
        "schedule": _values(recipe.schedule),
        "validation": _values(recipe.validation),
    }


def _values(part: DataRecipe | ScheduleRecipe | ValidationRecipe) -> dict[str, Any]:
    values = {entry.name: getattr(part, entry.name) for entry in fields(part)}
    # Omit empty tables.
    return {name: value for name, value in values.items() if value or not isinstance(value, Mapping)}


def _parse(document: Mapping[str, Any], name: str) -> Recipe:
    check_names(document, _TABLES, "recipe")
    if "data" not in document or "objective" not in document:
        raise InvalidArgumentError("a recipe requires [data] with a source and [[objective]] with a name")
    for table in ("data", "model"):
        if not isinstance(document.get(table, {}), Mapping):
            raise InvalidArgumentError(f"[{table}] must be a table of settings, got {document[table]!r}")
    if "source" not in document["data"]:
        raise InvalidArgumentError("[data] requires a source, the folder or file of the dataset")
    model = dict(document.get("model", {}))
    files = {name: model.pop(name, "") for name in _FILES if name in model}
    for setting, value in files.items():
        if not isinstance(value, str):
            raise InvalidArgumentError(f"model.{setting} must be text, got {value!r}")
    for setting in _DERIVED:
        if setting in model:
            raise InvalidArgumentError(f"model.{setting} is derived from the data; remove it")
    objectives = document["objective"]
    if not isinstance(objectives, Mapping | list | tuple):
        raise InvalidArgumentError(f"[[objective]] must be a table with a name, got {objectives!r}")
    if not objectives:
        raise InvalidArgumentError("a recipe requires at least one [[objective]]")
    recipe = Recipe(
        name=str(document.get("name", name)),
        data=from_table(DataRecipe, document["data"], "data"),
        model=model,
        **files,
        objectives=tuple(
            _objective(part) for part in ([objectives] if isinstance(objectives, Mapping) else objectives)
        ),
        schedule=from_table(ScheduleRecipe, document.get("schedule", {}), "schedule"),
        validation=from_table(ValidationRecipe, document.get("validation", {}), "validation"),
    )
    if recipe.is_comparator:
        return _settle_comparator(recipe)
    config = recipe.config()
    _check_combination(recipe, config)
    return replace(recipe, model={name: value for name, value in config.to_mapping().items() if name not in _DERIVED})


def _settle_comparator(recipe: Recipe) -> Recipe:
    """Check the recipe of a comparator, and fill in the defaults of its clips and model."""
    config, options = recipe.comparator(), clip_settings(recipe.data.options)
    usable = [name for name in available_objectives() if find_loss(name).call in COMPARATOR_CALLS]
    for part in recipe.objectives:
        if part.name not in usable:
            raise InvalidArgumentError(
                f"the objective for a comparator must be one of {', '.join(usable)}, got {part.name!r}"
            )
    if recipe.data.kind != "unlabeled":
        raise InvalidArgumentError(f"data.kind must be 'unlabeled' for a comparator, got {recipe.data.kind!r}")
    if config.network == "none" and config.weighting in ("none", "signs"):
        raise InvalidArgumentError(
            f"model.network 'none' with model.weighting {config.weighting!r} has no weights to train; use network "
            "'cnn' or weighting 'attention'"
        )
    if parse_name(config.extractor).settings().get("fit") == "crop" and options.fit != "crop":
        raise InvalidArgumentError(
            f"data.options.fit must be 'crop', got {options.fit!r}: {config.extractor} crops the center "
            "of a frame, and training must use the same kind of images"
        )
    calls = {find_loss(part.name).call for part in recipe.objectives}
    if "frame_maps" in calls and config.weighting in ("none", "signs"):
        raise InvalidArgumentError(
            f"model.weighting must be 'attention' or 'direction' for a loss on frames, got {config.weighting!r}, which "
            "has no weights to train"
        )
    if recipe.validation.every and recipe.validation.measure not in ("auto", "map"):
        raise InvalidArgumentError(
            f"validation.measure must be 'map' for a comparator, got {recipe.validation.measure!r}"
        )
    return replace(
        recipe,
        model=config.to_mapping(),
        data=replace(recipe.data, options=asdict(options)),
        validation=replace(recipe.validation, measure="map"),
    )


def _objective(table: object) -> ObjectiveRecipe:
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        raise InvalidArgumentError(f"[[objective]] must be a table with a name, got {table!r}")
    weight = table.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
        raise InvalidArgumentError(f"objective.weight must be a number, got {weight!r}")
    parameters = {name: value for name, value in table.items() if name not in ("name", "weight")}
    return ObjectiveRecipe(
        name=table["name"],
        weight=float(weight),
        parameters=settle_parameters(table["name"], parameters),
    )


def _check_combination(recipe: Recipe, config: EncoderConfig) -> None:
    """Reject settings that are valid individually but not together."""
    for part in recipe.objectives:
        if find_loss(part.name).draw == "clips":
            raise InvalidArgumentError(
                f"objective {part.name!r} is for model.kind 'comparator', got kind {config.kind!r}"
            )
    if recipe.data.relevance != "labels" and all(
        find_loss(part.name).draw != "online_triplets" for part in recipe.objectives
    ):
        raise InvalidArgumentError(
            f"data.relevance is for the objective 'deep_ranking', got {recipe.data.relevance!r}; remove it"
        )
    if recipe.whitening:
        raise InvalidArgumentError(
            f"model.whitening is for model.kind 'comparator', got kind {config.kind!r}; remove it"
        )
    names = [part.name for part in recipe.objectives]
    if config.kind == "two_head":
        if "classification" not in names:
            raise InvalidArgumentError("a model of kind 'two_head' requires the objective 'classification'")
    elif config.is_classifier and set(names) != {"classification"}:
        raise InvalidArgumentError(
            f"the objective must be 'classification' for a model of kind {config.kind!r}, which is a classifier"
        )
    if recipe.data.moving and not (config.takes_clips and config.rate is not None):
        raise InvalidArgumentError(
            "data.moving requires a model that takes clips (kind 'clip' or 'c3d') and model.rate in frames per second"
        )
    if recipe.data.kind == "unlabeled":
        if config.takes_clips:
            raise InvalidArgumentError(
                f"unlabeled data requires a model that takes images, got kind {config.kind!r}; use 'frame_encoder' or "
                "'image'"
            )
        if recipe.validation.every and recipe.validation.measure not in ("auto", "recall_at_1"):
            raise InvalidArgumentError(
                f"validation.measure must be 'recall_at_1' for unlabeled data, got {recipe.validation.measure!r}"
            )

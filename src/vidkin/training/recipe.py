"""Recipes: data, model, objective and schedule of a training run, as frozen values and as TOML."""

from __future__ import annotations

import hashlib
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from vidkin._base.tables import check_names, from_table
from vidkin._base.toml import format_toml
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig

__all__ = [
    "AUGMENTATIONS",
    "DataRecipe",
    "Measure",
    "ObjectiveRecipe",
    "Recipe",
    "ScheduleRecipe",
    "ValidationRecipe",
    "available_recipes",
    "load_recipe",
    "show_recipe",
]

AUGMENTATIONS = ("flip", "crop", "colour")
"""What ``data.augmentation`` may hold."""

Measure = Literal["qp", "tp", "ndcg", "map", "hap", "asi", "recall_at_1"]


@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """Where labelled items come from.

    Attributes:
        source: Folder or file of the collection; a relative one counts from the current folder.
        reader: One of :func:`vidkin.datasets.available_readers`.
        options: Of the reader.
        split: A written split to use (:func:`vidkin.datasets.write_split`); empty: the collection's own, or where it
            has none one made here and written beside the model.
        split_by: Of a split made here: ``group``, ``item`` or ``subcategory``.
        test: Of a split made here, share of the test.
        validation: Likewise of validation.
        split_seed: Likewise the seed.
        excerpts: Clips that are cut out of every training video, evenly spread, each an item of its own; 1 takes
            the video as it is. For collections with one video of a subcategory, whose excerpts are then positives.
        excerpt_share: Length of such an excerpt, as a share of its video.
        augmentation: Random changes of training items: ``flip``, ``crop``, ``colour``. With any of these features
            of a frozen backbone are not cached.
        cache: Where decoded pictures, or features of a frozen backbone, are kept: ``disk`` (beside the model, used
            again by later runs) or ``memory``.
        threads: Files that are decoded at a time.
    """

    source: str
    reader: str = "tree"
    options: Mapping[str, Any] = field(default_factory=dict)
    split: str = ""
    split_by: Literal["group", "item", "subcategory"] = "group"
    test: float = 0.3
    validation: float = 0.1
    split_seed: int = 0
    excerpts: int = 1
    excerpt_share: float = 0.5
    augmentation: tuple[str, ...] = ()
    cache: Literal["disk", "memory"] = "disk"
    threads: int = 2

    def __post_init__(self) -> None:
        for name in self.augmentation:
            if name not in AUGMENTATIONS:
                raise InvalidArgumentError(
                    f"data.augmentation holds {name!r}, allowed are {', '.join(AUGMENTATIONS)}"
                )
        _least("data.excerpts", self.excerpts, 1)
        _least("data.threads", self.threads, 1)
        _seed("data.split_seed", self.split_seed)
        if not 0.0 < self.excerpt_share <= 1.0:
            raise InvalidArgumentError(
                f"data.excerpt_share is {self.excerpt_share}, allowed is above 0 up to 1"
            )


@dataclass(frozen=True, kw_only=True)
class ObjectiveRecipe:
    """One term of what is minimised.

    Attributes:
        name: One of :func:`vidkin.training.available_objectives`.
        weight: Factor of the term.
        parameters: Of the loss, all of them.
    """

    name: str
    weight: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ScheduleRecipe:
    """How long and with what steps.

    Attributes:
        steps: Of the optimiser.
        quadlets: Tuples a step; batches hold as many items as these have members, 4 times as many.
        batch: Categories, subcategories of each and items of each, of objectives on batches; empty: all categories
            up to 8, up to 4 items of a subcategory, and as many subcategories as ``quadlets`` allows.
        optimiser: ``adamw`` or ``sgd``.
        learning_rate: Of the head alone; where the backbone is trained, too, its rate.
        head_factor: Then that of the head is so many times as high.
        momentum: Of ``sgd``.
        weight_decay: Of all weights (lambda of the sources); decoupled with ``adamw``.
        clip: Largest norm of the gradient; 0 does not clip.
        warm_up: Steps in which the rate rises from near 0.
        decay: ``constant``, ``cosine`` (down to ``final_factor`` at the last step) or ``step`` (times
            ``step_factor`` every ``step_every`` steps).
        final_factor: Of ``cosine``.
        step_every: Of ``step``.
        step_factor: Of ``step``.
        precision: ``float32``, or ``bfloat16`` for automatic mixed precision.
        device: ``cpu``, ``cuda``, or ``auto`` for the latter where there is one.
        seed: Of weights, draws and augmentation.
        log_every: Steps between lines of the log.
        checkpoint_every: Steps between checkpoints.
        tensorboard: Write a TensorBoard log, too (needs the extra ``tensorboard``).
        collapse_below: Warn when the mean distance of pairs of a batch falls below this share of what it was at the
            start.
    """

    steps: int = 500
    quadlets: int = 32
    batch: tuple[int, ...] = ()
    optimiser: Literal["adamw", "sgd"] = "adamw"
    learning_rate: float = 1e-3
    head_factor: float = 10.0
    momentum: float = 0.9
    weight_decay: float = 1e-3
    clip: float = 5.0
    warm_up: int = 0
    decay: Literal["constant", "cosine", "step"] = "constant"
    final_factor: float = 0.01
    step_every: int = 200
    step_factor: float = 0.1
    precision: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    seed: int = 0
    log_every: int = 10
    checkpoint_every: int = 100
    tensorboard: bool = False
    collapse_below: float = 0.2

    def __post_init__(self) -> None:
        for name in ("steps", "quadlets", "step_every", "log_every", "checkpoint_every"):
            _least(f"schedule.{name}", getattr(self, name), 1)
        for name in ("warm_up", "momentum", "weight_decay", "clip", "final_factor", "collapse_below"):
            _least(f"schedule.{name}", getattr(self, name), 0)
        for name in ("learning_rate", "head_factor", "step_factor"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise InvalidArgumentError(f"schedule.{name} is {value}, allowed is a number above 0")
        _seed("schedule.seed", self.seed)
        if self.batch and (len(self.batch) != 3 or min(self.batch) < 1):
            raise InvalidArgumentError(
                f"schedule.batch is {list(self.batch)}, allowed are 3 numbers of 1 or more (categories, "
                "subcategories of each, items of each), or none"
            )


@dataclass(frozen=True, kw_only=True)
class ValidationRecipe:
    """When the validation split is looked at, and what follows.

    Attributes:
        every: Steps between validations; 0 never looks.
        measure: What counts, higher is better: ``qp`` and ``tp`` among the validation items; ``ndcg``, ``map``,
            ``hap``, ``asi`` and ``recall_at_1`` with validation as queries and train as gallery.
        patience: Validations without a better value after which the training ends; 0 never ends early.
        keep: The weights that become the model: ``best`` by ``measure``, or ``last``.
    """

    every: int = 0
    measure: Measure = "qp"
    patience: int = 0
    keep: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        _least("validation.every", self.every, 0)
        _least("validation.patience", self.patience, 0)
        if self.patience and not self.every:
            raise InvalidArgumentError(
                f"validation.patience is {self.patience}, but validation.every is 0: nothing would ever be looked at"
            )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole training run.

    Attributes:
        name: What it is called.
        data: Labelled items.
        model: Settings of :class:`vidkin.models.EncoderConfig`, all of them but ``classes``, which the data decide.
        weights: Of the backbone, see :func:`vidkin.models.build_model`; empty: from the hub, or fresh for ``small``.
        objectives: Terms of what is minimised.
        schedule: Steps.
        validation: Validation.
    """

    name: str
    data: DataRecipe
    model: Mapping[str, Any]
    weights: str = ""
    objectives: tuple[ObjectiveRecipe, ...]
    schedule: ScheduleRecipe = field(default_factory=ScheduleRecipe)
    validation: ValidationRecipe = field(default_factory=ValidationRecipe)

    def config(self, *, classes: int = 2) -> EncoderConfig:
        """Of the model, with so many classes where it is one that classifies."""
        kind = self.model.get("kind", "clip")
        needed = {"classes": classes} if kind in ("c3d", "deep_sbd") else {}
        return EncoderConfig.from_mapping({**self.model, **needed})

    def digest(self) -> str:
        """SHA-256 of all that decides about the weights: two runs with the same digest may continue each other."""
        told = {"schedule": asdict(self.schedule), "validation": asdict(self.validation)}
        for name in ("log_every", "checkpoint_every", "tensorboard", "device"):
            del told["schedule"][name]
        data = {name: value for name, value in asdict(self.data).items() if name not in ("cache", "threads")}
        whole = (data, dict(self.model), self.weights, [asdict(part) for part in self.objectives], told)
        return hashlib.sha256(repr(whole).encode()).hexdigest()


def available_recipes() -> tuple[str, ...]:
    """Names of the recipes that come with the package, sorted."""
    folder = resources.files("vidkin.training") / "recipes"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_recipe(source: str | os.PathLike[str] | Mapping[str, Any]) -> Recipe:
    """Read and check a recipe.

    Args:
        source: A TOML file, the name of a recipe that comes with the package, or its content as a mapping.

    Returns:
        The recipe with all defaults filled in.

    Raises:
        InvalidArgumentError: There is no such recipe, it is no TOML, or a setting is unknown or not allowed.
    """
    if isinstance(source, Mapping):
        return _recipe(source, "recipe")
    path = Path(source).expanduser()
    try:
        if path.is_file():
            text = path.read_text(encoding="utf-8")
        elif os.fspath(source) in available_recipes():
            text = (resources.files("vidkin.training") / "recipes" / f"{source}.toml").read_text("utf-8")
        else:
            raise InvalidArgumentError(
                f"there is no recipe {os.fspath(source)!r}: give a TOML file, or one of "
                f"{', '.join(available_recipes())}"
            )
        return _recipe(tomllib.loads(text), path.stem)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path} is no TOML: {error}") from error
    except OSError as error:
        raise InvalidArgumentError(f"the recipe {path} cannot be read: {error.strerror or error}") from error


def show_recipe(recipe: Recipe) -> str:
    """The recipe as TOML with every default visible; :func:`load_recipe` reads it back to an equal recipe."""
    config = recipe.config()
    model = {entry.name: getattr(config, entry.name) for entry in fields(config) if entry.name != "classes"}
    data = _plain(recipe.data)
    if not data["options"]:
        del data["options"]
    return format_toml(
        {
            "name": recipe.name,
            "data": data,
            "model": {**model, "weights": recipe.weights},
            "objective": [
                {"name": part.name, "weight": part.weight, **part.parameters} for part in recipe.objectives
            ],
            "schedule": _plain(recipe.schedule),
            "validation": _plain(recipe.validation),
        }
    )


def _recipe(given: Mapping[str, Any], name: str) -> Recipe:
    check_names(given, ("name", "data", "model", "objective", "schedule", "validation"), "recipe")
    if "data" not in given or "objective" not in given:
        raise InvalidArgumentError("a recipe needs [data] with a source and [[objective]] with a name")
    for table in ("data", "model"):
        if not isinstance(given.get(table, {}), Mapping):
            raise InvalidArgumentError(f"[{table}] must be a table of settings, got {given[table]!r}")
    if "source" not in given["data"]:
        raise InvalidArgumentError("[data] needs a source: the folder or file of the labelled collection")
    model = dict(given.get("model", {}))
    weights = model.pop("weights", "")
    if not isinstance(weights, str):
        raise InvalidArgumentError(f"model.weights is {weights!r}, it must be text")
    if "classes" in model:
        raise InvalidArgumentError("model.classes is decided by the data; leave it out")
    found = given["objective"]
    if not isinstance(found, Mapping | list | tuple):
        raise InvalidArgumentError(f"[[objective]] is {found!r}, it needs a name")
    parts = [found] if isinstance(found, Mapping) else list(found)
    recipe = Recipe(
        name=str(given.get("name", name)),
        data=from_table(DataRecipe, given["data"], "data"),
        model=model,
        weights=weights,
        objectives=tuple(_objective(part) for part in parts),
        schedule=from_table(ScheduleRecipe, given.get("schedule", {}), "schedule"),
        validation=from_table(ValidationRecipe, given.get("validation", {}), "validation"),
    )
    config = recipe.config()
    settled = {k: v for k, v in config.to_mapping().items() if k != "classes"}
    object.__setattr__(recipe, "model", settled)
    _check_together(recipe, config)
    return recipe


def _objective(given: object) -> ObjectiveRecipe:
    from vidkin.training.objectives import settled_parameters

    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        raise InvalidArgumentError(f"[[objective]] is {given!r}, it needs a name")
    weight = given.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
        raise InvalidArgumentError(f"objective.weight is {weight!r}, it must be a number")
    parameters = {name: value for name, value in given.items() if name not in ("name", "weight")}
    return ObjectiveRecipe(
        name=given["name"],
        weight=float(weight),
        parameters=settled_parameters(given["name"], parameters),
    )


def _check_together(recipe: Recipe, config: EncoderConfig) -> None:
    if not recipe.objectives:
        raise InvalidArgumentError("a recipe needs at least one [[objective]]")
    if config.is_classifier and any(part.name != "classification" for part in recipe.objectives):
        raise InvalidArgumentError(
            f"a {config.kind} network is trained to classify: its objective must be 'classification'"
        )


def _plain(value: Any) -> dict[str, Any]:
    return {entry.name: getattr(value, entry.name) for entry in fields(value)}


def _least(name: str, value: float, least: float) -> None:
    if not (value >= least and math.isfinite(value)):
        raise InvalidArgumentError(f"{name} is {value}, allowed is {least} or more")


def _seed(name: str, value: int) -> None:
    # What every generator takes that is seeded with it.
    if not 0 <= value < 2**32:
        raise InvalidArgumentError(f"{name} is {value}, allowed is a whole number from 0 to {2**32 - 1}")

"""Shot detector recipes by name, file or content, for every method of `vidkin train-shots`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from vidkin._base.files import PathLike
from vidkin._base.registry import Registry
from vidkin._base.toml import check_names, format_toml, parse_toml, read_toml
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig
from vidkin.training.recipe_file import take_reduced
from vidkin_research.learned.objective import ShotRecipe

FIT_EVERY = 4
"""Every n-th video is held out when a metric is trained, to fit the thresholds."""

_DEFAULTS: Mapping[str, Any] = {"kind": "clip", "trainable": "head", "fit": "stretch"}


@dataclass(frozen=True, kw_only=True)
class ShotPlan:
    """A complete recipe: training and network.

    Attributes:
        shots: Loss, batches, number of steps and cut rule.
        model: Configuration of the clip encoder; ``trainable`` determines whether its frame network is also trained,
            and ``frames`` is the window.
        weights: File with the weights of the frame network, see :func:`vidkin.models.build_model`; empty to use weights
            from the hub, or random ones for ``small``.
    """

    shots: ShotRecipe
    model: EncoderConfig
    weights: str = ""


def parse_shot_recipe(content: Mapping[str, Any]) -> ShotPlan:
    """Parse and check the content of a TOML recipe.

    Args:
        content: ``[shots]`` contains the fields of `ShotRecipe`; ``[model]`` contains those of
            :class:`vidkin.models.EncoderConfig` (``kind`` is ``clip``, ``frames`` is the window) and ``weights``.

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
        raise InvalidArgumentError(f"model.weights must be a string, got {weights!r}")
    for name, needed in (("kind", "clip"), ("frames", shots.window)):
        if model[name] != needed:
            raise InvalidArgumentError(
                f"model.{name} must be {needed!r} to train on windows of {shots.window} frames, got {model[name]!r}"
            )
    return ShotPlan(shots=shots, model=EncoderConfig.from_mapping(model), weights=weights)


@dataclass(frozen=True, kw_only=True)
class ShotMethod:
    """A method that trains a detector from labeled shots.

    Attributes:
        name: Name for `vidkin train-shots --method`.
        title: Name of the trained model in progress messages.
        table: Recipe table specific to this method, besides ``[model]``.
        default: Name of its default recipe.
        package: Package whose ``data`` folder contains its recipes.
        plan: Class of its parsed recipes.
        parse: Function that validates the content of a recipe and returns a plan.
        tables: Function that returns the tables of a plan; ``parse`` restores the plan from them.
        train: Function of (labels, plan, output=, resume=, device=, on_progress=) that trains and returns a report, a
            `Result` with ``output``; ``on_progress`` receives (current phase, number done, total). None for
            `vidkin.train_shots`.
        fit_every: Every n-th video is held out from training; None holds out none.
        row: Function that returns the cells of a report's table as text, by column title.
    """

    name: str
    title: str
    table: str
    default: str
    package: str
    plan: type[Any]
    parse: Callable[[Mapping[str, Any]], Any]
    tables: Callable[[Any], dict[str, dict[str, Any]]]
    train: Callable[..., Any] | None = None
    fit_every: int | None = None
    row: Callable[[Any], Mapping[str, str]] | None = None

    def recipes(self) -> dict[str, Traversable]:
        """Return the files of the built-in recipes by name."""
        folder = resources.files(self.package) / "data"
        return {file.name.removesuffix(".toml"): file for file in folder.iterdir() if file.name.endswith(".toml")}


def _shot_tables(plan: ShotPlan) -> dict[str, dict[str, Any]]:
    shots = {entry.name: getattr(plan.shots, entry.name) for entry in fields(plan.shots)}
    model = {entry.name: getattr(plan.model, entry.name) for entry in fields(plan.model)}
    return {"shots": shots, "model": {**model, "weights": plan.weights}}


LEARNED = ShotMethod(
    name="learned",
    title="training",
    table="shots",
    default="extended",
    package="vidkin_research.learned",
    plan=ShotPlan,
    parse=parse_shot_recipe,
    tables=_shot_tables,
    fit_every=FIT_EVERY,
)

"""Training method ``learned`` of `vidkin train-shots`: a metric trained on labeled shots, and rules on its curve."""

_METHODS: Registry[ShotMethod] = Registry(
    "method of training shots",
    {LEARNED.name: LEARNED, "deepsbd": "vidkin_research.detectors.deep_sbd_train:DEEP_SBD"},
)


def available_shot_methods() -> tuple[str, ...]:
    """Return the names of the methods, sorted."""
    return _METHODS.usages()


def find_shot_method(name: str) -> ShotMethod:
    """Find a method by name.

    Raises:
        InvalidArgumentError: No method has this name.
    """
    method = _METHODS.find(name)
    if method is None:
        raise _METHODS.unknown(name)
    return method


def available_shot_recipes() -> dict[str, Traversable]:
    """Return the recipe files of all methods, sorted by name."""
    return dict(sorted((name, file) for method in _methods() for name, file in method.recipes().items()))


def load_shot_recipe(
    source: PathLike | Mapping[str, Any] | None = None, *, method: str | None = None, reduced: bool = False
) -> Any:
    """Load a recipe, checked and with all defaults filled in: a `ShotPlan`, or the plan of another method.

    Args:
        source: A TOML file, the name of a built-in recipe, or its content as a mapping; None for the method's default
            recipe.
        method: One of `available_shot_methods`; None for the recipe's own method, or ``learned`` if it has none.
        reduced: Whether to apply the settings in its ``[reduced]`` table, which make a GPU recipe trainable on a CPU.

    Raises:
        InvalidArgumentError: The recipe does not exist, belongs to another method or is not TOML, a setting is unknown
            or out of range, or ``reduced`` is set for a recipe without this table.
    """
    chosen = LEARNED if method is None else find_shot_method(method)
    source = chosen.default if source is None else source
    name = "recipe" if isinstance(source, Mapping) else Path(source).stem
    content = take_reduced(read_shot_recipe(source), name, reduced=reduced)
    own = next((each for each in _methods() if each is not LEARNED and each.table in content), LEARNED)
    if method is not None and chosen.name != own.name:
        raise InvalidArgumentError(
            f"the recipe is for method {own.name!r}, got method {method!r}; choose one of the recipes "
            f"{', '.join(available_shot_recipes())}, or leave out the recipe or the method"
        )
    return own.parse(content)


def has_reduced_shot_form(source: PathLike) -> bool:
    """Whether a recipe is for a GPU and has a ``[reduced]`` table."""
    return "reduced" in read_shot_recipe(source)


def read_shot_recipe(source: PathLike | Mapping[str, Any]) -> dict[str, Any]:
    """Read the content of a recipe without checking it.

    Raises:
        InvalidArgumentError: The recipe does not exist or is not TOML.
    """
    if isinstance(source, Mapping):
        return dict(source)
    path = Path(source).expanduser()
    shipped = available_shot_recipes()
    try:
        if path.is_file():
            return read_toml(path)
        if os.fspath(source) in shipped:
            return parse_toml(shipped[os.fspath(source)].read_text("utf-8"))
    except OSError as error:
        raise InvalidArgumentError(f"{path}: the recipe cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: not TOML: {error}") from error
    raise InvalidArgumentError(
        f"{os.fspath(source)!r} is not a recipe; choose a TOML file, or one of {', '.join(shipped)}"
    )


def shot_method_of(plan: Any) -> ShotMethod:
    """Return the method that a plan belongs to."""
    return next(method for method in _methods() if isinstance(plan, method.plan))


def shot_recipe_tables(plan: Any) -> dict[str, dict[str, Any]]:
    """Return the tables of a recipe with all defaults; :func:`load_shot_recipe` restores the plan from them."""
    return {
        table: {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in settings.items()
            if value is not None
        }
        for table, settings in shot_method_of(plan).tables(plan).items()
    }


def show_shot_recipe(plan: Any) -> str:
    """Return the recipe as TOML with all defaults; :func:`load_shot_recipe` restores the plan from it."""
    return format_toml(shot_recipe_tables(plan))


def _methods() -> list[ShotMethod]:
    return [find_shot_method(name) for name in available_shot_methods()]

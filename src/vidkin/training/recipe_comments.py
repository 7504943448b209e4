"""The meaning of each setting of a recipe, for the comments in its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vidkin._base.docstrings import describe_settings
from vidkin.datasets.augmentation import EditSettings, PairSettings, WarpSettings
from vidkin.datasets.collections import find_reader
from vidkin.models import EncoderConfig
from vidkin.models.comparator.config import ComparatorConfig
from vidkin.training.clips.settings import describe_clip_settings
from vidkin.training.data.file_squares import ImageSettings
from vidkin.training.data.unlabeled import UnlabeledData
from vidkin.training.loss_table import find_loss
from vidkin.training.recipe import DataRecipe, ObjectiveRecipe, Recipe, ScheduleRecipe, ValidationRecipe

__all__ = ["describe_recipe"]


def describe_recipe(recipe: Recipe) -> dict[str, Any]:
    """The meaning of each setting by name, in the tables of the recipe's file, taken from the docstrings."""
    of_recipe = describe_settings(Recipe)
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
        "name": of_recipe.get("name", ""),
        "data": {**describe_settings(DataRecipe), "options": options},
        "model": {**model, **{name: of_recipe.get(name, "") for name in ("weights", "whitening")}},
        "objective": [_describe_objective(part) for part in recipe.objectives],
        "schedule": describe_settings(ScheduleRecipe),
        "validation": describe_settings(ValidationRecipe),
    }


def _describe_objective(part: ObjectiveRecipe) -> Mapping[str, str]:
    make = find_loss(part.name).make
    # Options are documented by the loss class or by its function.
    computed: Callable[..., Any] | None = getattr(make, "compute", None)
    options = {} if computed is None else describe_settings(computed)
    return {**options, **describe_settings(make), **describe_settings(ObjectiveRecipe)}

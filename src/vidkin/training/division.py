"""The labeled items of a recipe with their split: from the collection, from a file, or newly made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch

from vidkin._base.arguments import check_arguments
from vidkin.datasets import LabelledSet, make_split, open_labelled, read_split
from vidkin.errors import InvalidArgumentError
from vidkin.training.draws import check_drawable
from vidkin.training.embedding_measures import measure_one
from vidkin.training.inputs import label_table
from vidkin.training.objectives import find_loss
from vidkin.training.recipe import DataRecipe, Measure, Recipe

# Excerpts of each training video if no subcategory has two videos.
_EXCERPTS = 4


@dataclass(frozen=True, slots=True)
class Division:
    """Labeled items with a split, and the choices made for them.

    Attributes:
        recipe: The recipe, with every ``auto`` replaced by the value chosen.
        labelled: All items with their splits.
        is_made: Whether the split was made here rather than read from the collection or a file.
        notes: Choices that differ from the recipe, with their reasons, one sentence each.
    """

    recipe: Recipe
    labelled: LabelledSet
    is_made: bool = False
    notes: tuple[str, ...] = ()


@check_arguments
def open_data(recipe: Recipe) -> tuple[LabelledSet, bool]:
    """Open the labeled set of a recipe with its split; also return whether the split was made here.

    Raises:
        DatasetError: The collection or the split is invalid.
        InvalidArgumentError: A setting is not allowed.
    """
    division = divide_data(recipe)
    return division.labelled, division.is_made


def divide_data(recipe: Recipe) -> Division:
    """Open the labeled items of a recipe, split them, and resolve settings that depend on the data.

    ``data.split_by = "auto"`` splits by group if training can draw from the split and the validation measure is
    defined. If groups are too small for that, it tries, in this order: no validation split, a split by item, no test
    split; and excerpts of videos if no subcategory has two training videos. For a collection of images, a clip model
    becomes an image model.

    Raises:
        DatasetError: The collection or the split is invalid.
        InvalidArgumentError: A setting is not allowed, or no split provides what the objectives need.
    """
    original, data = recipe, recipe.data
    if data.kind == "unlabeled":
        raise InvalidArgumentError("data.kind must be 'labeled' to be opened as a labeled set, got 'unlabeled'")
    labelled = open_labelled(data.source, reader=data.reader, **data.options)
    recipe, notes = _fit_model(recipe, labelled)
    if data.split:
        division = Division(recipe, read_split(labelled, data.split), notes=notes)
    elif "train" in labelled.split_counts():
        division = Division(recipe, labelled, notes=notes)
    elif data.split_by == "auto":
        division = _choose(recipe, labelled, notes)
    else:
        division = Division(recipe, _split(labelled, data), is_made=True, notes=notes)
    return _settle_validation(division, original)


def batch_sizes(recipe: Recipe) -> tuple[int, ...]:
    """Batch sizes of the recipe before its data is known; a ``two_head`` model needs batches of classes and items."""
    return recipe.schedule.batch or ((2, 2) if recipe.model.get("kind") == "two_head" else ())


def can_measure(measure: Measure, queries: LabelledSet, gallery: LabelledSet) -> bool:
    """Whether a figure is defined for these queries and, if it ranks a gallery, for this gallery."""
    labels = [label_table(part) for part in (queries, gallery)]
    points = [torch.zeros(len(part), 1) for part in labels]
    return not math.isnan(measure_one(measure, points[0], labels[0], points[1], labels[1]))


def _fit_model(recipe: Recipe, labelled: LabelledSet) -> tuple[Recipe, tuple[str, ...]]:
    if labelled.kind != "image" or recipe.model.get("kind") != "clip":
        return recipe, ()
    note = (
        f"{labelled.name} contains images, so the model has the kind 'image' and not 'clip', which takes videos "
        "(model.kind)"
    )
    # Image models have no clip settings.
    model = {name: value for name, value in recipe.model.items() if name not in ("rate", "seconds")}
    data = replace(recipe.data, moving=False)
    return replace(recipe, data=data, model={**model, "kind": "image"}), (note,)


def _choose(recipe: Recipe, labelled: LabelledSet, notes: tuple[str, ...]) -> Division:
    """The first split that supports the draws of the objectives and the validation measure."""
    first: InvalidArgumentError | None = None
    for candidate in _split_choices(recipe, labelled):
        try:
            divided = _split(labelled, candidate)
            draws = [find_loss(part.name).draw for part in recipe.objectives]
            check_drawable(divided.part("train"), draws, sizes=batch_sizes(recipe), copies=candidate.excerpts)
        except InvalidArgumentError as error:
            first = first or error
            continue
        if candidate.validation and recipe.validation.every and not _has_measure(recipe, divided):
            continue
        notes = (*notes, *_differences(recipe, candidate))
        return Division(replace(recipe, data=candidate), divided, is_made=True, notes=notes)
    assert first is not None
    raise first


def _split_choices(recipe: Recipe, labelled: LabelledSet) -> Iterator[DataRecipe]:
    data = recipe.data
    splits: list[Literal["group", "item"]] = ["group"]
    if len({item.group for item in labelled.items}) < len(labelled):
        splits.append("item")
    counts = [data.excerpts]
    if labelled.kind == "video" and data.excerpts == 1:
        counts.append(_EXCERPTS)
    for excerpts in counts:
        for by in splits:
            chosen = replace(data, split_by=by, excerpts=excerpts)
            yield chosen
            if data.validation:
                yield replace(chosen, validation=0.0)
        if data.test:
            yield replace(data, split_by="group", test=0.0, validation=0.0, excerpts=excerpts)


def _split(labelled: LabelledSet, data: DataRecipe) -> LabelledSet:
    """The items with a new split."""
    assert data.split_by != "auto"
    return make_split(labelled, by=data.split_by, test=data.test, validation=data.validation, seed=data.split_seed)


def _has_measure(recipe: Recipe, divided: LabelledSet) -> bool:
    requested = recipe.validation.measure
    if requested != "auto" or recipe.model.get("kind") == "two_head":
        return True  # a measure that was requested is never replaced silently
    train, validation = divided.part("train"), divided.part("validation")
    return any(can_measure(measure, validation, train) for measure in ("qp", "map"))


def _differences(recipe: Recipe, chosen: DataRecipe) -> Iterator[str]:
    """One sentence for each difference from the recipe, except for validation."""
    data = recipe.data
    if chosen.split_by == "item":
        yield (
            "too few groups for a split by group, so items are divided one by one (data.split_by = 'item'): items of "
            "one group can be on both sides, and figures are then better than they will be on new videos"
        )
    if chosen.test < data.test:
        yield (
            "too few items for a test split, so all are for training (data.test = 0); evaluate the model on other files"
        )
    if chosen.excerpts != data.excerpts:
        yield (
            "no subcategory has two training videos, so each video is cut into "
            f"{chosen.excerpts} excerpts that are positives of each other (data.excerpts = {chosen.excerpts})"
        )


def _settle_validation(division: Division, original: Recipe) -> Division:
    """Turn validation off if there are no validation items; otherwise replace ``auto`` by a figure they define."""
    labelled, notes, rules = division.labelled, list(division.notes), division.recipe.validation
    has_items = "validation" in labelled.split_counts()
    if rules.every and not has_items and original.data.split_by == "auto":
        cause = (
            "too few items for a validation split (data.validation)"
            if division.is_made and original.data.validation
            else f"{labelled.name} has no validation items"
        )
        notes.append(f"{cause}, so the weights of the last step are kept")
        rules = replace(rules, every=0, patience=0)
    if rules.measure == "auto" and division.recipe.model.get("kind") == "two_head":
        rules = replace(rules, measure="accuracy")
    if rules.measure == "auto":
        measure: Measure = "qp"
        if rules.every and has_items and not can_measure("qp", labelled.part("validation"), labelled.part("train")):
            measure = "map"
            notes.append(
                "the validation items have no quadlets (two of a subcategory, another subcategory, another category), "
                "so validation ranks the training items (validation.measure = 'map')"
            )
        rules = replace(rules, measure=measure)
    return replace(division, recipe=replace(division.recipe, validation=rules), notes=tuple(notes))

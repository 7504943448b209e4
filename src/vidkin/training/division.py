"""Split a recipe's labeled items: by the dataset's own split, by a split file, or by a new split."""

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

# Number of excerpts per training video if no subcategory has two videos.
_EXCERPTS = 4


@dataclass(frozen=True, slots=True)
class SplitData:
    """Labeled items with a split, and the settings that were resolved for them.

    Attributes:
        recipe: The recipe, with every ``auto`` replaced by the chosen value.
        labelled: All items with their splits.
        is_made: Whether the split was created here rather than read from the dataset or a file.
        notes: Choices that differ from the recipe, with reasons; one sentence each.
    """

    recipe: Recipe
    labelled: LabelledSet
    is_made: bool = False
    notes: tuple[str, ...] = ()


@check_arguments
def open_data(recipe: Recipe) -> tuple[LabelledSet, bool]:
    """Open the labeled dataset of a recipe with its split; also return whether the split was created here.

    Raises:
        DatasetError: The dataset or the split is invalid.
        InvalidArgumentError: A setting is not allowed.
    """
    division = split_data(recipe)
    return division.labelled, division.is_made


def split_data(recipe: Recipe) -> SplitData:
    """Open the labeled items of a recipe, split them, and resolve settings that depend on the data.

    ``data.split_by = "auto"`` splits by group if the split supports the sampling of the objectives and the validation
    measure is defined. If groups are too small, it falls back to, in this order: no validation split, a split by item,
    no test split. If no subcategory has two training videos, it also splits videos into excerpts. For an image dataset,
    a clip model is replaced by an image model.

    Raises:
        DatasetError: The dataset or the split is invalid.
        InvalidArgumentError: A setting is not allowed, or no split satisfies the objectives.
    """
    original, data = recipe, recipe.data
    if data.kind == "unlabeled":
        raise InvalidArgumentError("data.kind must be 'labeled' to open a labeled dataset, got 'unlabeled'")
    labelled = open_labelled(data.source, reader=data.reader, **data.options)
    recipe, notes = _fit_model(recipe, labelled)
    if data.split:
        division = SplitData(recipe, read_split(labelled, data.split), notes=notes)
    elif "train" in labelled.split_counts():
        division = SplitData(recipe, labelled, notes=notes)
    elif data.split_by == "auto":
        division = _choose(recipe, labelled, notes)
    else:
        division = SplitData(recipe, _split(labelled, data), is_made=True, notes=notes)
    return _settle_validation(division, original)


def batch_sizes(recipe: Recipe) -> tuple[int, ...]:
    """Return the batch sizes before the data is known; ``two_head`` models need batches of classes and items."""
    return recipe.schedule.batch or ((2, 2) if recipe.model.get("kind") == "two_head" else ())


def can_measure(measure: Measure, queries: LabelledSet, gallery: LabelledSet) -> bool:
    """Whether a measure is defined for these queries and, if it ranks a gallery, for this gallery."""
    labels = [label_table(part) for part in (queries, gallery)]
    points = [torch.zeros(len(part), 1) for part in labels]
    return not math.isnan(measure_one(measure, points[0], labels[0], points[1], labels[1]))


def _fit_model(recipe: Recipe, labelled: LabelledSet) -> tuple[Recipe, tuple[str, ...]]:
    if labelled.kind != "image" or recipe.model.get("kind") != "clip":
        return recipe, ()
    note = (
        f"{labelled.name} contains images, so the model kind is 'image' instead of 'clip', which takes videos "
        "(model.kind)"
    )
    # Image models do not have clip settings.
    model = {name: value for name, value in recipe.model.items() if name not in ("rate", "seconds")}
    data = replace(recipe.data, moving=False)
    return replace(recipe, data=data, model={**model, "kind": "image"}), (note,)


def _choose(recipe: Recipe, labelled: LabelledSet, notes: tuple[str, ...]) -> SplitData:
    """Choose the first split that supports the sampling of the objectives and the validation measure."""
    first: InvalidArgumentError | None = None
    for candidate in _split_choices(recipe, labelled):
        try:
            split = _split(labelled, candidate)
            draws = [find_loss(part.name).draw for part in recipe.objectives]
            check_drawable(split.part("train"), draws, sizes=batch_sizes(recipe), copies=candidate.excerpts)
        except InvalidArgumentError as error:
            first = first or error
            continue
        if candidate.validation and recipe.validation.every and not _has_measure(recipe, split):
            continue
        notes = (*notes, *_differences(recipe, candidate))
        return SplitData(replace(recipe, data=candidate), split, is_made=True, notes=notes)
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
    """Create a new split of the items."""
    assert data.split_by != "auto"
    return make_split(labelled, by=data.split_by, test=data.test, validation=data.validation, seed=data.split_seed)


def _has_measure(recipe: Recipe, split: LabelledSet) -> bool:
    requested = recipe.validation.measure
    if requested != "auto" or recipe.model.get("kind") == "two_head":
        return True  # never silently replace an explicitly requested measure
    train, validation = split.part("train"), split.part("validation")
    return any(can_measure(measure, validation, train) for measure in ("qp", "map"))


def _differences(recipe: Recipe, chosen: DataRecipe) -> Iterator[str]:
    """Yield a sentence for each difference from the recipe, except for validation."""
    data = recipe.data
    if chosen.split_by == "item":
        yield (
            "too few groups for a split by group, so the split is by item (data.split_by = 'item'): items of the same "
            "group can be in both the training and the test split, so results can be better than on new videos"
        )
    if chosen.test < data.test:
        yield (
            "too few items for a test split, so all are used for training (data.test = 0); evaluate the model on other "
            "files"
        )
    if chosen.excerpts != data.excerpts:
        yield (
            "no subcategory has two training videos, so each video is split into "
            f"{chosen.excerpts} excerpts, which are positives of each other (data.excerpts = {chosen.excerpts})"
        )


def _settle_validation(division: SplitData, original: Recipe) -> SplitData:
    """Disable validation if there are no validation items; otherwise replace ``auto`` by a measure that is defined."""
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
                "the validation items have no quadlets (two items of a subcategory, one of another subcategory, one of "
                "another category), so validation ranks the training items (validation.measure = 'map')"
            )
        rules = replace(rules, measure=measure)
    return replace(division, recipe=replace(division.recipe, validation=rules), notes=tuple(notes))

"""The labeled items for evaluating a trained model, divided the way its training divided them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vidkin.datasets import LabelledSet, make_split, open_labelled, read_split
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.models import read_model_info
from vidkin.training.recipe import DataRecipe
from vidkin.training.recipe_file import load_recipe

__all__ = ["open_evaluation_set"]

PathLike = str | os.PathLike[str]

_LOG = logging.getLogger(__name__)


def open_evaluation_set(
    model: PathLike,
    data: PathLike | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, Any] | None = None,
    split: PathLike | None = None,
) -> LabelledSet:
    """The labeled items to evaluate a model on, with splits.

    Items of the model's training keep the split of the training, wherever they are now: another split would test on
    training items. Other items without a split are divided by group, with 30 % for the test, or by item if each
    subcategory is one group.

    Args:
        model: Folder of the model.
        data: Folder or file of the items; None takes the data of the model's recipe.
        reader: Reader of the items; None takes the reader of the recipe, or ``tree``.
        options: Options of the reader; if empty, those of the recipe.
        split: A stored split to use instead.

    Raises:
        InvalidArgumentError: The folder has no model, or neither the arguments nor a recipe name the data.
        DatasetError: The items are missing or incomplete, or the split belongs to other items.
    """
    folder = Path(model).expanduser()
    read_model_info(folder)  # raises an error if there is no model
    recipe = load_recipe(folder / "recipe.toml").data if (folder / "recipe.toml").is_file() else None
    if recipe is not None and recipe.kind == "unlabeled":
        recipe = None
    if data is None and recipe is None:
        raise InvalidArgumentError(
            f"{model}: has no recipe.toml that names labeled data; name the data as well"
        )
    if recipe is not None and data is not None and _resolve(data) != _resolve(recipe.source):
        recipe = None
    source, used, settings = data, reader or "tree", dict(options or {})
    if recipe is not None:
        source = source or recipe.source
        used = reader or recipe.reader
        settings = settings or (dict(recipe.options) if used == recipe.reader else {})
    assert source is not None
    labelled = open_labelled(source, reader=used, **settings)
    stored = split or _split_of_training(folder, recipe, labelled)
    if stored:
        return read_split(labelled, stored)
    if "" in labelled.split_counts():
        try:
            divided = make_split(labelled, test=0.3, validation=0.0)
        except InvalidArgumentError:
            # Every subcategory is one group, such as one recording.
            _LOG.warning("the data has no split and one group in each subcategory; it is divided by item")
            return make_split(labelled, by="item", test=0.3, validation=0.0)
        _LOG.warning("the data has no split; it is divided by group, 30 % for the test")
        return divided
    return labelled


def _resolve(path: PathLike) -> Path:
    return Path(path).expanduser().resolve()


def _split_of_training(folder: Path, recipe: DataRecipe | None, labelled: LabelledSet) -> PathLike | None:
    """The split of the training, if these are its items and they have no split of their own.

    Args:
        folder: Folder of the model.
        recipe: Recipe of the model, if the items are those it names.
        labelled: The items.
    """
    if recipe is not None and recipe.split:
        return recipe.split
    stored = folder / "split.json"
    if "train" in labelled.split_counts() or not stored.is_file():
        return None
    if recipe is None:
        # The same collection, moved or copied, has the same item names.
        try:
            read_split(labelled, stored)
        except DatasetError:
            return None
        _LOG.warning("the data has the items of the training; it is divided as in %s", stored)
    return stored

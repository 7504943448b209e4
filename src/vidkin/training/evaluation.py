"""Evaluate a trained encoder: open its labeled items, compute measures, and explain undefined ones."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.values import Result
from vidkin.datasets import SPLITS, LabelledSet, make_split, open_labelled, read_split
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.models import Encoder, load_model, read_model_info
from vidkin.training.embedding_measures import SAMPLES, TUPLES, measure_embeddings
from vidkin.training.inputs import Inputs, OnItem, broken_files, prepare_parts
from vidkin.training.recipe import DataRecipe
from vidkin.training.recipe_file import load_recipe

_LOG = logging.getLogger(__name__)


@check_arguments
def open_evaluation_set(
    model: PathLike,
    data: PathLike | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, Any] | None = None,
    split: PathLike | None = None,
) -> LabelledSet:
    """Open the labeled items for evaluating a model, with splits.

    Items that the model was trained on keep their split from training, even if they were moved, because a new split
    would test on training items. Other items without a split are split by group, with 30 % for the test split, or by
    item if each subcategory is a single group.

    Args:
        model: Folder of the model.
        data: Folder or file of the items; None for the data in the model's recipe.
        reader: Reader of the items; None for the recipe's reader, or ``tree`` without a recipe.
        options: Options of the reader; if empty, those of the recipe.
        split: Split file to use instead.

    Raises:
        InvalidArgumentError: The folder does not contain a model, or the data is specified neither by the arguments nor
            by a recipe.
        DatasetError: The items are missing or incomplete, or the split is for other items.
    """
    folder = Path(model).expanduser()
    read_model_info(folder)  # raises if there is no model
    recipe = load_recipe(folder / "recipe.toml").data if (folder / "recipe.toml").is_file() else None
    if recipe is not None and recipe.kind == "unlabeled":
        recipe = None
    if data is None and recipe is None:
        raise InvalidArgumentError(f"{model}: has no recipe.toml with labeled data; specify the data")
    if recipe is not None and data is not None and _resolve(data) != _resolve(recipe.source):
        recipe = None
    source, used, settings = data, reader or "tree", dict(options or {})
    if recipe is not None:
        source = source or recipe.source
        used = reader or recipe.reader
        settings = settings or (dict(recipe.options) if used == recipe.reader else {})
    assert source is not None
    labelled = open_labelled(source, reader=used, **settings)
    stored = split or _find_training_split(folder, recipe, labelled)
    if stored:
        return read_split(labelled, stored)
    if "" in labelled.split_counts():
        try:
            by_group = make_split(labelled, test=0.3, validation=0.0)
        except InvalidArgumentError:
            # Every subcategory is a single group, for example one recording.
            _LOG.warning("the data has no split and one group per subcategory; splitting it by item")
            return make_split(labelled, by="item", test=0.3, validation=0.0)
        _LOG.warning("the data has no split; splitting it by group, with 30 % for the test split")
        return by_group
    return labelled


def _resolve(path: PathLike) -> Path:
    return Path(path).expanduser().resolve()


def _find_training_split(folder: Path, recipe: DataRecipe | None, labelled: LabelledSet) -> PathLike | None:
    """Find the split used in training, if these are the training items and the dataset does not define a split.

    Args:
        folder: Folder of the model.
        recipe: The data section of the model's recipe if it specifies these items, else None.
        labelled: The items.
    """
    if recipe is not None and recipe.split:
        return recipe.split
    stored = folder / "split.json"
    if "train" in labelled.split_counts() or not stored.is_file():
        return None
    if recipe is None:
        # The item names of a moved or copied dataset are unchanged; for other items this fails.
        try:
            read_split(labelled, stored)
        except DatasetError:
            return None
        _LOG.warning("the data contains the training items; using the split in %s", stored)
    return stored


# Measures that require gallery items from the query's category; all other ranked measures require its subcategory.
_CATEGORY_MEASURES = ("ndcg", "map", "hap", "asi")


def explain_missing(
    figures: Mapping[str, float], queries: Tensor, gallery: Tensor | None, *, names: tuple[str, str]
) -> dict[str, str]:
    """Explain why measures are NaN, by the name of the measure.

    Args:
        figures: Result of :func:`vidkin.training.measure_embeddings`.
        queries: [Q, 2] labels (category, subcategory).
        gallery: [G, 2] labels of the gallery; None: the queries are compared with each other.
        names: Names of the query and gallery splits.
    """
    reasons = {}
    for name, value in figures.items():
        if not math.isnan(value):
            continue
        if name in ("qp_gallery", "tp_gallery"):
            reasons[name] = (
                f"no {names[0]} item has {names[1]} items from its subcategory, from another subcategory in its "
                "category, and from another category"
            )
        elif name in TUPLES:
            reasons[name] = f"no quadlets among the {len(queries)} {names[0]} items: {_explain_no_quadlets(queries)}"
        else:
            level = "category" if name in _CATEGORY_MEASURES else "subcategory"
            others = "other " if gallery is None else ""
            reasons[name] = f"no {others}{names[1]} item has the {level} of a {names[0]} item"
    return reasons


def _explain_no_quadlets(labels: Tensor) -> str:
    """Describe the first requirement of quadlets that the labels do not meet."""
    rows = [(int(category), int(subcategory)) for category, subcategory in labels.tolist()]
    counts = Counter(rows)
    categories = {category for category, _ in rows}
    if len(categories) < 2:
        return "there is only one category"
    if max(counts.values()) < 2:
        return "no subcategory has two items"
    if max(Counter(category for category, _ in counts).values()) < 2:
        return "no category has two subcategories"
    return "no subcategory with two items has another subcategory in its category"


CACHE_FOLDER = "features"


@dataclass(frozen=True, kw_only=True)
class Evaluation(Result):
    """Evaluation measures in [0, 1]; higher is better. Undefined measures are NaN, with the reason in ``missing``.

    ``qp`` and ``tp`` are computed over *test quadlets*, whose four items all come from the query split, as in the
    paper; ``qp_gallery`` and ``tp_gallery`` over *gallery quadlets*, whose p, i and n come from the gallery split. All
    other measures rank the gallery split for every query. `vidkin benchmark` uses the same names for the same measures.

    Attributes:
        data: Name of the dataset.
        query_split: Split of the queries.
        gallery_split: Split of the gallery.
        queries: Q, number of queries.
        gallery: G, number of gallery items.
        qp: Quadlet precision over all quadlets: d(q,p) < d(q,i) < d(q,n).
        qp_sampled: Quadlet precision over a random sample of 15,000 quadlets, as published.
        tp: Triplet precision over all triplets of all quadlets.
        tp_sampled: Triplet precision over the triplets of the sampled quadlets.
        quadlets: Total number of test quadlets.
        qp_gallery: Quadlet precision over all gallery quadlets; ``qp`` if the splits are the same.
        tp_gallery: Triplet precision over all triplets of gallery quadlets.
        ndcg: NDCG with gain 2^relevance - 1.
        map: Mean average precision with positives and intermediates relevant.
        map_subcategory: Mean average precision with only positives relevant.
        hap: Hierarchical average precision.
        asi: Average set intersection.
        recall_at_1: Fraction of queries whose first result has the same subcategory.
        recall_at_5: Fraction of queries with a result of the same subcategory among the first five.
        recall_at_10: Fraction of queries with a result of the same subcategory among the first ten.
        r_precision: Fraction of positives among the first R results, where R is the number of positives.
        missing: Reasons why measures are NaN, by name.
        broken: (file, cause) for each item that could not be read.
    """

    data: str
    query_split: str
    gallery_split: str
    queries: int
    gallery: int
    qp: float
    qp_sampled: float
    tp: float
    tp_sampled: float
    quadlets: int
    qp_gallery: float
    tp_gallery: float
    ndcg: float
    map: float
    map_subcategory: float
    hap: float
    asi: float
    recall_at_1: float
    recall_at_5: float
    recall_at_10: float
    r_precision: float
    missing: Mapping[str, str] = field(default_factory=dict)
    broken: tuple[tuple[str, str], ...] = ()

    @property
    def primary(self) -> str:
        """Name of the measure for comparing models: ``qp``, or ``map`` if there are no quadlets."""
        return "map" if math.isnan(self.qp) else "qp"

    @property
    def value(self) -> float:
        """Value of the primary measure."""
        return float(getattr(self, self.primary))


@check_arguments
def evaluate(
    model: PathLike | Encoder,
    labelled: LabelledSet | PathLike | None = None,
    *,
    query_split: str = "test",
    gallery_split: str = "train",
    samples: int = SAMPLES,
    seed: int = 0,
    device: str = "cpu",
    cache: PathLike | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> Evaluation:
    """Evaluate a model on labeled data.

    Args:
        model: A model or its folder.
        labelled: Data with a split, a folder ``category/subcategory/file``, or None for the data in the model's
            recipe. A folder or the recipe's data is split by :func:`open_evaluation_set`.
        query_split: Split of the queries and quadlets.
        gallery_split: Split of the gallery; if it equals ``query_split``, queries are not compared with themselves.
        samples: Number of quadlets for the sampled measures.
        seed: Seed for sampling.
        device: Device of the model.
        cache: Folder with cached features of a frozen backbone; None: the model's training cache, if any.
        threads: Number of files to decode in parallel.
        on_item: Callback that receives (items done, total number of items) over both splits.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: A split is missing, or the model does not accept such items.
        DatasetError: No item can be read.
    """
    if not isinstance(labelled, LabelledSet):
        if isinstance(model, Encoder):
            raise InvalidArgumentError(
                "data must be a labeled dataset if the model is not a folder, got "
                f"{'nothing' if labelled is None else os.fspath(labelled)!r}"
            )
        labelled = open_evaluation_set(model, labelled)
    if not isinstance(model, Encoder):
        folder = Path(model).expanduser() / CACHE_FOLDER
        cache = folder if cache is None and folder.is_dir() else cache
        model = load_model(model, device=device)
    for split in (query_split, gallery_split):
        if split in SPLITS and split not in labelled.split_counts():
            given = ", ".join(f"{name} {count}" for name, count in labelled.split_counts().items())
            raise InvalidArgumentError(
                f"{labelled.name} has no {split} items, only: {given}; choose other splits (--queries and --gallery) "
                "or other data"
            )
    parts = [labelled.part(query_split)]
    if gallery_split != query_split:
        parts.append(labelled.part(gallery_split))
    prepared = prepare_parts(model, parts, cache=cache, threads=threads, on_item=on_item)
    embeddings = [part.embed(model, device=model.device) for part in prepared]
    figures = measure_embeddings(
        embeddings[0],
        prepared[0].labels,
        embeddings[1] if len(prepared) > 1 else None,
        prepared[1].labels if len(prepared) > 1 else None,
        samples=samples,
        seed=seed,
    )
    return Evaluation(
        data=labelled.name,
        query_split=query_split,
        gallery_split=gallery_split,
        queries=len(embeddings[0]),
        gallery=len(embeddings[-1]),
        quadlets=int(figures.pop("quadlets")),
        missing=explain_missing(
            figures,
            prepared[0].labels,
            prepared[1].labels if len(prepared) > 1 else None,
            names=(query_split, gallery_split),
        ),
        broken=broken_files(prepared),
        **figures,
    )


@check_arguments
def embed_set(
    model: Encoder,
    labelled: LabelledSet,
    *,
    cache: PathLike | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> tuple[Tensor, Inputs]:
    """Embed all readable items; also return these items with labels. The arguments are those of `evaluate`."""
    (prepared,) = prepare_parts(model, [labelled], cache=cache, threads=threads, on_item=on_item)
    return prepared.embed(model, device=model.device), prepared

"""Evaluate an encoder: the measures of the order-preserving metric on a labeled set."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from vidkin._base.plain_values import Result
from vidkin.datasets import SPLITS, LabelledSet
from vidkin.errors import InvalidArgumentError
from vidkin.models import Encoder, load_model
from vidkin.training.data.inputs import Inputs, OnItem, prepare_parts
from vidkin.training.embedding_measures import SAMPLES, measure_embeddings
from vidkin.training.evaluation_set import open_evaluation_set
from vidkin.training.missing_figures import explain_missing

__all__ = ["CACHE_FOLDER", "Evaluation", "embed_set", "evaluate"]

PathLike = str | os.PathLike[str]

CACHE_FOLDER = "features"


@dataclass(frozen=True, kw_only=True)
class Evaluation(Result):
    """Figures in [0, 1], higher is better; nan if the splits do not define a figure, with the reason in ``missing``.

    ``qp`` and ``tp`` are computed over *test quadlets*, whose four items all come from the query split, as in the
    paper; ``qp_gallery`` and ``tp_gallery`` over *gallery quadlets*, whose p, i and n come from the gallery split. All
    other figures rank the gallery split for every query. `vidkin benchmark` uses the same names for the same figures.

    Attributes:
        data: Name of the collection.
        query_split: Split of the queries.
        gallery_split: Split to rank.
        queries: Q, number of queries.
        gallery: G, number of gallery items.
        qp: Quadlet precision over all quadlets: d(q,p) < d(q,i) < d(q,n).
        qp_sampled: The same over a random sample of 15,000, as published.
        tp: Triplet precision over all triplets of all quadlets.
        tp_sampled: The same over the triplets of the sampled quadlets.
        quadlets: Number of all test quadlets.
        qp_gallery: Quadlet precision over all gallery quadlets; ``qp`` if the splits are the same.
        tp_gallery: Triplet precision over all triplets of gallery quadlets.
        ndcg: NDCG with gain 2^relevance - 1.
        map: Mean average precision with positives and intermediates relevant.
        map_subcategory: Mean average precision with only positives relevant.
        hap: Hierarchical average precision.
        asi: Average set intersection.
        recall_at_1: Share of queries whose first result has their subcategory.
        recall_at_5: Share of queries with such a result among the first five.
        recall_at_10: Share of queries with such a result among the first ten.
        r_precision: Share of positives among the first R results, where R is the number of positives.
        missing: Reason why a figure is nan, by name: what the labels of the splits lack.
        broken: (file, cause) of items that could not be read.
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
        """Name of the figure to compare models by, higher is better: ``qp``, or ``map`` if there are no quadlets."""
        return "map" if math.isnan(self.qp) else "qp"

    @property
    def value(self) -> float:
        """The primary figure."""
        return float(getattr(self, self.primary))


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
    """Measure a model on labeled data.

    Args:
        model: A model or its folder.
        labelled: Data with a split; or a folder ``category/subcategory/file``, or None for the data of the model's
            recipe, divided by :func:`open_evaluation_set`.
        query_split: Split of the queries and the quadlets.
        gallery_split: Split to rank; if it is the same, no item ranks itself.
        samples: Quadlets of the sampled forms.
        seed: Seed of their draw.
        device: Device of the model.
        cache: Folder for features of a frozen backbone; None: the folder of the model's training, if any.
        threads: Number of files decoded at the same time.
        on_item: Callback that receives (items done, total number of items) of both splits together.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: A split is missing, or the model takes another kind of item.
        DatasetError: No item can be read.
    """
    if not isinstance(labelled, LabelledSet):
        if isinstance(model, Encoder):
            raise InvalidArgumentError(
                "data must be a labeled set if the model is not a folder, got "
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
                f"{labelled.name} has no {split} items, only: {given}; choose the splits to query and to rank "
                "(--queries and --gallery), or other data"
            )
    parts = [labelled.part(query_split)]
    if gallery_split != query_split:
        parts.append(labelled.part(gallery_split))
    prepared = prepare_parts(
        model, parts, cache=None if cache is None else Path(cache), threads=threads, on_item=on_item
    )
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
        broken=tuple((error.path, error.cause) for part in prepared for error in part.broken),
        **figures,
    )


def embed_set(
    model: Encoder,
    labelled: LabelledSet,
    *,
    cache: PathLike | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> tuple[Tensor, Inputs]:
    """Embeddings [N, D] of all items that can be read, and the items with their labels; arguments as in `evaluate`."""
    (prepared,) = prepare_parts(
        model, [labelled], cache=None if cache is None else Path(cache), threads=threads, on_item=on_item
    )
    return prepared.embed(model, device=model.device), prepared

"""What an encoder is worth: the measures of the order-preserving metric on a labelled set."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vidkin.datasets import LabelledSet
from vidkin.metric import measures
from vidkin.models import Encoder, load_model
from vidkin.training.data.inputs import Inputs, OnItem, prepare_inputs

__all__ = ["CACHE_FOLDER", "Evaluation", "embed_set", "evaluate", "measure_embeddings", "measure_one"]

CACHE_FOLDER = "features"
SAMPLES = 15_000


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Measures in [0, 1], higher is better; nan where the splits allow none.

    QP and TP look at quadlets *inside the query split* (15,000 drawn from the test split in the sources); all
    other measures rank the gallery split for every query.

    Attributes:
        data: Name of the collection.
        query_split: Split of the queries.
        gallery_split: Split that is ranked.
        queries: Q.
        gallery: G.
        qp: Quadlet precision over all quadlets: d(q,p) < d(q,i) < d(q,n).
        qp_sampled: The same over 15,000 drawn ones.
        tp: Triplet precision over all triplets of all quadlets.
        tp_sampled: The same over those of the drawn quadlets.
        quadlets: Number of all quadlets.
        ndcg: With gain 2^relevance - 1.
        map: Mean average precision, positives and intermediates relevant.
        map_subcategory: The same, positives alone relevant.
        hap: Hierarchical average precision.
        asi: Average set intersection.
        recall_at_1: Share of queries whose first hit is of their subcategory.
        recall_at_5: Of the first five any.
        recall_at_10: Of the first ten any.
        r_precision: Share of positives among the first R hits, R the number of positives.
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
    ndcg: float
    map: float
    map_subcategory: float
    hap: float
    asi: float
    recall_at_1: float
    recall_at_5: float
    recall_at_10: float
    r_precision: float
    broken: tuple[tuple[str, str], ...] = ()


def evaluate(
    model: str | os.PathLike[str] | Encoder,
    labelled: LabelledSet,
    *,
    query_split: str = "test",
    gallery_split: str = "train",
    samples: int = SAMPLES,
    seed: int = 0,
    device: str = "cpu",
    cache: str | os.PathLike[str] | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> Evaluation:
    """Measure a model on a labelled set.

    Args:
        model: A model, or the folder of one.
        labelled: With splits.
        query_split: Queries, and what quadlets are taken from.
        gallery_split: What is ranked; may be the same split, then no item ranks itself.
        samples: Quadlets of the sampled forms.
        seed: Of their draw.
        device: Where it computes.
        cache: Folder for features of a frozen backbone; None: of a model's folder the one its training used, if any.
        threads: Files that are decoded at a time.
        on_item: Called with (items done, items in all) of both splits together.

    Raises:
        InvalidArgumentError: A split is missing, or the model takes other items.
        DatasetError: No item can be read.
    """
    if not isinstance(model, Encoder):
        folder = Path(model).expanduser() / CACHE_FOLDER
        cache = folder if cache is None and folder.is_dir() else cache
        model = load_model(model, device=device)
    parts = [labelled.part(query_split)]
    if gallery_split != query_split:
        parts.append(labelled.part(gallery_split))
    total, made, before = sum(len(part) for part in parts), [], 0
    for part in parts:
        told = None if on_item is None else _shifted(on_item, before, total)
        made.append(
            prepare_inputs(
                model,
                part,
                features=_cacheable(model),
                cache=None if cache is None else Path(cache),
                threads=threads,
                on_item=told,
            )
        )
        before += len(part)
    where = model.device
    queries = made[0].embed(model, device=where)
    gallery = made[1].embed(model, device=where) if len(made) > 1 else None
    found = measure_embeddings(
        queries,
        made[0].labels,
        gallery,
        made[1].labels if len(made) > 1 else None,
        samples=samples,
        seed=seed,
    )
    return Evaluation(
        data=labelled.name,
        query_split=query_split,
        gallery_split=gallery_split,
        queries=len(queries),
        gallery=len(queries) if gallery is None else len(gallery),
        quadlets=int(found.pop("quadlets")),
        broken=tuple((error.path, error.cause) for part in made for error in part.broken),
        **found,
    )


def embed_set(
    model: Encoder,
    labelled: LabelledSet,
    *,
    cache: str | os.PathLike[str] | None = None,
    threads: int = 1,
    on_item: OnItem | None = None,
) -> tuple[Tensor, Inputs]:
    """Embeddings [N, D] of all items that can be read, and the items with their labels; arguments as of `evaluate`."""
    made = prepare_inputs(
        model,
        labelled,
        features=_cacheable(model),
        cache=None if cache is None else Path(cache),
        threads=threads,
        on_item=on_item,
    )
    return made.embed(model, device=model.device), made


def measure_embeddings(
    queries: Tensor,
    query_labels: Tensor,
    gallery: Tensor | None,
    gallery_labels: Tensor | None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[str, float]:
    """The measures of :class:`Evaluation` by name, of unit vectors.

    Args:
        queries: [Q, D].
        query_labels: [Q, 2] (category, subcategory).
        gallery: [G, D]; None: the queries, none of which ranks itself.
        gallery_labels: [G, 2]; None likewise.
        samples: Quadlets of the sampled forms.
        seed: Of their draw.
    """
    inner, graded, others = _among(queries, query_labels)
    found = {
        "qp_sampled": float(
            _number(measures.quadlet_precision(inner, graded, valid=others, samples=samples, seed=seed))
        ),
        "tp": _number(measures.triplet_precision(inner, graded, valid=others)),
        "tp_sampled": _number(
            measures.triplet_precision(inner, graded, valid=others, samples=samples, seed=seed)
        ),
    }
    exact = measures.quadlet_precision(inner, graded, valid=others)
    assert isinstance(exact, measures.CountedMean)
    found |= {"qp": float(exact), "quadlets": float(exact.count)}
    scores, relevance, valid = inner, graded, others
    if gallery is not None and gallery_labels is not None:
        scores, relevance = queries @ gallery.T, measures.graded_relevance(query_labels, gallery_labels)
        valid = torch.ones_like(relevance, dtype=torch.bool)
    for name, measure in _RANKED.items():
        found[name] = measure(scores, relevance, valid)
    return found


def measure_one(name: str, queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor) -> float:
    """One measure of :data:`vidkin.training.Measure`: ``qp`` and ``tp`` among the queries, others on the gallery."""
    if name in ("qp", "tp"):
        inner, graded, others = _among(queries, query_labels)
        measure = measures.quadlet_precision if name == "qp" else measures.triplet_precision
        return _number(measure(inner, graded, valid=others))
    relevance = measures.graded_relevance(query_labels, labels)
    return _RANKED[name](queries @ gallery.T, relevance, torch.ones_like(relevance, dtype=torch.bool))


def _among(vectors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(scores, relevance, pairs that count) of items against each other."""
    return (
        vectors @ vectors.T,
        measures.graded_relevance(labels, labels),
        ~torch.eye(len(vectors), dtype=torch.bool),
    )


def _number(value: measures.CountedMean | Tensor | float) -> float:
    assert not isinstance(value, Tensor)
    return float(value)


def _cacheable(model: Encoder) -> bool:
    return model.config.trainable == "head" and model.config.kind in ("clip", "image")


def _shifted(on_item: OnItem, before: int, total: int) -> OnItem:
    return lambda done, _: on_item(before + done, total)


_Measure = Callable[[Tensor, Tensor, Tensor], float]
_RANKED: dict[str, _Measure] = {
    "ndcg": lambda s, r, v: _number(measures.ndcg(s, r, valid=v)),
    "map": lambda s, r, v: _number(measures.mean_average_precision(s, r, valid=v)),
    "map_subcategory": lambda s, r, v: _number(measures.mean_average_precision(s, r, level=2, valid=v)),
    "hap": lambda s, r, v: _number(measures.hierarchical_average_precision(s, r, valid=v)),
    "asi": lambda s, r, v: _number(measures.average_set_intersection(s, r, valid=v)),
    "recall_at_1": lambda s, r, v: _number(measures.recall_at_k(s, r, 1, level=2, valid=v)),
    "recall_at_5": lambda s, r, v: _number(measures.recall_at_k(s, r, 5, level=2, valid=v)),
    "recall_at_10": lambda s, r, v: _number(measures.recall_at_k(s, r, 10, level=2, valid=v)),
    "r_precision": lambda s, r, v: _number(measures.r_precision(s, r, level=2, valid=v)),
}

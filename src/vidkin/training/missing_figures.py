"""Why a figure of an evaluation is undefined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from torch import Tensor

from vidkin.training.embedding_measures import TUPLES

__all__ = ["explain_missing"]

# These figures need gallery items of the query's category; all other ranked figures need its subcategory.
_OF_CATEGORIES = ("ndcg", "map", "hap", "asi")


def explain_missing(
    figures: Mapping[str, float], queries: Tensor, gallery: Tensor | None, *, names: tuple[str, str]
) -> dict[str, str]:
    """The reason for each figure that is nan, by the figure's name.

    Args:
        figures: Result of :func:`vidkin.training.measure_embeddings`.
        queries: [Q, 2] labels (category, subcategory).
        gallery: [G, 2] labels of the gallery; None: the queries rank each other.
        names: Names of the splits of queries and gallery.
    """
    reasons = {}
    for name, value in figures.items():
        if not math.isnan(value):
            continue
        if name in ("qp_gallery", "tp_gallery"):
            reasons[name] = (
                f"no {names[0]} item has {names[1]} items of its subcategory, of another one of its category, and of "
                "another category"
            )
        elif name in TUPLES:
            reasons[name] = (
                f"no quadlets among the {len(queries)} {names[0]} items: {_without_quadlets(queries)}"
            )
        else:
            level = "category" if name in _OF_CATEGORIES else "subcategory"
            others = "other " if gallery is None else ""
            reasons[name] = f"no {others}{names[1]} item has the {level} of a {names[0]} item"
    return reasons


def _without_quadlets(labels: Tensor) -> str:
    """The first requirement for quadlets that the labels do not meet."""
    rows = [(int(category), int(subcategory)) for category, subcategory in labels.tolist()]
    counts = Counter(rows)
    categories = {category for category, _ in rows}
    if len(categories) < 2:
        return "they have one category"
    if max(counts.values()) < 2:
        return "no subcategory has two of them"
    if max(Counter(category for category, _ in counts).values()) < 2:
        return "no category has two subcategories"
    return "no subcategory with two of them has another subcategory in its category"

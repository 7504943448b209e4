"""Naive implementations of the measures in plain Python, for one query at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch


def fixture_scores() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores [12, 12], relevance and valid pairs of the frozen fixture evaluated with public reference systems."""
    i, j = torch.arange(12.0).unsqueeze(1), torch.arange(8.0).unsqueeze(0)
    x = torch.nn.functional.normalize(torch.sin(0.7 * i + 1.3 * j + 0.1 * i * j), dim=1)
    fine = torch.arange(12) // 3
    coarse = fine // 2
    relevance = (fine[:, None] == fine).long() + (coarse[:, None] == coarse).long()
    return x @ x.T, relevance, ~torch.eye(12, dtype=torch.bool)


def random_case(
    seed: int, queries: int = 7, gallery: int = 13, grades: int = 3, distinct: int = 5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random scores with many ties, relevance, and valid pairs."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(distinct, (queries, gallery), generator=generator).float() / distinct
    relevance = torch.randint(grades, (queries, gallery), generator=generator)
    valid = torch.rand(queries, gallery, generator=generator) < 0.8
    return scores, relevance, valid


def ranked_lists(
    scores: torch.Tensor, relevance: torch.Tensor, valid: torch.Tensor | None = None
) -> list[list[tuple[float, int]]]:
    """(score, relevance) of each query in descending order of score; ties stay in column order."""
    lists = []
    for row in range(len(scores)):
        pairs = [
            (scores[row, column].item(), int(relevance[row, column].item()))
            for column in range(scores.shape[1])
            if valid is None or bool(valid[row, column])
        ]
        lists.append(sorted(pairs, key=lambda pair: -pair[0]))
    return lists


def over_orders(ranked: list[tuple[float, int]], measure: Callable[[list[int]], float]) -> float:
    """Mean of a measure over all orders of tied items."""
    runs = [[grade for _, grade in run] for _, run in itertools.groupby(ranked, key=lambda pair: pair[0])]
    orders = itertools.product(*(itertools.permutations(run) for run in runs))
    values = [measure([grade for run in order for grade in run]) for order in orders]
    return sum(values) / len(values)


def grades_of(ranked: list[tuple[float, int]]) -> list[int]:
    return [grade for _, grade in ranked]


def average_precision(grades: Sequence[int], level: int = 1) -> float:
    hits = [rank for rank, grade in enumerate(grades, start=1) if grade >= level]
    if not hits:
        return math.nan
    return sum((number / rank) for number, rank in enumerate(hits, start=1)) / len(hits)


def ndcg(grades: Sequence[int], k: int | None = None, *, linear: bool = False) -> float:
    def dcg(order: Sequence[int]) -> float:
        gains = [float(g) if linear else 2.0**g - 1 for g in order[:k]]
        return sum(gain / math.log2(1 + rank) for rank, gain in enumerate(gains, start=1))

    best = dcg(sorted(grades, reverse=True))
    return dcg(grades) / best if best else math.nan


def recall_hit(grades: Sequence[int], k: int, level: int = 1) -> float:
    if not any(grade >= level for grade in grades):
        return math.nan
    return float(any(grade >= level for grade in grades[:k]))


def recall_share(grades: Sequence[int], k: int, level: int = 1) -> float:
    total = sum(grade >= level for grade in grades)
    return sum(grade >= level for grade in grades[:k]) / total if total else math.nan


def r_precision(grades: Sequence[int], level: int = 1) -> float:
    total = sum(grade >= level for grade in grades)
    return recall_share(grades, total, level) if total else math.nan


def map_at_r(grades: Sequence[int], level: int = 1) -> float:
    total = sum(grade >= level for grade in grades)
    if not total:
        return math.nan
    hits = [rank for rank, grade in enumerate(grades[:total], start=1) if grade >= level]
    return sum(number / rank for number, rank in enumerate(hits, start=1)) / total


def hierarchical_ap(grades: Sequence[int], levels: int, alpha: float = 1.0, *, population: bool = True) -> float:
    value = {0: 0.0}
    for level in range(1, levels + 1):
        count = grades.count(level) if population else 1
        value[level] = (level / levels) ** alpha / max(1, count)
    total = sum(value[grade] for grade in grades)
    climbed = 0.0
    for k, grade in enumerate(grades):
        if grade:
            climbed += sum(min(value[grade], value[other]) for other in grades[: k + 1]) / (k + 1)
    return climbed / total if total else math.nan


def set_intersection(grades: Sequence[int], *, whole: bool = False) -> float:
    best = sorted(grades, reverse=True)
    positives = sum(grade > 0 for grade in grades)
    until = len(grades) if whole else positives
    if not positives:
        return math.nan
    values = []
    for n in range(1, until + 1):
        shared = sum(min(grades[:n].count(g), best[:n].count(g)) for g in set(grades))
        values.append(shared / n)
    return sum(values) / until


def quadlets(scores: Sequence[float], grades: Sequence[int]) -> list[bool]:
    """Whether each quadlet of a query is in order, over all (p, i, n)."""
    by_grade = [[s for s, g in zip(scores, grades, strict=True) if g == grade] for grade in (2, 1, 0)]
    return [p > i > n for p, i, n in itertools.product(*by_grade)]


def quadlet_triplets(scores: Sequence[float], grades: Sequence[int]) -> list[bool]:
    by_grade = [[s for s, g in zip(scores, grades, strict=True) if g == grade] for grade in (2, 1, 0)]
    return [right for p, i, n in itertools.product(*by_grade) for right in (p > n, i > n)]


def distinct_triplets(scores: Sequence[float], grades: Sequence[int]) -> list[bool]:
    near = [s for s, g in zip(scores, grades, strict=True) if g > 0]
    far = [s for s, g in zip(scores, grades, strict=True) if g == 0]
    return [a > b for a in near for b in far]

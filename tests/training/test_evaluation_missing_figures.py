"""Reasons why results are undefined."""

from __future__ import annotations

import math

import pytest
import torch

from vidkin.training import measure_embeddings
from vidkin.training.evaluation import explain_missing


def reasons(queries: list[list[int]], gallery: list[list[int]] | None) -> dict[str, str]:
    labels = torch.tensor(queries)
    ranked = None if gallery is None else torch.tensor(gallery)
    figures = measure_embeddings(
        torch.eye(8)[: len(labels)], labels, None if ranked is None else torch.eye(8)[: len(ranked)], ranked
    )
    found = explain_missing(figures, labels, ranked, names=("test", "train"))
    assert set(found) == {name for name, value in figures.items() if math.isnan(value)}
    return found


@pytest.mark.parametrize(
    ("queries", "cause"),
    [
        ([[0, 0], [0, 0], [0, 1]], "there is only one category"),
        ([[0, 0], [0, 1], [1, 2]], "no subcategory has two items"),
        ([[0, 0], [0, 0], [1, 2]], "no category has two subcategories"),
        (
            [[0, 0], [0, 0], [1, 2], [1, 3]],
            "no subcategory with two items has another subcategory in its category",
        ),
    ],
)
def test_reasons_for_missing_quadlets(queries: list[list[int]], cause: str) -> None:
    found = reasons(queries, queries)
    assert {"qp", "qp_sampled", "tp", "tp_sampled"} <= set(found)
    assert found["qp"] == f"no quadlets among the {len(queries)} test items: {cause}"


def test_reasons_name_missing_labels_of_the_gallery() -> None:
    queries = [[0, 0], [0, 0], [0, 1], [1, 2]]
    same_category = reasons(queries, [[0, 5], [1, 6]])
    assert same_category["qp_gallery"].startswith("no test item has train items from its subcategory, from another")
    assert same_category["recall_at_1"] == "no train item has the subcategory of a test item"
    assert "map" not in same_category
    other = reasons(queries, [[7, 8]])
    assert other["map"] == "no train item has the category of a test item"


def test_defined_results_have_no_reasons() -> None:
    labels = [[0, 0], [0, 0], [0, 1], [1, 2]]
    assert reasons(labels, labels) == {}

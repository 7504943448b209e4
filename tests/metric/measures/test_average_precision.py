"""Average precision: hand-computed values, a naive implementation, all orders of ties, and published values."""

from __future__ import annotations

import json
import math
import pickle
from hashlib import sha1
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.metric.measures import naive
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import (
    CountedMean,
    average_precision,
    average_precision_per_level,
    mean_average_precision,
    micro_average_precision,
)

T = torch.tensor


@pytest.mark.parametrize(
    ("relevance", "expected"),
    [
        ([1, 0, 1, 0], (1 / 1 + 2 / 3) / 2),
        ([0, 0, 0, 1], 1 / 4),
        ([1, 1, 0, 0], 1.0),
        ([1, 1, 1, 1], 1.0),
        ([0, 1, 0, 1], (1 / 2 + 2 / 4) / 2),
    ],
)
def test_average_precision_of_short_lists_matches_hand_computed_values(relevance: list[int], expected: float) -> None:
    scores = T([[0.9, 0.8, 0.7, 0.6]])
    assert average_precision(scores, T([relevance])).item() == pytest.approx(expected)
    assert average_precision(scores[0], T(relevance)).shape == ()
    assert average_precision(scores[0], T(relevance)).item() == pytest.approx(expected)


def test_queries_without_positives_are_skipped_and_counted() -> None:
    scores = T([[0.9, 0.1], [0.9, 0.1], [0.2, 0.3]])
    relevance = T([[0, 1], [0, 0], [0, 1]])
    mean = mean_average_precision(scores, relevance)
    assert mean == pytest.approx((0.5 + 1.0) / 2)
    assert (mean.count, mean.skipped) == (2, 1)
    assert average_precision(scores, relevance).isnan().tolist() == [False, True, False]


def test_missing_positives_give_nan_and_a_count_of_zero() -> None:
    mean = mean_average_precision(torch.rand(3, 4), torch.zeros(3, 4, dtype=torch.long))
    assert math.isnan(mean)
    assert (mean.count, mean.skipped) == (0, 3)
    assert math.isnan(micro_average_precision(torch.rand(3, 4), torch.zeros(3, 4)))


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
@pytest.mark.parametrize("ties", ["stable", "expected"])
def test_empty_matrices_count_no_queries(shape: tuple[int, int], ties: str) -> None:
    mean = mean_average_precision(torch.zeros(shape), torch.zeros(shape), ties=ties)  # type: ignore[arg-type]
    assert math.isnan(mean)
    assert (mean.count, mean.skipped) == (0, shape[0])
    assert math.isnan(micro_average_precision(torch.zeros(shape), torch.zeros(shape), ties=ties))  # type: ignore[arg-type]


def test_counted_mean_is_a_float_that_can_be_pickled() -> None:
    mean = CountedMean(0.25, 4, 1)
    assert json.dumps({"mAP": mean}) == '{"mAP": 0.25}'
    again = pickle.loads(pickle.dumps(mean))
    assert (again, again.count, again.skipped) == (0.25, 4, 1)


def test_ties_rank_in_column_order_or_average_over_orders() -> None:
    scores = torch.zeros(1, 3)
    assert average_precision(scores, T([[1, 0, 0]])).item() == 1.0
    assert average_precision(scores, T([[0, 0, 1]])).item() == pytest.approx(1 / 3)
    expected = (1 + 1 / 2 + 1 / 3) / 3
    for relevance in ([1, 0, 0], [0, 1, 0], [0, 0, 1]):
        value = average_precision(scores, T([relevance]), ties="expected")
        assert value.item() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("level", [1, 2])
def test_values_equal_those_of_the_naive_implementation(seed: int, level: int) -> None:
    scores, relevance, valid = naive.random_case(seed)
    lists = naive.ranked_lists(scores, relevance, valid)
    stable = [naive.average_precision(naive.grades_of(ranked), level) for ranked in lists]
    assert average_precision(scores, relevance, level=level, valid=valid).tolist() == pytest.approx(stable, nan_ok=True)


@pytest.mark.parametrize("seed", range(3))
def test_expected_ties_equal_the_mean_over_every_order(seed: int) -> None:
    scores, relevance, valid = naive.random_case(seed, queries=5, gallery=8, distinct=3)
    lists = naive.ranked_lists(scores, relevance, valid)
    expected = [naive.over_orders(ranked, naive.average_precision) for ranked in lists]
    value = average_precision(scores, relevance, ties="expected", valid=valid)
    assert value.tolist() == pytest.approx(expected, nan_ok=True)
    few = scores[:2, :4], relevance[:2, :4]
    flat = naive.ranked_lists(few[0].reshape(1, -1), few[1].reshape(1, -1))[0]
    assert micro_average_precision(*few, ties="expected") == pytest.approx(
        naive.over_orders(flat, naive.average_precision), nan_ok=True
    )


def test_micro_average_precision_ranks_all_pairs_in_one_list() -> None:
    # Ranked: 0.9 yes, 0.8 no, 0.7 yes, 0.2 no -> (1 + 2/3) / 2, although each query on its own is perfect.
    scores, relevance = T([[0.9, 0.8], [0.7, 0.2]]), T([[1, 0], [1, 0]])
    assert micro_average_precision(scores, relevance) == pytest.approx((1 + 2 / 3) / 2)
    assert mean_average_precision(scores, relevance) == 1.0
    valid = T([[True, False], [True, True]])
    assert micro_average_precision(scores, relevance, valid=valid) == 1.0


def test_per_level_returns_every_level_that_occurs() -> None:
    scores, relevance, valid = naive.random_case(3)
    levels = average_precision_per_level(scores, relevance, valid=valid)
    assert sorted(levels) == [1, 2]
    for level, value in levels.items():
        assert value == mean_average_precision(scores, relevance, level=level, valid=valid)
    assert sorted(average_precision_per_level(scores, relevance * 0, levels=3)) == [1, 2, 3]


@given(st.data())
def test_permutations_and_monotone_maps_do_not_change_the_values(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 12))
    ranks = data.draw(st.permutations(range(length)))
    relevance = T([data.draw(st.lists(st.integers(0, 2), min_size=length, max_size=length))])
    scores = T([ranks]).double()
    order = T(data.draw(st.permutations(range(length))))
    value = average_precision(scores, relevance)
    # Without ties, both tie rules ignore the gallery order and monotone transformations of the scores.
    assert torch.allclose(value, average_precision(scores[:, order], relevance[:, order]), equal_nan=True)
    assert torch.allclose(value, average_precision(torch.exp(scores / 3), relevance), equal_nan=True)
    assert torch.allclose(value, average_precision(scores, relevance, ties="expected"), equal_nan=True)
    if not value.isnan().item():
        count = int((relevance > 0).sum())
        worst = sum(n / (length - count + n) for n in range(1, count + 1)) / count
        assert worst - 1e-12 <= value.item() <= 1 + 1e-12


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=7).filter(
        lambda pairs: any(grade for _, grade in pairs)
    )
)
def test_expected_ties_do_not_depend_on_the_order_of_the_gallery(pairs: list[tuple[int, int]]) -> None:
    scores, relevance = T([[float(score) for score, _ in pairs]]), T([[grade for _, grade in pairs]])
    value = average_precision(scores, relevance, ties="expected").item()
    turned = average_precision(scores.flip(1), relevance.flip(1), ties="expected").item()
    assert value == pytest.approx(turned)
    ranked = naive.ranked_lists(scores, relevance)[0]
    assert value == pytest.approx(naive.over_orders(ranked, naive.average_precision))


def test_blocks_of_queries_do_not_change_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, relevance, valid = naive.random_case(1, queries=11)
    whole = average_precision(scores, relevance, valid=valid)
    monkeypatch.setattr("vidkin.metric.measures.ranking.BLOCK_CELLS", 30)
    assert torch.equal(average_precision(scores, relevance, valid=valid).nan_to_num(-1), whole.nan_to_num(-1))


def test_excluded_pairs_may_have_any_score() -> None:
    scores = T([[0.9, float("nan"), 0.1, float("inf")]])
    valid = T([[True, False, True, False]])
    assert average_precision(scores, T([[0, 1, 1, 1]]), valid=valid).item() == 0.5


def test_half_precision_scores_are_ranked_without_conversion() -> None:
    scores = T([[0.9, 0.5, 0.7]], dtype=torch.bfloat16)
    assert average_precision(scores, T([[False, False, True]])).item() == 0.5


def test_values_equal_those_of_a_public_implementation() -> None:
    scores, relevance, valid = naive.fixture_scores()
    fine = mean_average_precision(scores, relevance, level=2, valid=valid)
    coarse = mean_average_precision(scores, relevance, level=1, valid=valid)
    assert fine == pytest.approx(0.6699073910713196, abs=1e-6)
    assert coarse == pytest.approx(0.6068987250328064, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)),
            r"scores must be \[Q, G\] floating point, got \[2, 3, 4\]",
        ),
        ((torch.zeros(2, 3).long(), torch.zeros(2, 3)), r"got \[2, 3\] torch.int64"),
        (
            (torch.zeros(2, 3), torch.zeros(3, 2)),
            r"relevance must have the shape of scores \[2, 3\], got \[3, 2\]",
        ),
        ((torch.full((1, 2), float("nan")), torch.ones(1, 2)), "scores must not contain NaN"),
        ((torch.zeros(1, 2), -torch.ones(1, 2)), "relevance must be at least 0"),
        ((torch.zeros(1, 2), torch.full((1, 2), float("nan"))), "relevance must be at least 0"),
    ],
)
def test_invalid_input_is_rejected(arguments: tuple[torch.Tensor, torch.Tensor], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        mean_average_precision(*arguments)


def test_unknown_choices_are_rejected() -> None:
    scores, relevance = torch.rand(2, 3), torch.ones(2, 3)
    with pytest.raises(InvalidArgumentError, match="ties must be one of 'stable', 'expected', got 'random'"):
        average_precision(scores, relevance, ties="random")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"valid must be bool .* got \[2, 3\] torch.float32"):
        average_precision(scores, relevance, valid=torch.ones(2, 3))


@pytest.mark.data
@pytest.mark.parametrize(
    ("kinds", "retrieval", "detection"),
    [
        (("ND", "DS"), "DSVR", "DSVD"),
        (("ND", "DS", "CS"), "CSVR", "CSVD"),
        (("ND", "DS", "CS", "IS"), "ISVR", "ISVD"),
    ],
)
def test_fivr_5k_values_match_its_evaluator(
    shared_data: Path, kinds: tuple[str, ...], retrieval: str, detection: str
) -> None:
    scores, relevance, valid = _fivr_5k(shared_data, kinds)
    expected = json.loads((shared_data / "anchors" / "fivr_5k_evaluator.json").read_text())["FIVR-5K"]
    mean = mean_average_precision(scores, relevance, valid=valid)
    assert mean == pytest.approx(expected[retrieval], abs=5e-9)
    assert mean.count == 50
    assert micro_average_precision(scores, relevance, valid=valid) == pytest.approx(expected[detection], abs=5e-9)


def _fivr_5k(shared_data: Path, kinds: tuple[str, ...]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores [50, 5000] of the reference recipe: a hash in [0, 1) plus a bonus for the kind of the pair."""
    folder = shared_data / "annotations" / "fivr"
    labels = json.loads((folder / "annotation.json").read_text())
    queries, database = (
        [line.split()[0] for line in (folder / f"fivr-5k-{name}.txt").read_text().splitlines()]
        for name in ("queries", "database")
    )
    bonus = {"IS": 0.3, "CS": 0.5, "DS": 0.7, "ND": 0.9}
    scores = torch.zeros(len(queries), len(database), dtype=torch.float64)
    relevance = torch.zeros(len(queries), len(database), dtype=torch.bool)
    valid = torch.tensor([[video != query for video in database] for query in queries])
    column = {video: number for number, video in enumerate(database)}
    for row, query in enumerate(queries):
        numbers = [int(sha1(f"{query}|{video}".encode()).hexdigest()[:8], 16) for video in database]
        scores[row] = torch.tensor(numbers, dtype=torch.float64) / 2**32
        added: dict[int, float] = {}
        for kind, amount in bonus.items():
            for video in labels[query].get(kind, []):
                if video in column:
                    added[column[video]] = amount
                    relevance[row, column[video]] |= kind in kinds
        for number, amount in added.items():
            scores[row, number] += amount
    return scores, relevance, valid

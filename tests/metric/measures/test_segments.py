"""Precision, recall, F-score and AP of copied segments."""

from __future__ import annotations

import math

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import (
    SegmentScores,
    segment_average_precision,
    segment_f_score,
    segment_precision_recall,
    segment_scores,
)

NONE = torch.zeros(0, 4)


def boxes(*rows: tuple[float, float, float, float]) -> torch.Tensor:
    return torch.tensor(rows)


def test_precision_and_recall_of_one_box_match_hand_computed_values() -> None:
    # The predicted box is inside the true one and covers half of it on both axes.
    found, truth = boxes((0, 100, 5, 105)), boxes((0, 100, 10, 110))
    assert segment_precision_recall(found, truth) == pytest.approx((1.0, 1 / 4))
    assert segment_precision_recall(truth, found) == pytest.approx((1 / 4, 1.0))
    assert segment_f_score([found], [truth]) == pytest.approx(2 * (1 / 4) / (1 + 1 / 4))


def test_pieces_of_a_copy_are_as_good_as_the_whole() -> None:
    truth = boxes((0, 100, 10, 110))
    pieces = boxes((0, 100, 4, 104), (4, 104, 10, 110))
    assert segment_precision_recall(pieces, truth) == pytest.approx((1.0, 1.0))
    # A duplicate box counts twice in precision but once in recall.
    twice = boxes((0, 100, 5, 105), (0, 100, 5, 105))
    assert segment_precision_recall(twice, truth) == pytest.approx((1.0, 1 / 4))


def test_boxes_that_overlap_on_one_axis_only_are_wrong() -> None:
    assert segment_precision_recall(boxes((0, 0, 10, 10)), boxes((0, 50, 10, 60))) == (0.0, 0.0)
    assert segment_f_score([boxes((0, 0, 10, 10))], [boxes((0, 50, 10, 60))]) == 0.0


def test_half_covered_prediction_has_half_the_precision() -> None:
    found = boxes((0, 0, 10, 10), (20, 20, 30, 30))
    truth = boxes((0, 0, 10, 10))
    # On each axis, the truth covers 10 of 20 predicted seconds.
    assert segment_precision_recall(found, truth) == pytest.approx((1 / 4, 1.0))


def test_micro_average_leaves_out_pairs_without_a_denominator() -> None:
    box = boxes((0, 0, 10, 10))
    assert segment_precision_recall(NONE, box) == (1.0, 0.0)
    assert segment_precision_recall(box, NONE) == (0.0, 1.0)
    assert segment_precision_recall(NONE, NONE) == (1.0, 1.0)
    predicted, truth = [box, NONE, box, NONE], [box, box, NONE, NONE]
    micro = segment_scores(predicted, truth)
    assert micro == SegmentScores(1 / 2, 1 / 2)
    assert micro.f_score == 1 / 2
    assert segment_scores(predicted, truth, average="macro") == SegmentScores(3 / 4, 3 / 4)
    # Pairs in groups (first), (the rest): precision (1 + 2/3) / 2.
    grouped = segment_scores(predicted, truth, average="macro", groups=["a", "b", "b", "b"])
    assert grouped == SegmentScores(pytest.approx(5 / 6), pytest.approx(5 / 6))  # type: ignore[arg-type]
    assert math.isnan(segment_f_score([NONE], [NONE]))
    assert math.isnan(segment_f_score([], []))


@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_counting_seconds(seed: int) -> None:
    """With integer times, the covered length of a box is the number of its cells covered by intersecting boxes."""
    generator = torch.Generator().manual_seed(seed)

    def some(count: int) -> torch.Tensor:
        start = torch.randint(20, (count, 2), generator=generator)
        return torch.cat([start, start + torch.randint(1, 10, (count, 2), generator=generator)], dim=1)

    def share(ours: torch.Tensor, theirs: torch.Tensor) -> float:
        product = 1.0
        for axis in (0, 1):
            covered = total = 0
            for mine in ours.tolist():
                cells = set()
                for other in theirs.tolist():
                    spans = [set(range(mine[a], mine[a + 2])) & set(range(other[a], other[a + 2])) for a in (0, 1)]
                    if all(spans):
                        cells |= spans[axis]
                covered += len(cells)
                total += mine[axis + 2] - mine[axis]
            product *= covered / total
        return product

    found, truth = some(4), some(3)
    expected = (share(found, truth), share(truth, found))
    assert segment_precision_recall(found, truth) == pytest.approx(expected)
    order = torch.randperm(4, generator=generator)
    assert segment_precision_recall(found[order], truth.flip(0)) == pytest.approx(expected)


def test_invalid_input_is_rejected() -> None:
    box = boxes((0, 0, 10, 10))
    with pytest.raises(InvalidArgumentError, match=r"predicted must be \[N, 4\] boxes, got \[1, 3\]"):
        segment_precision_recall(torch.ones(1, 3), box)
    with pytest.raises(InvalidArgumentError, match=r"truth must contain boxes .* that end after they start"):
        segment_precision_recall(box, boxes((0, 10, 0, 10)))
    with pytest.raises(InvalidArgumentError, match="the same length, got 1, 2 and none"):
        segment_scores([box], [box, box])
    with pytest.raises(InvalidArgumentError, match="average must be one of 'micro', 'macro', got 'pair'"):
        segment_scores([box], [box], average="pair")  # type: ignore[arg-type]


def test_segment_average_precision_matches_hand_computed_values() -> None:
    truth = [
        torch.tensor([[0.0, 0.0, 10.0, 10.0]]),
        torch.tensor([[0.0, 0.0, 10.0, 10.0]]),
        torch.zeros(0, 4),
    ]
    exact, half = torch.tensor([[0.0, 0.0, 10.0, 10.0]]), torch.tensor([[0.0, 0.0, 5.0, 5.0]])
    sure, less, least = torch.tensor([0.9]), torch.tensor([0.5]), torch.tensor([0.1])
    nothing, none = torch.zeros(0, 4), torch.zeros(0)
    # All of the first pair, then half of the second: recall is 1/2 and 3/4, both at a precision of 1.
    assert segment_average_precision([exact, half, nothing], [sure, less, none], truth) == pytest.approx(0.75)
    # With a wrong box in between, 15 of 20 seconds are correct at the second step.
    found = segment_average_precision([exact, half, half], [sure, least, less], truth)
    assert found == pytest.approx(0.5 + 0.25 * 15 / 20)
    # Equal scores form a single step.
    together = segment_average_precision([exact, half, half], [sure, sure, sure], truth)
    assert together == pytest.approx(0.75 * 15 / 20)
    # Footage found twice counts once; a box is wrong if it overlaps no true box on both axes.
    twice = segment_average_precision([torch.cat([exact, exact])], [torch.tensor([0.9, 0.8])], truth[:1])
    assert twice == pytest.approx(1.0)
    beside = torch.tensor([[0.0, 20.0, 10.0, 30.0]])
    assert segment_average_precision([beside], [sure], truth[:1]) == 0.0
    assert math.isnan(segment_average_precision([half], [sure], [nothing]))
    with pytest.raises(InvalidArgumentError, match=r"scores must be \[1\], one per box, got \[0\]"):
        segment_average_precision([half], [none], [nothing])

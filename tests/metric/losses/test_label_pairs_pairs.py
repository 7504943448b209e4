"""Masks of positives and negatives match plain loops; shapes are checked."""

from __future__ import annotations

import re

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import BatchHardTripletLoss, batch_hard_triplet_loss
from vidkin.metric.losses.label_pairs import label_levels, resolve_pairs


def loops(
    labels: list[list[int]], others: list[list[int]], offset: int | None
) -> tuple[list[list[bool]], list[list[bool]], list[list[bool]]]:
    """(positives, negatives, same category) of every query and reference, computed in loops."""
    positives, negatives, categories = [], [], []
    for i, one in enumerate(labels):
        positives.append([one == other and (offset is None or j != i + offset) for j, other in enumerate(others)])
        negatives.append([one != other for other in others])
        categories.append([one[0] == other[0] for other in others])
    return positives, negatives, categories


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_masks_equal_plain_loops(seed: int, levels: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (6, levels), generator=generator)
    others = torch.cat([torch.randint(0, 2, (3, levels), generator=generator), labels])
    vectors, more = torch.randn(6, 4, generator=generator), torch.randn(9, 4, generator=generator)
    cases = [
        (None, None, None, labels, 0),
        (more, others, None, others, None),
        (more, others, 3, others, 3),
    ]
    for reference, reference_labels, offset, against, expected_offset in cases:
        pairs = resolve_pairs(vectors, labels, reference, reference_labels, offset)
        expected = loops(labels.tolist(), against.tolist(), expected_offset)
        assert (pairs.positives.tolist(), pairs.negatives.tolist(), pairs.same_category.tolist()) == expected
        assert pairs.within == (reference is None)


def test_labels_with_one_level_need_no_second_dimension() -> None:
    labels = torch.tensor([4, 4, 7])
    assert torch.equal(label_levels(labels, 3, "labels"), labels[:, None])
    flat, deep = (resolve_pairs(torch.eye(3), given, None, None, None) for given in (labels, labels[:, None]))
    assert torch.equal(flat.positives, deep.positives)
    assert flat.positives.tolist() == [[False, True, False], [True, False, False], [False, False, False]]


def test_half_precision_is_widened() -> None:
    pairs = resolve_pairs(torch.eye(2).bfloat16(), torch.arange(2), torch.eye(2).half(), torch.arange(2), None)
    assert (pairs.queries.dtype, pairs.references.dtype) == (torch.float32, torch.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embeddings": torch.zeros(3)}, "embeddings must be [N, D] floating point, got (3,) torch.float32"),
        (
            {"labels": torch.zeros(2)},
            "labels must have one row for each embedding, shape (3,) or (3, levels), got (2,)",
        ),
        ({"labels": torch.zeros(3, 1, 1)}, "shape (3,) or (3, levels), got (3, 1, 1)"),
        ({"reference": None}, "reference and reference_labels must be given together, or neither"),
        (
            {"reference": torch.zeros(4, 3)},
            "reference must have shape [M, 2] like the embeddings, got (4, 3)",
        ),
        (
            {"reference_labels": torch.zeros(3)},
            "reference_labels must have one row for each embedding, shape (4,)",
        ),
        ({"reference_labels": torch.zeros(4, 2)}, "must have the same levels, got 1 and 2"),
        ({"self_offset": 2}, "self_offset must be from 0 to 1 for 3 queries among 4 references, got 2"),
        ({"self_offset": -1}, "self_offset must be from 0 to 1 for 3 queries among 4 references, got -1"),
        (
            {"reference": None, "reference_labels": None, "self_offset": 0},
            "self_offset needs a reference set",
        ),
    ],
)
def test_errors_name_the_mismatched_argument(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "embeddings": torch.zeros(3, 2),
        "labels": torch.zeros(3),
        "reference": torch.zeros(4, 2),
        "reference_labels": torch.zeros(4),
        "self_offset": None,
        **changes,
    }
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        resolve_pairs(**arguments)  # type: ignore[arg-type]


def test_module_passes_all_arguments_to_its_function() -> None:
    """The queries are references 1 and 2, so each is the only positive of the other, and reference 0 is a negative."""
    vectors = torch.tensor([[0.0], [3.0]])
    references = torch.tensor([[1.0], [0.0], [3.0]])
    arguments = (vectors, torch.tensor([5, 5]), references, torch.tensor([6, 5, 5]))
    loss = BatchHardTripletLoss(margin=2.0, reduction="none")(*arguments, self_offset=1)
    # Squared distances: 9 to the positive for both queries; 1 and 4 to the negative.
    assert loss.tolist() == [2 + 9 - 1, 2 + 9 - 4]
    assert torch.equal(loss, batch_hard_triplet_loss(*arguments, self_offset=1, margin=2.0, reduction="none"))
    # Without the offset, each query also finds itself at distance 0; the farthest positive is the same.
    assert torch.equal(loss, BatchHardTripletLoss(margin=2.0, reduction="none")(*arguments))

"""Normalized mutual information and accuracy."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import normalized_mutual_info_score

from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import accuracy, accuracy_per_class, normalized_mutual_information

T = torch.tensor


def test_mutual_information_matches_hand_computed_values() -> None:
    # If clusters halve each of two labels, I = 0. If they refine the labels, I = H(L) = log 2 and H(C) = log 4.
    assert normalized_mutual_information(T([0, 1, 0, 1]), T([0, 0, 1, 1])) == pytest.approx(0.0)
    assert normalized_mutual_information(T([0, 1, 2, 3]), T([0, 0, 1, 1])) == pytest.approx(
        math.log(2) / math.sqrt(math.log(4) * math.log(2))
    )
    assert normalized_mutual_information(T([7, 7, 3, 3]), T([0, 0, 1, 1])) == pytest.approx(1.0)


def test_partitions_with_a_single_part_score_zero_or_one() -> None:
    assert normalized_mutual_information(T([5, 5]), T([1, 1])) == 1.0
    assert normalized_mutual_information(T([5, 5]), T([1, 2])) == 0.0
    assert normalized_mutual_information(T([5, 6]), T([1, 1])) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_mutual_information_equals_scikit_learn_and_ignores_names_and_order(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    clusters = torch.randint(6, (60,), generator=generator)
    labels = (clusters + torch.randint(3, (60,), generator=generator)) // 2
    expected = normalized_mutual_info_score(labels.numpy(), clusters.numpy(), average_method="geometric")
    value = normalized_mutual_information(clusters, labels)
    assert value == pytest.approx(expected)
    order = torch.randperm(60, generator=generator)
    assert normalized_mutual_information(100 - 3 * clusters[order], labels[order]) == pytest.approx(value)
    assert normalized_mutual_information(labels, clusters) == pytest.approx(value)


def test_micro_counts_items_and_macro_counts_classes() -> None:
    labels, predicted = T([0, 0, 0, 0, 0, 0, 0, 0, 5, 5]), T([0, 0, 0, 0, 0, 0, 0, 5, 0, 0])
    assert accuracy(predicted, labels) == pytest.approx(7 / 10)
    assert accuracy(predicted, labels, average="macro") == pytest.approx((7 / 8 + 0) / 2)
    assert accuracy_per_class(predicted, labels) == {0: pytest.approx(7 / 8), 5: 0.0}


def test_class_scores_predict_their_k_largest_classes() -> None:
    scores = T([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2]])
    labels = T([1, 1, 1])
    assert accuracy(scores, labels) == pytest.approx(1 / 3)
    assert accuracy(scores, labels, k=2) == 1.0


def test_invalid_input_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="the same length of at least 1, got 0 and 0"):
        normalized_mutual_information(T([], dtype=torch.long), T([], dtype=torch.long))
    with pytest.raises(InvalidArgumentError, match="the same length of at least 1, got 2 and 3"):
        accuracy(T([1, 2]), T([1, 2, 3]))
    with pytest.raises(InvalidArgumentError, match=r"labels must be \[N\] integers, got \[2\] torch.float32"):
        accuracy(T([1, 2]), T([1.0, 2.0]))
    with pytest.raises(InvalidArgumentError, match="k must be 1, or more if predicted is"):
        accuracy(T([1, 2]), T([1, 2]), k=2)
    with pytest.raises(InvalidArgumentError, match="average must be one of 'micro', 'macro', got 'mean'"):
        accuracy(T([1, 2]), T([1, 2]), average="mean")  # type: ignore[arg-type]

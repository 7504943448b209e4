"""Semi-hard triplets mined from several batches."""

from __future__ import annotations

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import nearest_semi_hard_triplets, sample_semi_hard_triplets


def line_distances(*coordinates: float) -> torch.Tensor:
    points = torch.tensor(coordinates, dtype=torch.float64)
    return (points[:, None] - points[None, :]).abs()


def test_triplets_of_points_on_a_line_match_hand_computed_ones() -> None:
    # Class 0 is at 0 and 3, class 1 at 1, 4 and 9. For (0 -> 3), the negatives are at distances 1, 4 and 9: 4 is the
    # nearest one beyond 3. For (3 -> 0), they are at distances 2, 1 and 6: the one at 9.
    triplets = nearest_semi_hard_triplets(line_distances(0, 3, 1, 4, 9), torch.tensor([0, 0, 1, 1, 1]))
    rows = [tuple(row) for row in triplets.stacked().tolist()]
    assert rows[:2] == [(0, 1, 3), (1, 0, 4)]
    # (1 -> 4) has distance 3: the negatives at distances 1 and 2 are both nearer, so the farthest, at 3, is used.
    assert rows[2] == (2, 3, 1)
    dropped = nearest_semi_hard_triplets(line_distances(0, 3, 1, 4, 9), torch.tensor([0, 0, 1, 1, 1]), without="drop")
    assert (2, 3, 1) not in [tuple(row) for row in dropped.stacked().tolist()]


def naive_triplets(distances: torch.Tensor, labels: list[int], *, drop: bool) -> list[tuple[int, int, int]]:
    found = []
    for a in range(len(labels)):
        for p in range(len(labels)):
            negatives = [n for n in range(len(labels)) if labels[n] != labels[a]]
            if a == p or labels[a] != labels[p] or not negatives:
                continue
            farther = [n for n in negatives if distances[a, n] > distances[a, p]]
            if farther:
                found.append((a, p, min(farther, key=lambda n: distances[a, n].item())))
            elif not drop:
                found.append((a, p, max(negatives, key=lambda n: distances[a, n].item())))
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("drop", [True, False])
def test_triplets_equal_those_of_a_naive_search(seed: int, drop: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(4, (20,), generator=generator)
    distances = torch.cdist(points, points)
    triplets = nearest_semi_hard_triplets(distances, labels, without="drop" if drop else "farthest")
    assert [tuple(row) for row in triplets.stacked().tolist()] == naive_triplets(distances, labels.tolist(), drop=drop)


@pytest.mark.parametrize("labels", [[3, 3, 3], [0, 1, 2], [5], []])
def test_labels_without_pairs_or_negatives_give_no_triplets(labels: list[int]) -> None:
    size = len(labels)
    triplets = nearest_semi_hard_triplets(torch.rand(size, size), torch.tensor(labels, dtype=torch.long))
    assert len(triplets) == 0


def test_an_equal_distance_is_not_farther() -> None:
    # All points coincide: no negative is farther than the positive, so the farthest one is used.
    triplets = nearest_semi_hard_triplets(torch.zeros(4, 4), torch.tensor([0, 0, 1, 1]))
    assert len(triplets) == 4
    assert len(nearest_semi_hard_triplets(torch.zeros(4, 4), torch.tensor([0, 0, 1, 1]), without="drop")) == 0


def test_mining_keeps_a_third_of_a_batch_of_triplets() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(6, (500,), generator=generator)
    points = torch.randn(500, 4, generator=generator, requires_grad=True)
    asked: list[torch.Tensor] = []

    def embed(indices: torch.Tensor) -> torch.Tensor:
        assert not torch.is_grad_enabled()
        asked.append(indices)
        return points[indices]

    triplets = sample_semi_hard_triplets(labels, embed, batch_size=33, batches=3, seed=1)
    assert len(triplets) == 11
    (drawn,) = asked
    assert len(drawn) == len(set(drawn.tolist())) == 99
    inside = {item: row for row, item in enumerate(drawn.tolist())}
    distances = torch.cdist(points[drawn], points[drawn]).detach()
    possible = naive_triplets(distances, labels[drawn].tolist(), drop=False)
    for row in triplets.stacked().tolist():
        assert tuple(inside[item] for item in row) in possible
    again = sample_semi_hard_triplets(labels, embed, batch_size=33, batches=3, seed=1)
    assert torch.equal(again.stacked(), triplets.stacked())
    other = sample_semi_hard_triplets(labels, embed, batch_size=33, batches=3, seed=2)
    assert not torch.equal(other.stacked(), triplets.stacked())


def test_small_set_of_items_is_used_completely() -> None:
    triplets = sample_semi_hard_triplets(
        torch.tensor([0, 0, 1]), lambda indices: indices[:, None].float(), batch_size=3, batches=9, seed=0
    )
    assert len(triplets) == 1


def test_arguments_are_checked() -> None:
    labels = torch.tensor([0, 0, 1])
    with pytest.raises(InvalidArgumentError, match="without must be one of 'farthest', 'drop', got 'skip'"):
        nearest_semi_hard_triplets(torch.zeros(3, 3), labels, without="skip")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"\[M, M\] floating point for labels \[M\], got \[3, 2\]"):
        nearest_semi_hard_triplets(torch.zeros(3, 2), labels)
    with pytest.raises(InvalidArgumentError, match="distances must not contain NaN"):
        nearest_semi_hard_triplets(torch.full((3, 3), float("nan")), labels)
    with pytest.raises(InvalidArgumentError, match="batch_size must be at least 3, got 2"):
        sample_semi_hard_triplets(labels, lambda indices: indices, batch_size=2, seed=0)
    with pytest.raises(InvalidArgumentError, match=r"embed must return \[3, D\], one row per index, got \[3\]"):
        sample_semi_hard_triplets(labels, lambda indices: indices, seed=0)
    with pytest.raises(InvalidArgumentError, match=r"labels must be \[N\] integers with N of at least 1"):
        sample_semi_hard_triplets(labels[:0], lambda indices: indices, seed=0)

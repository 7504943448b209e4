"""Sampling that depends on embeddings: mined triplets, and clusters with their impostors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import magnet_loss
from vidkin.training.draws import ClusterDraws, draw_mined_triplets

pytest.importorskip("sklearn")

# On a line, class 0 has clusters at 0 and 10, class 1 at 2 and 13, each of two items.
POINTS = torch.tensor([0.0, 0.1, 10.0, 10.1, 2.0, 2.1, 13.0, 13.1])[:, None]
CLASSES = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
PAIRS = [{0, 1}, {2, 3}, {4, 5}, {6, 7}]
# The nearest cluster of the other class, for each cluster.
IMPOSTORS = [2, 3, 0, 1]


class Model:
    """Returns stored points and counts its calls."""

    def __init__(self, points: Tensor = POINTS) -> None:
        self.points = points
        self.calls = 0

    def __call__(self, indices: Tensor) -> Tensor:
        self.calls += 1
        return self.points[indices]


@pytest.fixture
def draws() -> ClusterDraws:
    draws = ClusterDraws(CLASSES, dimension=1)
    draws.refresh(Model(), seed=0)
    return draws


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_classes_are_divided_into_their_clusters(draws: ClusterDraws) -> None:
    assert bool(draws.is_ready)
    groups: dict[tuple[int, int], set[int]] = {}
    for item, key in enumerate(zip(CLASSES.tolist(), draws.cluster_of.tolist(), strict=True)):
        groups.setdefault(key, set()).add(item)
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, PAIRS))


def test_centers_are_means_and_losses_equal_the_magnet_loss(draws: ClusterDraws) -> None:
    losses = magnet_loss(POINTS, CLASSES, draws.cluster_of, reduction="none")
    for (label, cluster), members in zip([(0, 0), (0, 2), (1, 4), (1, 6)], PAIRS, strict=True):
        row = label * 3 + int(draws.cluster_of[cluster])
        rows = sorted(members)
        assert draws.centers[row].item() == pytest.approx(POINTS[rows].mean().item())
        assert draws.losses[row].item() == pytest.approx(losses[rows].mean().item(), abs=1e-6)
    # There is room for three clusters per class; the third ones are empty.
    assert (draws.losses == 0).sum() >= 2


def test_cluster_is_sampled_with_the_nearest_clusters_of_other_classes(draws: ClusterDraws) -> None:
    seeds = set()
    for seed in range(40):
        items, clusters = draws.draw(Model(), sizes=(2, 2), step=1, generator=generator(seed))
        first, second = set(items[:2].tolist()), set(items[2:].tolist())
        assert second == PAIRS[IMPOSTORS[PAIRS.index(first)]]
        assert torch.equal(clusters, draws.cluster_of[items])
        seeds.add(min(first))
    # Every cluster with a loss is sampled eventually; 2 is between the two clusters of class 0.
    assert len(seeds) >= 2


def test_number_of_clusters_is_limited_by_the_impostors(draws: ClusterDraws) -> None:
    items, _ = draws.draw(Model(), sizes=(6, 2), step=1, generator=generator())
    # The seed cluster, and both clusters of the other class.
    assert len(items) == 6
    assert len(set(CLASSES[items[2:]].tolist())) == 1


def test_items_of_small_clusters_are_repeated(draws: ClusterDraws) -> None:
    items, _ = draws.draw(Model(), sizes=(2, 5), step=1, generator=generator())
    for part in (items[:5], items[5:]):
        assert set(part.tolist()) in PAIRS
        assert len(part) == 5


def test_clusters_are_recomputed_after_an_epoch() -> None:
    """Eight items in batches of four: clusters are recomputed in the first step and then every second step."""
    model, draws = Model(), ClusterDraws(CLASSES, dimension=1)
    calls = []
    for step in (1, 2, 3, 4):
        draws.draw(model, sizes=(2, 2), step=step, generator=generator())
        calls.append(model.calls)
    assert calls == [1, 2, 2, 3]


def test_restored_state_samples_the_same_items_without_the_model(draws: ClusterDraws) -> None:
    other = ClusterDraws(CLASSES, dimension=1)
    other.load_state_dict(draws.state_dict())
    model = Model(torch.zeros(8, 1))
    expected, _ = draws.draw(model, sizes=(2, 2), step=1, generator=generator(5))
    drawn, _ = other.draw(model, sizes=(2, 2), step=1, generator=generator(5))
    assert torch.equal(drawn, expected)
    assert model.calls == 0


def test_class_with_a_single_item_is_never_sampled() -> None:
    points = torch.cat([POINTS, torch.tensor([[1.0]])])
    draws = ClusterDraws(torch.cat([CLASSES, torch.tensor([2])]), dimension=1)
    for seed in range(20):
        items, _ = draws.draw(Model(points), sizes=(3, 2), step=seed, generator=generator(seed))
        assert 8 not in items.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_mined_triplets_have_a_positive_and_a_negative(seed: int) -> None:
    generated = generator(seed)
    classes = torch.randint(0, 4, (60,), generator=generated)
    vectors = torch.nn.functional.normalize(torch.randn(60, 5, generator=generated), dim=-1)
    items = draw_mined_triplets(classes, lambda indices: vectors[indices], items=9, generator=generated)
    anchor, positive, negative = items.reshape(3, -1).unbind(0)
    assert 1 <= len(anchor) <= 3
    assert torch.equal(classes[anchor], classes[positive])
    assert (anchor != positive).all()
    assert (classes[anchor] != classes[negative]).all()


def test_error_says_what_to_change_if_no_class_has_a_pair() -> None:
    message = (
        "none of 10 samples of 9 items contained two items of one class and one of another; increase schedule.batch"
    )
    with pytest.raises(InvalidArgumentError, match=message):
        draw_mined_triplets(torch.arange(12), Model(torch.eye(12)), items=3, generator=generator())

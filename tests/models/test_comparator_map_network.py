"""The map network: lengths, masks and blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.support.comparators import passing
from vidkin.models import ComparatorConfig, Padding, Remainder, build_comparator, seeded
from vidkin.models.comparator import MapNetwork
from vidkin.models.comparator_extractor import map_in_blocks, reduced_length


def network(padding: Padding = "zeros", remainder: Remainder = "pooled") -> MapNetwork:
    with seeded(1):
        return MapNetwork(padding, remainder).eval().requires_grad_(False)


def frame_map(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def test_network_has_the_published_layers() -> None:
    sizes = {name: tuple(value.shape) for name, value in network().state_dict().items()}
    assert sizes["conv1.weight"] == (32, 1, 3, 3)
    assert sizes["conv2.weight"] == (64, 32, 3, 3)
    assert sizes["conv3.weight"] == (128, 64, 3, 3)
    assert sizes["fconv.weight"] == (1, 128, 1, 1)
    # 320 + 18,496 + 73,856 + 129
    assert sum(value.numel() for value in network().parameters()) == 92_801
    assert all(not value.any() for name, value in network().state_dict().items() if name.endswith("bias"))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9])
def test_any_length_is_accepted_without_losing_frames(length: int) -> None:
    similarities = np.zeros((length, 3), np.float32)
    similarities[-1, 2] = 0.75
    learned = passing().on_arrays().learned_map(similarities)
    assert learned.shape == (reduced_length(length), 1)
    assert float(learned[-1, 0]) == 0.5  # 2 * .75 - 1
    assert learned.flatten()[:-1].tolist() == [-1.0] * (reduced_length(length) - 1)


@pytest.mark.parametrize("padding", ["zeros", "replicate"])
def test_a_padded_batch_gives_the_same_maps_as_each_pair_alone(padding: Padding) -> None:
    lengths = [(1, 9), (7, 5), (12, 11)]
    batch = frame_map(3 * 12, 12).view(3, 12, 12)  # values beyond the lengths are not zero
    rows, columns = (torch.tensor(side) for side in zip(*lengths, strict=True))
    learned = network(padding)(batch, rows, columns)
    for place, (height, width) in enumerate(lengths):
        alone = network(padding)(batch[place : place + 1, :height, :width])[0]
        torch.testing.assert_close(learned[place, : reduced_length(height), : reduced_length(width)], alone)
        assert not learned[place, reduced_length(height) :].any()
        assert not learned[place, :, reduced_length(width) :].any()


@pytest.mark.parametrize("padding", ["zeros", "replicate"])
@pytest.mark.parametrize(("rows", "columns"), [(9, 203), (64, 65), (70, 33), (3, 41)])
def test_blocks_give_the_same_map_as_the_whole(padding: Padding, rows: int, columns: int) -> None:
    similarities = frame_map(rows, columns)
    whole = network(padding)(similarities[None])[0].numpy()

    def run(maps: NDArray[np.float32]) -> NDArray[np.float32]:
        return network(padding)(torch.from_numpy(maps)).numpy()

    np.testing.assert_allclose(map_in_blocks(run, similarities.numpy(), side=16), whole, atol=1e-6, rtol=1e-5)
    np.testing.assert_allclose(map_in_blocks(run, similarities.numpy()), whole, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(9, 203), (31, 65), (4, 43)])
def test_blocks_give_the_same_map_if_the_remainder_is_dropped(rows: int, columns: int) -> None:
    similarities = frame_map(rows, columns)
    dropping = network(remainder="dropped")
    whole = dropping(similarities[None])[0].numpy()
    assert whole.shape == (rows // 4, columns // 4)

    def run(maps: NDArray[np.float32]) -> NDArray[np.float32]:
        return dropping(torch.from_numpy(maps)).numpy()

    found = map_in_blocks(run, similarities.numpy(), side=16, drops=True)
    np.testing.assert_allclose(found, whole, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_batch_that_drops_the_remainder_scores_each_pair_as_if_alone(length: int) -> None:
    comparator = build_comparator(ComparatorConfig(dimension=8, remainder="dropped"), weights="random", seed=2).eval()
    values = torch.nn.functional.normalize(torch.randn(2, 13, 3, 8, generator=torch.Generator().manual_seed(1)), dim=-1)
    lengths = torch.tensor([length, 13])
    with torch.no_grad():
        batch = comparator(values, lengths).scores * 2 - 1
    arrays = comparator.on_arrays()
    alone = arrays.learned_map(arrays.frame_map(values[0, :length].numpy(), values[1].numpy()))
    assert alone.shape == (max(1, length // 4), 3)
    assert float(batch[0, 1]) == pytest.approx(arrays.video_score(alone), abs=1e-5)


def test_gradients_reach_every_layer() -> None:
    learning = network().requires_grad_(True)
    learning(frame_map(8, 8)[None]).square().sum().backward()  # type: ignore[no-untyped-call]
    assert all(value.grad is not None and value.grad.any() for value in learning.parameters())

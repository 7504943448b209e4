"""Local normalization matches a loop over blocks, and is invariant to brightness and contrast."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.models.conftest import pictures, small
from vidkin.errors import InvalidArgumentError
from vidkin.models.image_networks import LocalNormalization, LowResolutionPath


def block_by_block(maps: Tensor, side: int) -> Tensor:
    found, half = torch.empty_like(maps), side // 2
    for y in range(maps.shape[2]):
        for x in range(maps.shape[3]):
            block = maps[:, :, max(0, y - half) : y + half + 1, max(0, x - half) : x + half + 1]
            mean = block.mean(dim=(2, 3))
            length = ((block - mean[..., None, None]).square().sum(dim=(2, 3)) + 1e-6).sqrt()
            found[:, :, y, x] = (maps[:, :, y, x] - mean) / length
    return found


@pytest.mark.parametrize("side", [3, 5])
def test_every_block_has_mean_zero_and_length_one(side: int) -> None:
    maps = torch.randn(2, 3, 6, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(LocalNormalization(side)(maps), block_by_block(maps, side))


def test_normalization_matches_a_hand_computed_value() -> None:
    # The block around the center is the whole map: mean 1, sum of squares 8 * 1 + 64 = 72.
    maps = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    maps[0, 0, 1, 1] = 9.0
    assert LocalNormalization(3)(maps)[0, 0, 1, 1].item() == pytest.approx(8 / 72**0.5, abs=1e-6)


def test_normalization_is_invariant_to_brightness_and_contrast_and_uniform_blocks_are_zero() -> None:
    maps = torch.rand(1, 2, 9, 9, generator=torch.Generator().manual_seed(1))
    layer = LocalNormalization(3)
    torch.testing.assert_close(layer(3 * maps + 100), layer(maps), atol=1e-3, rtol=0)
    flat = torch.full((1, 1, 4, 4), 0.7, requires_grad=True)
    found = layer(flat)
    assert not found.any()
    found.sum().backward()
    assert flat.grad is not None
    assert flat.grad.isfinite().all()


def test_normalization_passes_gradcheck() -> None:
    maps = torch.randn(1, 1, 4, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert torch.autograd.gradcheck(LocalNormalization(3), (maps.requires_grad_(),))


def test_normalization_can_be_enabled_for_the_shallow_paths() -> None:
    torch.manual_seed(3)
    plain, with_it = small("deep_ranking"), small("deep_ranking", local_normalization=5)
    with_it.load_state_dict(plain.state_dict())  # it has no parameters
    given = pictures(2, 64)
    assert not torch.allclose(plain(given), with_it(given))
    path = LowResolutionPath(64, 4, local_normalization=3)
    # In a shallow path, scaling the maps by two barely changes the output; only the 1e-6 epsilon makes a difference.
    before = path(given)
    path.convolution.weight.data *= 2
    path.convolution.bias.data *= 2
    torch.testing.assert_close(path(given), before, atol=1e-2, rtol=0)


@pytest.mark.parametrize("side", [0, 1, 4, -3])
def test_even_or_small_blocks_are_rejected(side: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"side must be an odd number of at least 3, got {side}"):
        LocalNormalization(side)


def test_normalization_is_rejected_for_other_kinds() -> None:
    with pytest.raises(InvalidArgumentError, match="local_normalization must be 0 for kind 'clip', got 5"):
        small("clip", local_normalization=5)

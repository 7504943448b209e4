"""The image encoder, the deep ranking network, and the small frame network."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.models.conftest import pictures, small
from vidkin.errors import InvalidArgumentError
from vidkin.models import DeepRankingNetwork, ImageEncoder, SmallNetwork
from vidkin.models.image_networks import LowResolutionPath


def test_the_image_encoder_is_a_linear_layer_on_the_frame_network() -> None:
    model = small("image")
    assert isinstance(model, ImageEncoder)
    found = model(pictures(3))
    assert found.shape == (3, 24) == (3, model.dimension)
    features = model.frame_features(pictures(3))
    by_hand = features @ model.fully_connected.weight.T + model.fully_connected.bias
    torch.testing.assert_close(found, by_hand / by_hand.norm(dim=1, keepdim=True))
    assert torch.equal(model.embed(pictures(3)), found)


def test_additional_layer_follows_a_relu() -> None:
    model = small("image", embedding=7)
    assert isinstance(model, ImageEncoder)
    features = torch.rand(2, model.feature_dimension)
    hidden = torch.relu(model.fully_connected(features))
    torch.testing.assert_close(model.head(features), functional.normalize(model.projection(hidden)))


def test_input_normalization_is_part_of_the_network() -> None:
    model = small("image")
    assert isinstance(model, ImageEncoder)
    assert (model.config.mean, model.config.std) == ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
    batch = pictures(2)
    assert torch.equal(model.frame_features(batch), model.backbone((batch - 0.5) / 0.25))


@pytest.mark.parametrize("kind", ["image", "deep_ranking"])
def test_image_networks_reject_lengths(kind: str) -> None:
    model = small(kind)
    assert isinstance(model, ImageEncoder | DeepRankingNetwork)
    features = torch.rand(1, model.feature_dimension)
    with pytest.raises(InvalidArgumentError, match=r"without lengths, got \[1, \d+\] with lengths"):
        model.head(features, torch.tensor([1]))
    with pytest.raises(InvalidArgumentError, match=r"features must be \[B, \d+\] without lengths, got \[1, 2\]"):
        model.head(torch.zeros(1, 2))
    with pytest.raises(InvalidArgumentError, match=r"frames must be \[N, 3, S, S\]"):
        model(torch.zeros(1, 4, 32, 32))


def test_the_small_network_is_small_and_independent_of_the_batch() -> None:
    network = SmallNetwork()
    parameters = sum(parameter.numel() for parameter in network.parameters())
    assert 300_000 < parameters < 600_000
    batch = pictures(4, 64) - 0.5
    network.train()
    together = network(batch)
    assert together.shape == (4, 256)
    # Group norms do not depend on the batch or on the mode.
    torch.testing.assert_close(together[1:2], network(batch[1:2]), atol=1e-5, rtol=0)
    assert torch.equal(network.eval()(batch), together)
    assert SmallNetwork(0.5)(batch).shape == (4, 128)
    assert SmallNetwork(0.01)(batch).shape == (4, 16)  # at least 8 channels


def test_deep_ranking_has_the_published_sizes() -> None:
    quarter, eighth = LowResolutionPath(225, 4), LowResolutionPath(225, 8)
    assert (quarter.side, eighth.side) == (57, 29)
    # 8 x 8 with stride 4: 57 -> 13 and 29 -> 6; pooling by 3 gives 5 and 2 per side, with 96 maps.
    assert quarter(torch.zeros(1, 3, 225, 225)).shape == (1, 96 * 25) == (1, quarter.dimension)
    assert eighth(torch.zeros(1, 3, 225, 225)).shape == (1, 96 * 4) == (1, eighth.dimension)
    with pytest.raises(
        InvalidArgumentError, match=r"size must be at least 57, so that the image subsampled 8x .*, got 50"
    ):
        LowResolutionPath(50, 8)


def test_deep_ranking_normalizes_its_three_paths() -> None:
    model = small("deep_ranking")
    assert isinstance(model, DeepRankingNetwork)
    features = model.frame_features(pictures(2, 64))
    torch.testing.assert_close(features.square().sum(1), torch.full((2,), 3.0))
    found = model(pictures(2, 64))
    assert found.shape == (2, 24)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))
    assert torch.equal(model.embed(pictures(2, 64)), found)
    assert small("deep_ranking", embedding=9)(pictures(1, 64)).shape == (1, 9)


def test_shallow_paths_have_the_learning_rate_of_the_head() -> None:
    model = small("deep_ranking", trainable="head").train()
    assert isinstance(model, DeepRankingNetwork)
    model(pictures(2, 64))[:, 0].sum().backward()
    assert all(parameter.grad is None for parameter in model.backbone.parameters())
    assert all(parameter.grad is not None for parameter in model.shallow.parameters())
    assert [group["name"] for group in model.parameter_groups(1.0)] == ["head"]

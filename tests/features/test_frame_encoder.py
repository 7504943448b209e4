"""The frame encoder: unit embeddings, batch-norm folding, and settings that round-trip through JSON."""

from __future__ import annotations

import json

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.features import FrameEncoder, FrameEncoderSettings


def make_network(settings: FrameEncoderSettings | None = None) -> FrameEncoder:
    """A network whose batch-norm statistics are not the initial ones."""
    torch.manual_seed(0)
    network = FrameEncoder(settings)
    network(torch.rand(8, 3, network.settings.side, network.settings.side))
    return network.eval()


def test_embeddings_have_unit_length() -> None:
    vectors = make_network()(torch.rand(3, 3, 64, 64))
    assert vectors.shape == (3, 128)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))


def test_default_network_has_474_thousand_parameters() -> None:
    assert sum(parameter.numel() for parameter in FrameEncoder().parameters()) == 473_504


@pytest.mark.parametrize("normalization", ["fixed", "image"])
def test_folding_preserves_the_embeddings_and_the_network(normalization: str) -> None:
    network = make_network(FrameEncoderSettings(normalization=normalization))
    images = torch.rand(4, 3, 64, 64)
    with torch.inference_mode():
        before = network(images)
        folded = network.fold()
        torch.testing.assert_close(folded(images), before, atol=1e-5, rtol=0.0)
        torch.testing.assert_close(network(images), before)
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in folded.modules())


def test_image_normalization_removes_brightness_and_most_contrast() -> None:
    network = make_network()
    images = torch.rand(4, 3, 64, 64)
    with torch.inference_mode():
        same = (network(images) * network(0.8 * images + 0.2)).sum(1)
    assert float(same.min()) > 0.99


def test_uniform_image_has_a_finite_embedding() -> None:
    assert bool(torch.isfinite(make_network()(torch.full((1, 3, 64, 64), 0.3))).all())


def test_other_sizes_and_small_networks_work() -> None:
    settings = FrameEncoderSettings(side=48, widths=(8, 16, 16), strides=(2, 2), grid=3, dimension=32)
    assert make_network(settings)(torch.rand(2, 3, 48, 48)).shape == (2, 32)


def test_settings_round_trip_through_json() -> None:
    settings = FrameEncoderSettings(side=80, dimension=96)
    assert FrameEncoderSettings.from_table(json.loads(json.dumps(settings.to_table()))) == settings


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"widths": [8, 16]}, "one more entry than strides"),
        ({"grid": 0}, "at least 1"),
        ({"side": 2}, "side must be"),
        ({"normalization": "none"}, "normalization must be"),
        ({"depth": 3, "grid": 4, "heads": 2}, r"settings must be among dimension, .*, got depth, heads$"),
        ({"grid": "4"}, "grid must be a whole number, got '4'"),
    ],
)
def test_invalid_settings_are_rejected_by_name(table: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        FrameEncoderSettings.from_table(table)

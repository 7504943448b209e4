"""Building networks from configurations: seeds, weights and names."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.conftest import pictures, small
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import load_frame_encoder
from vidkin.models import EncoderConfig, ImageEncoder, build_model, model_digest, save_model


@pytest.mark.parametrize("kind", ["clip", "image", "c3d", "deep_sbd", "deep_ranking"])
def test_the_seed_determines_the_network(kind: str) -> None:
    config = small(kind).config
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first = build_model(config, seed=1)
    assert torch.equal(torch.rand(1), expected)  # the caller's random state is not disturbed
    assert first.training
    assert model_digest(first) == model_digest(build_model(config, seed=1))
    assert model_digest(first) != model_digest(build_model(config, seed=2))


def test_weights_of_the_backbone_are_loaded_from_a_file(tiny_weights: Path) -> None:
    config = EncoderConfig(kind="image", backbone="timm:test_resnet?mean=0.5&std=0.25", size=64, hidden=8)
    model = build_model(config, weights=tiny_weights)
    given = load_file(tiny_weights)
    state = model.state_dict()
    for name, tensor in given.items():
        if not name.startswith("fc."):
            assert torch.equal(state[f"backbone.{name}"], tensor), name
    assert not [name for name in state if name.startswith("backbone.fc")]
    assert (model.config.mean, model.config.std) == ((0.5,) * 3, (0.25,) * 3)
    # The seed of the head does not affect the backbone.
    other = build_model(config, weights=tiny_weights, seed=7)
    assert torch.equal(other.state_dict()["backbone.conv1.0.weight"], state["backbone.conv1.0.weight"])


def test_random_weights_must_be_requested() -> None:
    config = EncoderConfig(kind="image", backbone="torchvision:resnet18", size=64, hidden=8)
    first, second = (build_model(config, weights="random", seed=seed) for seed in (0, 1))
    assert model_digest(first) != model_digest(second)
    assert isinstance(first, ImageEncoder)
    assert first.feature_dimension == 512
    assert first.eval()(pictures(1, 64)).shape == (1, 8)


def test_alexnet_returns_its_second_hidden_layer() -> None:
    config = EncoderConfig(kind="image", backbone="torchvision:alexnet", size=96, hidden=8)
    model = build_model(config, weights="random").eval()
    assert isinstance(model, ImageEncoder)
    assert model.feature_dimension == 4096
    assert model.config.mean == pytest.approx((0.485, 0.456, 0.406))
    assert model(pictures(1, 96)).shape == (1, 8)


def test_the_small_network_can_load_weights(tmp_path: Path) -> None:
    model = small("image")
    assert isinstance(model, ImageEncoder)
    path = tmp_path / "small.safetensors"
    save_file(model.backbone.state_dict(), path)
    other = build_model(model.config, weights=path, seed=9)
    assert isinstance(other, ImageEncoder)
    assert torch.equal(other.eval().frame_features(pictures(2)), model.frame_features(pictures(2)))
    with pytest.raises(
        InvalidArgumentError,
        match=r"these are not the weights of backbone 'small': wrong shape \d+ \(block",
    ):
        build_model(EncoderConfig(kind="image", width=1.0, size=32), weights=path)


def test_a_3d_network_can_load_weights(tmp_path: Path) -> None:
    model = small("c3d")
    folder = save_model(model, tmp_path / "model")
    other = build_model(model.config, weights=folder / "model.safetensors", seed=3)
    assert model_digest(other) == model_digest(model)
    with pytest.raises(InvalidArgumentError, match=r"nothing.safetensors: cannot be read as weights: .*No such file"):
        build_model(model.config, weights=tmp_path / "nothing.safetensors")


@pytest.mark.parametrize(
    ("backbone", "error", "message"),
    [
        (
            "mobilenet",
            InvalidArgumentError,
            "backbone must be small, vidkin, timm:<model> or torchvision:<model>, got 'mobilenet'",
        ),
        ("timm:resnet5", UnknownExtractorError, "timm has no model 'resnet5'; similar names are"),
        (
            "torchvision:googlenet",
            InvalidArgumentError,
            "has auxiliary outputs for its own training",
        ),
        ("torchvision:alexnet", InvalidArgumentError, "does not accept 32 x 32 images"),
    ],
)
def test_unknown_backbones_are_rejected(backbone: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build_model(EncoderConfig(kind="image", backbone=backbone, size=32), weights="random")


def test_a_configuration_without_mean_and_std_is_rejected() -> None:
    from vidkin.models import VideoNetwork

    with pytest.raises(
        InvalidArgumentError, match="the configuration must include the input's mean and std; use build_model"
    ):
        VideoNetwork(EncoderConfig(kind="c3d", classes=2))


@pytest.mark.data
def test_pretrained_weights_can_be_used_as_a_backbone(shared_data: Path) -> None:
    config = EncoderConfig(
        kind="image",
        backbone="timm:mobilenetv2_100?pad_type=same&mean=0.5&std=0.5",
        trainable="head",
        size=96,
        hidden=16,
    )
    model = build_model(config, weights=shared_data / "weights" / "mobilenetv2_100.same.safetensors")
    assert isinstance(model, ImageEncoder)
    assert model.feature_dimension == 1280
    # In training mode, its batch norms would use batch statistics.
    batch = pictures(4, 96)
    assert torch.equal(model.train().frame_features(batch), model.eval().frame_features(batch))


def test_backbone_vidkin_is_the_shipped_encoder_without_its_last_layer() -> None:
    config = EncoderConfig(kind="image", backbone="vidkin", trainable="head", hidden=8, size=64)
    model = build_model(config)
    images = torch.rand(2, 3, 64, 64)
    encoder = load_frame_encoder()
    features = model.backbone_features(images)
    # The extractor's embeddings are its last layer applied to these features.
    own = torch.nn.functional.normalize(encoder.head(features), dim=1)
    torch.testing.assert_close(own, encoder(images))
    assert features.shape == (2, 3072)
    assert not any("encoder.head" in name for name in model.state_dict())
    # As when loading a saved model, whose weights come from its folder.
    assert not torch.equal(features, build_model(config, weights="random", seed=3).backbone_features(images))

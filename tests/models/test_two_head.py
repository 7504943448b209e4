"""The two-head classifier: both heads in one pass, backbones, motion, saving and export."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig, HeadOutputs, TwoHeadNetwork, build_model, load_model, save_model
from vidkin.models.two_head import stack_of_differences, widen_input


def two_head(**settings: object) -> TwoHeadNetwork:
    weights = settings.pop("weights", None)
    config = {"kind": "two_head", "backbone": "small", "size": 32, "classes": 3, "embedding": 8, **settings}
    model = build_model(EncoderConfig.from_mapping(config), weights=weights)  # type: ignore[arg-type]
    assert isinstance(model, TwoHeadNetwork)
    torch.nn.init.normal_(model.classifier.weight)  # zero-initialized weights would pass every comparison
    return model.eval()


def test_all_classes_are_equally_likely_at_first() -> None:
    """Cross-entropy starts at log 81; with Xavier weights it was 9.1, which damaged a pretrained backbone."""
    config = {"kind": "two_head", "backbone": "small", "size": 32, "classes": 81, "embedding": 8}
    model = build_model(EncoderConfig.from_mapping(config))
    assert isinstance(model, TwoHeadNetwork)
    outputs = model(torch.rand(4, 3, 32, 32))
    loss = torch.nn.functional.cross_entropy(outputs.logits, torch.tensor([0, 7, 33, 80]))
    assert loss.item() == pytest.approx(math.log(81))
    loss.backward()
    assert float(model.classifier.weight.grad.abs().max()) > 0  # the classifier still has a gradient


def test_both_heads_match_the_formulas() -> None:
    model, images = two_head(), torch.rand(2, 3, 32, 32)
    outputs = model(images)
    maps = model.frame_features(images)
    assert maps.shape == (2, 128, 2, 2)
    pooled = maps.mean(dim=(2, 3))
    torch.testing.assert_close(outputs.pooled, pooled)
    torch.testing.assert_close(outputs.logits, pooled @ model.classifier.weight.T + model.classifier.bias)
    weight = model.get_parameter("projection.weight")
    assert weight.shape == (8, 128 * 2 * 2)
    flat = maps.flatten(1) @ weight.T
    torch.testing.assert_close(outputs.embeddings, flat / flat.norm(dim=1, keepdim=True))
    torch.testing.assert_close(model.embed(images), outputs.embeddings)
    torch.testing.assert_close(model.head(maps), outputs.embeddings)


@pytest.mark.parametrize(("source", "weights"), [("pooled", 8 * 128), ("none", 0), ("map", 8 * 512)])
def test_the_embedding_uses_the_configured_input(source: str, weights: int) -> None:
    model = two_head(embedding_from=source)
    assert sum(part.numel() for name, part in model.named_parameters() if name == "projection.weight") == weights
    outputs = model(torch.rand(2, 3, 32, 32))
    assert outputs.embeddings.shape == (2, model.dimension)
    assert model.dimension == (128 if source == "none" else 8)
    if source == "none":
        torch.testing.assert_close(outputs.embeddings, torch.nn.functional.normalize(outputs.pooled, dim=1))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("backbone", "size", "channels", "side"),
    [
        ("timm:resnet50", 64, 2048, 2),
        pytest.param("timm:inception_v4", 96, 1536, 1, marks=pytest.mark.slow),
        pytest.param("timm:densenet161", 64, 2208, 2, marks=pytest.mark.slow),
        ("timm:mobilenetv2_100?pad_type=same", 64, 1280, 2),
        ("torchvision:mobilenet_v2", 32, 1280, 1),
        ("vidkin", 64, 192, 4),
    ],
)
def test_backbones_return_maps(backbone: str, size: int, channels: int, side: int) -> None:
    model = two_head(backbone=backbone, size=size, weights="random")
    with torch.no_grad():
        images = torch.rand(1, 3, size, size)
        outputs = model(images)
        assert model.frame_features(images).shape[1:] == (channels, side, side)
    # One layer on the whole feature map; for ResNet-50 at 224 pixels, 7 x 7 x 2048 x 256 = 25.7 million weights.
    assert model.get_parameter("projection.weight").numel() == channels * side * side * 8
    assert (outputs.logits.shape, outputs.embeddings.shape) == ((1, 3), (1, 8))
    torch.testing.assert_close(outputs.embeddings.norm(dim=1), torch.ones(1))


def test_a_network_without_a_map_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"must end in a square feature map for kind 'two_head', got"):
        two_head(backbone="timm:vit_tiny_patch16_224?img_size=64&size=64", size=64, weights="random")


def test_model_can_be_saved_and_loaded(tmp_path: Path) -> None:
    model, images = two_head(embedding_from="pooled"), torch.rand(1, 3, 32, 32)
    model.class_names = ("a", "b", "c")
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert isinstance(loaded, TwoHeadNetwork)
    assert loaded.config == model.config
    with torch.no_grad():
        found: HeadOutputs = loaded(images)
        torch.testing.assert_close(found.logits, model(images).logits)
        torch.testing.assert_close(found.embeddings, model(images).embeddings)


def test_frame_differences_match_hand_computed_values() -> None:
    clip = torch.zeros(1, 3, 3, 2, 2)
    clip[0, 1] = 1.0  # white
    clip[0, 2, 0] = 1.0  # red
    stack = stack_of_differences(clip)
    assert stack.shape == (1, 2, 2, 2)
    torch.testing.assert_close(stack[0, 0], torch.ones(2, 2))
    torch.testing.assert_close(stack[0, 1], torch.full((2, 2), 0.299 - 1.0))
    assert not stack_of_differences(torch.rand(1, 1, 3, 2, 2).expand(-1, 6, -1, -1, -1)).any()


def test_widened_first_convolution_preserves_the_magnitude_of_its_output() -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1, bias=False))
    before = network(torch.ones(1, 3, 1, 1))
    first = network[0].weight.detach().clone()
    widen_input(network, 6)
    torch.testing.assert_close(network(torch.ones(1, 6, 1, 1)), before)
    torch.testing.assert_close(network[0].weight[:, 4], first[:, 1] / 2)


def test_clips_are_classified_by_frame_differences() -> None:
    model = two_head(motion="differences", frames=6, rate=3.0)
    assert model.config.takes_clips
    outputs = model(torch.rand(2, 6, 3, 32, 32))
    assert (outputs.logits.shape, outputs.embeddings.shape) == ((2, 3), (2, 8))
    still = torch.rand(2, 1, 3, 32, 32).expand(-1, 6, -1, -1, -1)
    torch.testing.assert_close(*model(still).logits, rtol=1e-4, atol=1e-5)
    with pytest.raises(InvalidArgumentError, match=r"clips must be \[B, T, 3, S, S\]"):
        model(torch.rand(2, 3, 32, 32))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": 1}, "classes must be at least 2 for kind 'two_head', got 1"),
        ({"embedding_from": "top"}, "embedding_from must be one of map, pooled, none, got 'top'"),
        ({"motion": "differences", "frames": 1}, "motion needs trainable 'all' and at least 2 frames"),
        ({"kind": "image", "classes": 0, "embedding_from": "map"}, "must not be set for kind 'image'"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        two_head(**settings)
    with pytest.raises(InvalidArgumentError, match=r"features must be \[B, 128, 2, 2\], got \[1, 128, 3, 3\]"):
        two_head().outputs(torch.zeros(1, 128, 3, 3))

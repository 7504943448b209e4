"""Networks as functions from an image to one embedding."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from vidkin.errors import InvalidArgumentError, UnknownExtractorError, WeightsUnavailableError
from vidkin.features import import_timm, import_torchvision, open_pooled_network


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File with seeded random weights of torchvision's smallest ResNet."""
    path = tmp_path_factory.mktemp("weights") / "resnet18.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(3)
        save_file(import_torchvision().models.resnet18(weights=None).state_dict(), path)
    return path


@pytest.mark.thorough
@pytest.mark.parametrize("headless", [False, True])
def test_classifier_is_removed_from_torchvision_networks(headless: bool, resnet: Path, tmp_path: Path) -> None:
    state = load_file(resnet)
    path = resnet
    if headless:
        path = tmp_path / "headless.safetensors"
        save_file({name: tensor for name, tensor in state.items() if not name.startswith("fc.")}, path)
    network = open_pooled_network("torchvision:resnet18", weights=path)
    assert (network.dimension, network.size) == (512, 224)
    assert network.mean == pytest.approx((0.485, 0.456, 0.406))
    whole = import_torchvision().models.resnet18(weights=None)
    whole.load_state_dict(state)
    batch = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        expected = whole.eval()(batch)
        found = network.module(batch) @ state["fc.weight"].T + state["fc.bias"]
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_classifier_is_removed_from_timm_networks(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    whole = import_timm().create_model("test_resnet").eval()
    save_file(whole.state_dict(), path)
    network = open_pooled_network("timm:test_resnet?size=96&mean=0.1,0.2,0.3&std=0.5", weights=path)
    assert (network.size, network.mean, network.std) == (96, (0.1, 0.2, 0.3), (0.5, 0.5, 0.5))
    batch = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        expected = whole.forward_head(whole.forward_features(batch), pre_logits=True)
        torch.testing.assert_close(network.module(batch), expected)
    assert expected.shape[1] == network.dimension
    assert not network.module.training


def test_random_weights_must_be_requested_and_are_seeded() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, again, other = (
        open_pooled_network("timm:test_resnet", weights="random", seed=seed).module.state_dict() for seed in (0, 0, 1)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first["conv1.0.weight"], again["conv1.0.weight"])
    assert not torch.equal(first["conv1.0.weight"], other["conv1.0.weight"])


def test_missing_weights_raise_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    with pytest.raises(WeightsUnavailableError, match=r"the weights of timm:test_resnet.r160_in1k are not available"):
        open_pooled_network("timm:test_resnet.r160_in1k")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("resnet18", UnknownExtractorError, "a network's name must be timm:<model> or torchvision:<model>"),
        ("torchvision:googlenet", InvalidArgumentError, "has auxiliary outputs for its own training"),
        ("torchvision:resnet5", UnknownExtractorError, "torchvision has no image classifier 'resnet5'"),
    ],
)
def test_unusable_networks_are_refused(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_pooled_network(name, weights="random")

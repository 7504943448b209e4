"""Pretrained weights are complete, and loaded from a file or the hub. No test accesses the internet."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from vidkin.errors import InvalidArgumentError, UnknownExtractorError, WeightsUnavailableError
from vidkin.features import import_timm, import_torchvision
from vidkin.features import pretrained as _networks
from vidkin.features.pretrained import open_timm_network, open_torchvision_network

State = dict[str, torch.Tensor]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the hub unreachable and its cache empty on any machine."""

    def unreachable(*_: Any, **__: Any) -> Any:
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr(_networks.urllib.request, "urlopen", unreachable)
    monkeypatch.setattr("torch.hub.download_url_to_file", unreachable)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def state_of(module: nn.Module) -> State:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def timm_state(model: str = "test_resnet") -> State:
    return state_of(import_timm().create_model(model))


def save(path: Path, state: State, metadata: dict[str, str] | None = None) -> Path:
    save_file(state, path, metadata)
    return path


def open_timm(weights: Path | None, model: str = "test_resnet", **options: Any) -> _networks.Network:
    return open_timm_network(model, options=options, stages=None, weights=weights)


def test_weights_file_is_loaded_unchanged(tmp_path: Path) -> None:
    state = timm_state()
    network = open_timm(save(tmp_path / "w.safetensors", state, {"mean": "0.5"}))
    assert all(torch.equal(tensor, state[name]) for name, tensor in network.module.state_dict().items())
    assert not network.module.training
    assert (network.size, network.mean, network.std) == (160, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert network.metadata == {"mean": "0.5"}
    maps = network.stages(torch.zeros(2, 3, 160, 160))
    assert [tuple(stage.shape[2:]) for stage in maps] == [(40, 40), (20, 20), (10, 10), (5, 5)]


def test_digest_depends_only_on_the_weights(tmp_path: Path) -> None:
    state = timm_state()
    first = open_timm(save(tmp_path / "a.safetensors", state))
    again = open_timm(save(tmp_path / "b.safetensors", state, {"note": "same numbers"}))
    assert first.digest() == again.digest()
    state["conv1.0.weight"][0, 0, 0, 0] += 1
    assert open_timm(save(tmp_path / "c.safetensors", state)).digest() != first.digest()


@pytest.mark.parametrize("classes", [0, 7])
def test_classifier_may_be_missing_or_different(tmp_path: Path, classes: int) -> None:
    state = timm_state()
    del state["fc.weight"], state["fc.bias"]
    if classes:
        state |= {"fc.weight": torch.zeros(classes, 96), "fc.bias": torch.zeros(classes)}
    network = open_timm(save(tmp_path / "w.safetensors", state))
    assert isinstance(network.module.fc, nn.Identity)  # instead of random initialization
    assert not {name for name in network.module.state_dict() if name.startswith("fc")}


def test_batch_norm_counters_may_be_missing(tmp_path: Path) -> None:
    state = {name: value for name, value in timm_state().items() if not name.endswith("num_batches_tracked")}
    open_timm(save(tmp_path / "w.safetensors", state))


def test_wrong_names_and_shapes_are_listed(tmp_path: Path) -> None:
    state = timm_state()
    del state["conv1.0.weight"]
    state["stem.weight"] = torch.zeros(1)
    state["bn1.weight"] = torch.zeros(3)
    path = save(tmp_path / "w.safetensors", state)
    with pytest.raises(
        InvalidArgumentError,
        match=r"w\.safetensors: not the weights of timm:test_resnet: missing 1 \(conv1\.0\.weight\); "
        r"unexpected 1 \(stem\.weight\); with a different shape 1 \(bn1\.weight \[3\] instead of \[32\]\)",
    ):
        open_timm(path)
    with pytest.raises(InvalidArgumentError, match=r"not the weights of timm:test_vit: missing \d+ \(.*, \.\.\.\)"):
        open_timm(path, "test_vit")


def test_missing_and_malformed_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"nowhere.*: no such weights file"):
        open_timm(tmp_path / "nowhere")
    text = tmp_path / "w.pth"
    text.write_bytes(b"PK\x03\x04 a pickle in a zip")
    with pytest.raises(InvalidArgumentError, match="convert the weights to safetensors"):
        open_timm(text)


def test_unavailable_weights_error_says_what_to_do() -> None:
    with pytest.raises(
        WeightsUnavailableError,
        match=r"weights of timm:test_resnet are not available; tried the local cache and the hub \(timm/test_resnet.*"
        r"no network in tests.*--weights FILE.*--extractor classical, which works offline",
    ):
        open_timm(None)
    with pytest.raises(WeightsUnavailableError, match=r"torchvision:resnet18 .*tried the cache of torch\.hub and http"):
        open_torchvision_network("resnet18", stages=None, weights=None)


def test_offline_mode_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsUnavailableError, match="HF_HUB_OFFLINE is set"):
        open_timm(None)


def test_model_without_published_weights_is_refused() -> None:
    with pytest.raises(WeightsUnavailableError, match="timm, which has no pretrained weights for this model"):
        open_timm(None, "botnet50ts_256")


def test_cached_weights_are_loaded_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = timm_state()
    path = save(tmp_path / "model.safetensors", state)
    asked = []

    def cached(repository: str, file: str) -> str:
        asked.append((repository.split("/")[0], file))
        return str(path)

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", cached)
    network = open_timm(None)
    assert asked == [("timm", "model.safetensors")]
    assert network.digest() == open_timm(path).digest()


def answers(*_: Any, **__: Any) -> Any:
    """Simulate a reachable hub that rejects the request."""
    raise urllib.error.HTTPError("hub", 405, "method not allowed", None, None)  # type: ignore[arg-type]


def test_reachable_hub_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "model.safetensors", timm_state())

    monkeypatch.setattr(_networks.urllib.request, "urlopen", answers)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *_: str(path))
    assert open_timm(None).digest() == open_timm(path).digest()


def test_older_repository_layout_is_handled_by_timm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import RemoteEntryNotFoundError

    def not_there(*_: Any) -> str:
        raise RemoteEntryNotFoundError("no such file", response=SimpleNamespace(headers={}, request=None))

    monkeypatch.setattr(_networks.urllib.request, "urlopen", answers)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", not_there)
    state = timm_state()
    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", lambda *_, **__: dict(state))
    path = save(tmp_path / "w.safetensors", state)
    assert open_timm(None).digest() == open_timm(path).digest()


def test_unknown_models_and_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownExtractorError, match=r"timm has no model 'resnet51'; similar names are .*resnet50"):
        open_timm(None, "resnet51")
    with pytest.raises(UnknownExtractorError, match=r"no model 'qqq'; timm\.list_models\(\) lists all models"):
        open_timm(None, "qqq")
    with pytest.raises(UnknownExtractorError, match=r"timm has no weights called 'test_resnet\.mine': .*tag"):
        open_timm(None, "test_resnet.mine")
    path = save(tmp_path / "w.safetensors", timm_state())
    with pytest.raises(InvalidArgumentError, match=r"timm:test_resnet does not take the settings \{'wings': 2\}"):
        open_timm(path, wings=2)
    with pytest.raises(UnknownExtractorError, match="torchvision has no image classifier 'fasterrcnn_resnet50_fpn'"):
        open_torchvision_network("fasterrcnn_resnet50_fpn", stages=None, weights=None)


def test_timm_stages_are_configurable(tmp_path: Path) -> None:
    path = save(tmp_path / "w.safetensors", timm_state())
    network = open_timm_network("test_resnet", options={}, stages=("-1", "2"), weights=path)
    assert [stage.shape[-1] for stage in network.stages(torch.zeros(1, 3, 160, 160))] == [20, 5]
    for wrong in ("5", "layer1"):
        with pytest.raises(InvalidArgumentError, match=f"indices from -5 to 4, got {wrong}"):
            open_timm_network("test_resnet", options={}, stages=(wrong,), weights=path)


def test_transformers_have_feature_maps(tmp_path: Path) -> None:
    path = save(tmp_path / "w.safetensors", timm_state("test_vit"))
    maps = open_timm(path, "test_vit").stages(torch.zeros(1, 3, 160, 160))
    assert [tuple(stage.shape) for stage in maps] == [(1, 64, 10, 10)] * 4


def test_pooled_output_of_a_transformer_is_its_normalized_class_token(tmp_path: Path) -> None:
    path = save(tmp_path / "w.safetensors", timm_state("test_vit"))
    images = torch.randn(2, 3, 160, 160, generator=torch.Generator().manual_seed(1))
    network = open_timm_network("test_vit", options={}, stages=("pooled",), weights=path)
    with torch.no_grad():
        tokens = network.module.forward_features(images)  # type: ignore[operator]
        (pooled,) = network.stages(images)
    assert pooled.shape == (2, 64, 1, 1)
    # forward_features includes the final norm; the class token comes first.
    torch.testing.assert_close(pooled[:, :, 0, 0], tokens[:, 0])


@pytest.mark.thorough
def test_default_torchvision_stages_match_the_paper(tmp_path: Path) -> None:
    module = import_torchvision().models.resnet18(weights=None).eval()
    path = save(tmp_path / "w.safetensors", state_of(module))
    network = open_torchvision_network("resnet18", stages=None, weights=path)
    assert (network.size, network.mean) == (224, (0.485, 0.456, 0.406))
    images = torch.randn(1, 3, 96, 96)
    with torch.no_grad():
        maps = network.stages(images)
        expected = module.maxpool(module.relu(module.bn1(module.conv1(images))))
        for stage, layer in zip(maps, (module.layer1, module.layer2, module.layer3, module.layer4), strict=True):
            expected = layer(expected)
            torch.testing.assert_close(stage, expected)
    chosen = open_torchvision_network("resnet18", stages=("layer2", "layer4"), weights=path)
    with torch.no_grad():
        assert torch.equal(chosen.stages(images)[1], network.stages(images)[3])
    with pytest.raises(InvalidArgumentError, match=r"torchvision:resnet18 has no node layer9; its nodes are x, conv1"):
        open_torchvision_network("resnet18", stages=("layer9",), weights=path)


def test_torchvision_weights_come_from_its_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    models = import_torchvision().models
    module = models.squeezenet1_1(weights=None)
    kind = models.get_model_weights("squeezenet1_1")
    monkeypatch.setattr(kind, "get_state_dict", lambda *_, **__: state_of(module))
    network = open_torchvision_network("squeezenet1_1", stages=None, weights=None)
    path = save(tmp_path / "w.safetensors", state_of(module))
    assert network.digest() == open_torchvision_network("squeezenet1_1", stages=None, weights=path).digest()


@pytest.mark.large
def test_network_without_a_pyramid_is_refused(tmp_path: Path) -> None:
    module = import_torchvision().models.swin_t(weights=None)
    path = save(tmp_path / "w.safetensors", state_of(module))
    with pytest.raises(InvalidArgumentError, match="torchvision:swin_t has no pyramid of maps; choose another model"):
        open_torchvision_network("swin_t", stages=None, weights=path)

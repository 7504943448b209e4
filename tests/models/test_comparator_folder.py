"""Saving and loading comparator folders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.support.comparators import passing
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import NETWORK_FILE, open_extractor
from vidkin.models import (
    ComparatorConfig,
    build_comparator,
    comparator_digest,
    load_comparator,
    load_model,
    read_comparator_info,
    save_comparator,
)


def test_a_saved_comparator_is_loaded_unchanged(tmp_path: Path) -> None:
    config = ComparatorConfig(
        dimension=16, weighting="attention", spatial_share=0.35, temporal_span=28, unrelated=(-0.5, 0.25)
    )
    comparator = build_comparator(config, weights="random", seed=4)
    weights = tmp_path / "network.safetensors"
    save_file({"a": torch.ones(2)}, weights)
    folder = save_comparator(comparator, tmp_path / "model", weights=weights, metrics={"map": 0.5}, notes={"seed": 4})
    info = read_comparator_info(folder)
    assert info.config == config
    assert info.weights == folder / "extractor.safetensors"
    assert info.whitening is None
    assert (info.metrics, info.notes) == ({"map": 0.5}, {"seed": 4})
    loaded = load_comparator(folder)
    assert not loaded.training
    assert comparator_digest(loaded) == comparator_digest(comparator)
    # Save again with the weights file inside the folder itself, and then without it.
    save_comparator(loaded, folder, weights=info.weights)
    assert read_comparator_info(folder).weights is not None
    save_comparator(loaded, folder)
    assert read_comparator_info(folder).weights is None


def test_onnx_network_is_kept_as_an_onnx_file(tmp_path: Path) -> None:
    """The network of `vidkin` has no other weights; a leftover weights file would be loaded instead of it."""
    comparator = build_comparator(ComparatorConfig(extractor="vidkin", dimension=256), weights="random", seed=4)
    save_file({"a": torch.ones(2)}, tmp_path / "network.safetensors")
    save_comparator(comparator, tmp_path / "model", weights=tmp_path / "network.safetensors")
    folder = save_comparator(comparator, tmp_path / "model", weights=NETWORK_FILE)
    info = read_comparator_info(folder)
    assert info.weights == folder / "extractor.onnx"
    assert info.weights.read_bytes() == NETWORK_FILE.read_bytes()
    extractor = open_extractor(info.config.extractor, weights=info.weights, device="cpu")
    assert extractor.fingerprint == open_extractor("vidkin", device="cpu").fingerprint
    save_comparator(load_comparator(folder), folder, weights=info.weights)
    assert read_comparator_info(folder).weights == info.weights


def test_other_models_and_damaged_comparators_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnknownExtractorError, match="contains no model"):
        load_comparator(tmp_path)
    folder = save_comparator(passing(), tmp_path / "model")
    with pytest.raises(InvalidArgumentError, match="contains a video comparator, not an encoder"):
        load_model(folder)
    state = load_file(folder / "model.safetensors")
    save_file(
        {name: value for name, value in state.items() if name != "visil_head.fconv.bias"},
        folder / "model.safetensors",
    )
    with pytest.raises(InvalidArgumentError, match=r"missing 1 \(visil_head.fconv.bias\)"):
        load_comparator(folder)
    (folder / "config.toml").write_text('format = 1\n[model]\nkind = "clip"\n')
    with pytest.raises(InvalidArgumentError, match="must contain a comparator, got a model of kind 'clip'"):
        load_comparator(folder)


def test_a_folder_without_weights_is_rejected(tmp_path: Path) -> None:
    folder = save_comparator(passing(), tmp_path / "model")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InvalidArgumentError, match="cannot be read as weights"):
        load_comparator(folder)

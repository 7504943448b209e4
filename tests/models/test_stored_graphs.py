"""The ONNX files of a model folder give the results of torch, and are used only with matching weights."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tests.models.conftest import small
from tests.support.comparators import passing
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.features import open_extractor
from vidkin.media import Frames
from vidkin.models import (
    ComparatorConfig,
    ComparatorExtractor,
    Encoder,
    ExportError,
    build_comparator,
    comparator_digest,
    load_comparator,
    load_model,
    model_digest,
    open_encoder,
    save_comparator,
    save_model,
)
from vidkin.models.encoder import TorchEncoder
from vidkin.models.export import write_graph
from vidkin.models.extractor import OnnxEncoder


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate that torch is not installed."""
    monkeypatch.setattr("vidkin.models.extractor.has_torch", lambda: False)
    monkeypatch.setattr("vidkin.models.comparator_extractor.has_torch", lambda: False)


def batch(model: Encoder, count: int, frames: int = 0) -> np.ndarray:
    size = model.config.size
    shape = (frames or model.config.frames, 3, size, size) if model.config.takes_clips else (3, size, size)
    return np.random.default_rng(count).random((count, *shape), dtype=np.float32)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("image", {}),
        ("image", {"backbone": "vidkin", "size": 64}),
        ("clip", {}),
        ("clip", {"activation": "none", "embedding": 5}),
        ("c3d", {}),
        ("c3d", {"batch_norm": True}),
        ("deep_sbd", {}),
        ("deep_ranking", {"local_normalization": 3}),
        ("two_head", {"classes": 3}),
        ("two_head", {"classes": 3, "motion": "differences"}),
        ("frame_encoder", {"size": 64}),
    ],
)
def test_all_kinds_give_the_same_results_as_torch(kind: str, settings: dict[str, Any], tmp_path: Path) -> None:
    model = small(kind, **settings).train()
    state = torch.random.get_rng_state()
    folder = save_model(model, tmp_path)
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), state)
    found, expected = open_encoder(folder, device="cpu"), TorchEncoder(load_model(folder))
    assert isinstance(found, OnnxEncoder)
    assert found.digest == expected.digest == model_digest(model)
    assert (found.dimension, found.square_digest) == (model.dimension, model.square_digest)
    for count in (1, 4):
        inputs = batch(model, count)
        np.testing.assert_allclose(found.embed(inputs), expected.embed(inputs), atol=5e-6, rtol=0)


@pytest.mark.parametrize("kind", ["clip", "c3d"])
def test_clips_can_have_any_length(kind: str, tmp_path: Path) -> None:
    folder = save_model(small(kind), tmp_path)
    found, expected = open_encoder(folder, device="cpu"), TorchEncoder(load_model(folder))
    for frames in (1, 2, 5, 11):
        inputs = batch(load_model(folder), 2, frames)
        np.testing.assert_allclose(found.embed(inputs), expected.embed(inputs), atol=5e-6, rtol=0)


def test_a_network_of_fixed_length_rejects_other_lengths(tmp_path: Path) -> None:
    folder = save_model(small("deep_sbd"), tmp_path)
    with pytest.raises(InvalidArgumentError, match="clips must have 8 frames, got 5"):
        open_encoder(folder).embed(batch(load_model(folder), 1, 5))


def test_graphs_of_other_weights_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = save_model(small("image"), tmp_path / "model")
    state = load_file(folder / "model.safetensors")
    state["fully_connected.bias"] += 1
    save_file(state, folder / "model.safetensors")
    # If torch is installed, the weights are used, and the log says what to do.
    said = "model.onnx: was exported from a different model than model.safetensors; install torch"
    with caplog.at_level(logging.WARNING):
        found = open_encoder(folder, device="cpu")
    assert said in caplog.text
    inputs = batch(small("image"), 2)
    np.testing.assert_allclose(found.embed(inputs), TorchEncoder(load_model(folder)).embed(inputs), atol=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr("vidkin.models.extractor.has_torch", lambda: False)
        with pytest.raises(MissingPartError, match="was exported from a different model"):
            open_encoder(folder)


@pytest.mark.usefixtures("no_torch")
def test_invalid_and_damaged_graphs_are_rejected(tmp_path: Path) -> None:
    folder = save_model(small("image"), tmp_path / "model")
    graph = folder / "model.onnx"
    write_graph(nn.Linear(3, 2).eval(), (torch.ones(2, 3),), graph, {"a": {0: "n"}, "b": {0: "n"}}, metadata={})
    with pytest.raises(
        MissingPartError, match=r"was exported from a different model .*; install torch to use the model"
    ):
        open_encoder(folder)
    graph.write_bytes(b"no network")
    with pytest.raises(MissingPartError, match=r"not an ONNX file: .*; install torch to use the model"):
        open_encoder(folder)


def test_damaged_weights_give_the_same_error_as_with_torch(tmp_path: Path) -> None:
    folder = save_model(small("image"), tmp_path / "model")
    state = load_file(folder / "model.safetensors")
    state["fully_connected.bias"][0] = torch.nan
    save_file(state, folder / "model.safetensors")
    with pytest.raises(InvalidArgumentError, match=r"fully_connected.bias contains non-finite values"):
        open_encoder(folder)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InvalidArgumentError, match=r"model.safetensors: cannot be read as weights"):
        open_encoder(folder)


def test_a_network_unsupported_by_onnx_is_still_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = save_model(small("image"), tmp_path / "model")

    def refuse(*_: object, **__: object) -> Path:
        raise ExportError("ONNX lacks a part of this network")

    monkeypatch.setattr("vidkin.models.export.write_graph", refuse)
    other = small("image", hidden=20)
    with caplog.at_level(logging.WARNING):
        save_model(other, folder)
    assert "using this model requires torch: ONNX lacks a part of this network" in caplog.text
    assert not (folder / "model.onnx").exists()
    assert open_encoder(folder).digest == model_digest(other)


def test_a_graph_with_different_results_is_not_written(tmp_path: Path) -> None:
    class Branching(nn.Module):
        """A network that cannot be traced, because its first batch determines all results."""

        calls = 0

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return values + self.calls

    with pytest.raises(ExportError, match="the ONNX network's output differs from torch's"):
        write_graph(
            Branching().eval(), (torch.ones(2, 3),), tmp_path / "a.onnx", {"a": {0: "n"}, "b": {0: "n"}}, metadata={}
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("weighting", ["none", "attention", "direction", "signs"])
@pytest.mark.parametrize(("network", "padding"), [("cnn", "zeros"), ("cnn", "replicate"), ("none", "zeros")])
def test_a_comparator_gives_the_same_scores_as_torch(
    weighting: str, network: str, padding: str, tmp_path: Path, no_torch: None
) -> None:
    config = ComparatorConfig.from_mapping({
        "network": network, "padding": padding, "weighting": weighting, "symmetric": True,
        "spatial_share": 0.35, "temporal_share": 0.4, "unrelated": [0.0, 0.5],
    })  # fmt: skip
    comparator = build_comparator(config, weights="random", seed=3)
    folder = save_comparator(comparator, tmp_path / "model")
    assert (folder / "model.onnx").exists() == (network == "cnn")
    extractor = open_extractor(str(folder))
    assert isinstance(extractor, ComparatorExtractor)
    found, expected = extractor.comparator, load_comparator(folder).on_arrays()
    assert found.digest == expected.digest == comparator_digest(comparator)
    assert found.reduction == expected.reduction
    generator = np.random.default_rng(1)
    for rows, columns in ((1, 2), (8, 31), (40, 17)):
        query, target = (generator.normal(size=(length, 4, 128)).astype(np.float32) for length in (rows, columns))
        sides = [
            [one.weigh(side / np.linalg.norm(side, axis=-1, keepdims=True)) for side in (query, target)]
            for one in (found, expected)
        ]
        np.testing.assert_allclose(sides[0][0], sides[1][0], atol=1e-5)
        maps = [one.learned_map(one.frame_map(*pair)) for one, pair in zip((found, expected), sides, strict=True)]
        np.testing.assert_allclose(maps[0], maps[1], atol=1e-5)
        assert found.video_score(maps[0]) == pytest.approx(expected.video_score(maps[1]), abs=1e-5)


def test_a_stale_graph_of_a_comparator_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = save_comparator(passing(ComparatorConfig(unrelated=(0.0, 0.5))), tmp_path / "model")
    other = save_comparator(build_comparator(ComparatorConfig(), weights="random", seed=1), tmp_path / "other")
    shutil.copy(other / "model.onnx", folder / "model.onnx")
    frame_map = np.full((4, 4), 0.75, np.float32)
    with caplog.at_level(logging.WARNING):
        extractor = open_extractor(str(folder))
    assert "was exported from a different model" in caplog.text
    assert isinstance(extractor, ComparatorExtractor)
    assert extractor.comparator.learned_map(frame_map).tolist() == [[0.5]]  # 2 * .75 - 1
    monkeypatch.setattr("vidkin.models.comparator_extractor.has_torch", lambda: False)
    with pytest.raises(MissingPartError, match=r"install torch to use the model, or train it again"):
        open_extractor(str(folder))


def test_a_trained_frame_encoder_has_the_fingerprint_of_its_network(tmp_path: Path) -> None:
    model = small("frame_encoder", size=64)
    extractor = open_extractor(str(save_model(model, tmp_path)))
    frames = Frames(np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8), np.arange(2.0))
    found = extractor.extract(frames)
    assert extractor.fingerprint.startswith(f"squares-1-{model.square_digest[:12]}")
    assert found.values.shape == (2, 1, 1, model.dimension)
    np.testing.assert_allclose(np.linalg.norm(found.values, axis=-1), 1, atol=1e-5)

"""Exported models give the same results as the original ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.conftest import missing_part
from tests.models.conftest import clips, pictures, small
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.features import open_extractor
from vidkin.media import Frames
from vidkin.models import Encoder, EncoderConfig, build_model, export_model, open_encoder, save_model
from vidkin.models.export import write_graph

KINDS = ["clip", "image", "c3d"]


def make_model(kind: str) -> Encoder:
    """A model with few frames, because exporters unroll recurrent networks."""
    return small(kind, frames=3)


def batch_for(model: Encoder, count: int) -> tuple[torch.Tensor, ...]:
    config = model.config
    if not config.takes_clips:
        return (pictures(count, config.size, seed=count),)
    batch = clips(count, config.frames, config.size, seed=count)
    if config.kind != "clip":
        return (batch,)
    return batch, torch.arange(count) % config.frames + 1


def expected(model: Encoder, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    with torch.no_grad():
        return model.embed(*inputs)


@pytest.mark.large
@pytest.mark.parametrize("kind", KINDS)
def test_a_torch_program_gives_the_same_results(kind: str, tmp_path: Path) -> None:
    model = make_model(kind).train()
    model.class_names = ("a", "b")
    path = export_model(model, tmp_path / "model.pt2", format="torch")
    assert model.training  # unchanged by the export
    model.eval()
    extra = {"vidkin.json": ""}
    program = torch.export.load(path, extra_files=extra).module()
    assert json.loads(extra["vidkin.json"]) == {**model.config.to_mapping(), "class_names": ["a", "b"]}
    for count in (1, 2, 5):
        inputs = batch_for(model, count)
        found: Any = program(*inputs)
        embedding = found[0] if model.config.is_classifier else found
        torch.testing.assert_close(embedding, expected(model, inputs), atol=1e-6, rtol=0)


@pytest.mark.large
@pytest.mark.parametrize("kind", KINDS)
def test_onnx_gives_the_same_results(kind: str, tmp_path: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError as error:
        missing_part(f"{error.name} is not installed")
    model = make_model(kind)
    path = export_model(model, tmp_path / "model.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    session = onnxruntime.InferenceSession(path)
    about = json.loads(session.get_modelmeta().custom_metadata_map["vidkin"])
    assert about == {**model.config.to_mapping(), "class_names": []}
    names = [item.name for item in session.get_inputs()]
    assert names == (["clips", "lengths"] if kind == "clip" else ["clips"] if kind == "c3d" else ["pictures"])
    outputs = [item.name for item in session.get_outputs()]
    assert outputs == (["embedding", "logits"] if kind == "c3d" else ["embedding"])
    for count in (1, 2, 5):
        inputs = batch_for(model, count)
        found = session.run(None, {name: item.numpy() for name, item in zip(names, inputs, strict=True)})
        torch.testing.assert_close(torch.from_numpy(found[0]), expected(model, inputs), atol=2e-6, rtol=0)
        if kind == "c3d":
            logits = model(inputs[0].transpose(1, 2)).detach()
            torch.testing.assert_close(torch.from_numpy(found[1]), logits, atol=1e-5, rtol=1e-5)


def test_invalid_exports_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small("image")
    with pytest.raises(InvalidArgumentError, match="format must be one of 'onnx', 'torch', got 'tflite'"):
        export_model(model, tmp_path / "m", format="tflite")  # type: ignore[arg-type]
    for format in ("onnx", "torch"):
        with pytest.raises(InvalidArgumentError, match=r"is a folder; choose a file in it, for example .*model.onnx"):
            export_model(small("image"), tmp_path, format=format)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"missing: is not a folder; create it first"):
        export_model(model, tmp_path / "missing" / "m.onnx")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        MissingPartError,
        match=r"exporting to ONNX needs onnx; install it with: pip install .*\[train\]\"",
    ):
        export_model(model, tmp_path / "m.onnx")


@pytest.mark.large
@pytest.mark.parametrize("fit", ["letterbox", "crop"])
def test_an_exported_model_can_be_used_as_the_same_extractor(fit: str, tmp_path: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        missing_part(f"{error.name} is not installed")
    model = small("image", fit=fit)
    save_model(model, tmp_path / "model")
    path = export_model(model, tmp_path / "model.onnx")
    images = np.random.default_rng(0).integers(0, 256, (5, 48, 80, 3), dtype=np.uint8)
    frames = Frames(images, np.arange(5.0))
    ours = open_extractor(f"model:{tmp_path / 'model'}", device="cpu")
    exported = open_extractor(f"onnx:{path}", device="cpu")
    assert (exported.scorer, exported.short_side) == (ours.scorer, ours.short_side)
    assert exported.describes_boxes is ours.describes_boxes is False
    np.testing.assert_allclose(exported.extract(frames).values, ours.extract(frames).values, atol=2e-6, rtol=0)


@pytest.mark.large
def test_an_exported_model_of_clips_cannot_be_opened_as_an_extractor(tmp_path: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        missing_part(f"{error.name} is not installed")
    path = export_model(small("c3d", frames=8), tmp_path / "clips.onnx")
    with pytest.raises(InvalidArgumentError, match=r"takes clips \[.*; use the folder of the model with --model"):
        open_extractor(f"onnx:{path}")


@pytest.mark.large
@pytest.mark.parametrize("kind", ["image", "clip"])
def test_alexnet_for_small_images_can_be_exported(
    kind: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Its 6 x 6 pooling is larger than the feature map of a 64-pixel image, which ONNX does not support."""
    config = EncoderConfig(kind=kind, backbone="torchvision:alexnet", size=64, hidden=8, lstm=8, frames=2)
    model = build_model(config, weights="random", seed=0).eval()
    folder = save_model(model, tmp_path / "model")
    assert {"model.onnx", *({"head.onnx"} if kind == "clip" else ())} <= {file.name for file in folder.iterdir()}
    assert caplog.records == []
    assert capfd.readouterr().out == ""
    inputs = torch.rand(2, *((2, 3, 64, 64) if kind == "clip" else (3, 64, 64)))
    found = open_encoder(folder, device="cpu").embed(inputs.numpy())
    with torch.no_grad():
        np.testing.assert_allclose(found, model.embed(inputs).numpy(), atol=1e-5)


def test_an_unsupported_network_gives_a_single_error_message(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    class Bessel(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_j0(images)

    with pytest.raises(
        MissingPartError, match=r"m\.onnx cannot be written: ONNX does not support part of this network"
    ):
        write_graph(Bessel(), (torch.rand(2, 3),), tmp_path / "m.onnx", {"x": {0: "b"}, "y": {0: "b"}}, metadata={})
    assert capfd.readouterr().out == ""

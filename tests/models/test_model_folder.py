"""Saving and loading model folders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.conftest import clips, pictures, small
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.models import EncoderConfig, build_model, load_model, model_digest, read_model_info, save_model


@pytest.mark.parametrize("kind", ["clip", "image", "c3d", "deep_sbd", "deep_ranking"])
def test_a_saved_model_is_loaded_unchanged(kind: str, tmp_path: Path) -> None:
    model = small(kind)
    model.class_names = ("apple/braeburn", 'cherry/"rainier" ü')
    folder = save_model(model, tmp_path / "a model", metrics={"qp": 0.911}, notes={"seed": 3, "data": ["x"]})
    graphs = ["head.onnx", "model.onnx"] if kind == "clip" else ["model.onnx"]
    assert sorted(path.name for path in folder.iterdir()) == ["config.toml", *graphs, "model.safetensors"]
    loaded = load_model(folder)
    assert type(loaded) is type(model)
    assert loaded.config == model.config
    assert loaded.class_names == model.class_names
    assert not loaded.training
    assert model_digest(loaded) == model_digest(model)
    inputs = clips(2, 8) if model.config.takes_clips else pictures(2, model.config.size)
    assert torch.equal(loaded.embed(inputs), model.embed(inputs))
    info = read_model_info(folder)
    assert info.metrics == {"qp": 0.911}
    assert info.notes == {"seed": 3, "data": ["x"]}


def test_the_folder_contains_a_frozen_backbone(tiny_weights: Path, tmp_path: Path) -> None:
    config = EncoderConfig(kind="image", backbone="timm:test_resnet", trainable="head", size=64, hidden=8)
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes(tiny_weights.read_bytes())
    model = build_model(config, weights=weights).eval()
    folder = save_model(model, tmp_path / "model")
    weights.unlink()
    loaded = load_model(folder)
    assert torch.equal(loaded.embed(pictures(2, 64)), model.embed(pictures(2, 64)))
    assert not any(p.requires_grad for p in loaded.backbone.parameters())  # type: ignore[union-attr]


def test_saving_again_replaces_the_files_without_leftovers(tmp_path: Path) -> None:
    save_model(small("clip"), tmp_path)
    other = build_model(small("image").config, seed=4)
    save_model(other, tmp_path)
    assert model_digest(load_model(tmp_path)) == model_digest(other)
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1  # readable by the same users
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "model.onnx", "model.safetensors"]


def test_the_digest_depends_on_weights_and_configuration() -> None:
    model = small("clip")
    digest = model_digest(model)
    assert digest == model_digest(small("clip"))
    assert digest != model_digest(small("clip", rate=5.0))
    with torch.no_grad():
        next(model.parameters())[0] += 1e-6
    assert digest != model_digest(model)


def test_a_folder_without_a_model_is_rejected(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UnknownExtractorError, match=r"contains no model, because config.toml cannot be read"):
            load_model(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format = [", "config.toml: damaged: "),
        ("a = 1", r"does not describe a model: 'format' or \[model\] is missing"),
        (
            "format = 2\n[model]\nkind = 'image'",
            r"was written by a newer version of vidkin \(format 2, this version reads 1\); train the",
        ),
        (
            "format = 0\n[model]\nkind = 'image'",
            r"was written by an earlier version of vidkin \(format 0, this version reads 1\); train the model again",
        ),
        (
            "format = 1\n[model]\nkind = 'image'\nwheels = 4",
            r"\[model\] has no setting wheels; choose from kind",
        ),
        ("format = 1\nnotes = 3\n[model]\nkind = 'image'", r"damaged: \[notes\] is not a table"),
        ("format = 1\n[model]\nkind = 'image'\n[classes]\nnames = 3", "damaged: classes.names is not a list"),
        ("format = 1\n[model]\nkind = 'image'\nmean = 3", "model.mean must be a list, got 3"),
    ],
)
def test_damaged_descriptions_are_rejected(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(InvalidArgumentError, match=message):
        read_model_info(tmp_path)


def test_weights_of_another_model_are_rejected(tmp_path: Path) -> None:
    folder = save_model(small("image"), tmp_path)
    state = load_file(folder / "model.safetensors")
    del state["fully_connected.bias"]
    state["extra"] = torch.zeros(1)
    save_file(state, folder / "model.safetensors")
    with pytest.raises(
        InvalidArgumentError,
        match=r"not the weights of the model in .*: missing 1 \(fully_connected.bias\); unexpected 1 \(extra\)",
    ):
        load_model(folder)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InvalidArgumentError, match=r"model.safetensors: cannot be read as weights"):
        load_model(folder)


def test_a_folder_that_cannot_be_written_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match=r"file/model: Not a directory; choose a folder that can be written"):
        save_model(small("image"), tmp_path / "file" / "model")


def test_a_note_of_an_unsupported_type_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"when must be text, a number, .* got \{1\} \(set\)"):
        save_model(small("image"), tmp_path / "model", notes={"when": {1}})
    assert not (tmp_path / "model").exists()

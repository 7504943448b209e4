"""``vidkin export``: the file gives the same embeddings without vidkin."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.cli.conftest import run
from tests.conftest import missing_part
from tests.models.conftest import clips, small
from vidkin.features import FrameEncoder, open_square_encoder, save_frame_encoder
from vidkin.models import load_model, save_model


@pytest.mark.large
def test_onnx_runtime_gives_the_same_embeddings(tmp_path: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError as error:
        missing_part(f"{error.name} is not installed")
    output, folder = tmp_path / "model.onnx", save_model(small("clip"), tmp_path / "model")
    config = load_model(folder).config
    outcome = run("export", folder, "-o", output)
    assert f"clip, {config.frames} frames of {config.size} x {config.size} pixels to " in outcome.err.replace("\n", "")
    inputs, lengths = clips(4, config.frames, config.size), torch.tensor([3, 1, 2, 3])
    session = onnxruntime.InferenceSession(output)
    (embeddings,) = session.run(None, {"clips": inputs.numpy(), "lengths": lengths.numpy()})
    with torch.no_grad():
        expected = load_model(folder).embed(inputs, lengths)
    torch.testing.assert_close(torch.from_numpy(embeddings), expected, atol=2e-6, rtol=0)


@pytest.mark.large
def test_a_torch_program_gives_the_same_embeddings(tmp_path: Path) -> None:
    model = small("image")
    save_model(model, tmp_path / "model")
    output = tmp_path / "model.pt2"
    found = run("export", tmp_path / "model", "-o", output, "--format", "torch", "-f", "json").json
    assert (found["kind"], found["format"], found["size"], found["dimension"]) == ("image", "torch", 32, 24)
    images = torch.rand(3, 3, 32, 32)
    embeddings = torch.export.load(output).module()(images)
    torch.testing.assert_close(embeddings, model.embed(images), atol=1e-6, rtol=0)


def test_weights_of_a_frame_encoder_get_their_onnx_file(tmp_path: Path) -> None:
    weights = save_frame_encoder(FrameEncoder(), tmp_path / "own.safetensors")
    found = run("export", weights, "-o", tmp_path / "own.onnx", "-f", "json").json
    assert (found["kind"], found["size"], found["dimension"]) == ("frame_encoder", 64, 128)
    assert open_square_encoder(weights).digest == open_square_encoder(tmp_path / "own.onnx").digest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere", "-o", "{tmp}/m.onnx"], "nowhere: contains no model"),
        (["{stored}", "-o", "{tmp}/missing/m.onnx"], "missing; create it first"),
        (["{stored}", "-o", "{stored}/model.safetensors"], "is also an input; choose another output file"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    stored = save_model(small("image"), tmp_path / "model")
    outcome = run("export", *(word.format(tmp=tmp_path, stored=stored) for word in words), status=2)
    assert message in outcome.err
    assert outcome.err.count("\n") == 1

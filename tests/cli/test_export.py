"""``vidkin export``: the file gives the same embeddings without vidkin."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import run
from tests.conftest import missing_part
from tests.models.conftest import clips, small
from vidkin.features.frame_encoder import FrameEncoder, save_frame_encoder
from vidkin.features.sessions import open_square_encoder
from vidkin.models import load_model, open_encoder, save_model
from vidkin.models.extractor import OnnxEncoder

STORED = Path(__file__).parents[1] / "fixtures" / "model-0.1"


@pytest.mark.large
def test_onnx_runtime_gives_the_same_embeddings(tmp_path: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError as error:
        missing_part(f"{error.name} is not installed")
    output = tmp_path / "model.onnx"
    outcome = run("export", STORED, "-o", output)
    assert outcome.out.replace("\n", "").endswith("clip, 3 frames of 24 x 24 pixels to 12 values")
    inputs, lengths = clips(4, 3, 24), torch.tensor([3, 1, 2, 3])
    session = onnxruntime.InferenceSession(output)
    (embeddings,) = session.run(None, {"clips": inputs.numpy(), "lengths": lengths.numpy()})
    with torch.no_grad():
        expected = load_model(STORED).embed(inputs, lengths)
    torch.testing.assert_close(torch.from_numpy(embeddings), expected, atol=2e-6, rtol=0)


@pytest.mark.large
def test_a_torch_program_gives_the_same_embeddings(tmp_path: Path) -> None:
    model = small("image")
    save_model(model, tmp_path / "model")
    output = tmp_path / "model.pt2"
    found = run("export", tmp_path / "model", "-o", output, "--format", "torch", "--json").json
    assert (found["kind"], found["format"], found["size"], found["dimension"]) == ("image", "torch", 32, 24)
    images = torch.rand(3, 3, 32, 32)
    embeddings = torch.export.load(output).module()(images)
    torch.testing.assert_close(embeddings, model.embed(images), atol=1e-6, rtol=0)


def test_a_model_of_version_0_1_gets_its_onnx_files_in_place(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(STORED, tmp_path / "model"))
    outcome = run("export", folder, "--in-place")
    assert outcome.out.replace("\n", "").count(": written") == 2
    assert isinstance(open_encoder(folder), OnnxEncoder)
    for words in ([], ["--in-place", "-o", tmp_path / "m.onnx"]):
        assert "use either --output or --in-place" in run("export", folder, *words, status=2).err
    assert run("export", folder, "--in-place", "--json").json["outputs"] == [
        str(folder / "model.onnx"),
        str(folder / "head.onnx"),
    ]


def test_weights_of_a_frame_encoder_get_their_onnx_file(tmp_path: Path) -> None:
    weights = save_frame_encoder(FrameEncoder(), tmp_path / "own.safetensors")
    found = run("export", weights, "-o", tmp_path / "own.onnx", "--json").json
    assert (found["kind"], found["size"], found["dimension"]) == ("frame_encoder", 64, 128)
    assert open_square_encoder(weights).digest == open_square_encoder(tmp_path / "own.onnx").digest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere", "-o", "{tmp}/m.onnx"], "nowhere: holds no model"),
        (["{stored}", "-o", "{tmp}/missing/m.onnx"], "missing; create it first"),
        (["{stored}", "-o", "{stored}/model.safetensors"], "is also an input; choose another output file"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    outcome = run("export", *(word.format(tmp=tmp_path, stored=STORED) for word in words), status=2)
    assert message in outcome.err
    assert outcome.err.count("\n") == 1

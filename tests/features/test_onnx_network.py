"""Checks on opening an ONNX file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.features.onnx_files import (
    Shape,
    mean_colors,
    require_onnx,
    write_onnx,
)
from vidkin.errors import InvalidArgumentError
from vidkin.features.onnx import OnnxNetwork


@pytest.fixture(autouse=True)
def _needs_onnx() -> None:
    require_onnx()


@pytest.mark.parametrize(
    ("shape", "size", "layout", "found"),
    [
        (("batch", 3, 32, 32), None, None, (32, "nchw")),
        ((2, 3, "height", 48), None, None, (48, "nchw")),
        ((None, 3, None, None), 64, None, (64, "nchw")),
        (("batch", None, None, None), 32, "nchw", (32, "nchw")),
    ],
)
def test_size_and_layout_are_read_from_the_shape(
    shape: Shape, size: int | None, layout: str | None, found: tuple[int, str], tmp_path: Path
) -> None:
    path = mean_colors(tmp_path / "colors.onnx", shape)
    network = OnnxNetwork(path, size=size, layout=layout, device="cpu")  # type: ignore[arg-type]
    assert (network.size, network.layout) == found
    # The three images run in batches of the file's fixed size.
    side = network.size
    images = np.ones((3, side, side, 3), dtype=np.float32) * np.arange(3, dtype=np.float32)[:, None, None, None]
    assert network.run(images).tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    assert (network.shape, network.output, network.about) == ((3,), "colors", {})


@pytest.mark.parametrize(
    ("shape", "arguments", "message"),
    [
        (("batch", 3, "h", "w"), {}, "takes images of any size; add the size to use, such as size=224"),
        (
            ("batch", 3, 32, 32),
            {"size": 64},
            r"size must be 32, as the input is \[batch, 3, 32, 32\], got 64",
        ),
        (("batch", 3, 32, 48), {}, r"the input must be a square, got \[batch, 3, 32, 48\]"),
        (
            ("batch", 1, 32, 32),
            {},
            r"\[batch, 1, 32, 32\] does not say where its three channels are; add layout=",
        ),
        (("batch", 3, 32, 3), {}, "does not say where its three channels are"),
        (("batch", 3, 32, 32), {"layout": "nhwc"}, "layout must have three channels, got nhwc for the input"),
        (("batch", 3, 32, 32), {"output": "names"}, "there is no output 'names'; its outputs are colors"),
        (("batch", 3, 32, 32), {"output": "1"}, "there is no output '1'; its outputs are colors"),
    ],
)
def test_incompatible_arguments_are_rejected_by_name(
    shape: Shape, arguments: dict[str, object], message: str, tmp_path: Path
) -> None:
    path = mean_colors(tmp_path / "colors.onnx", shape)
    with pytest.raises(InvalidArgumentError, match=message):
        OnnxNetwork(path, device="cpu", **arguments)  # type: ignore[arg-type]


def test_one_of_several_outputs_can_be_chosen(tmp_path: Path) -> None:
    steps = [
        ("ReduceMean", "images", "means", {"axes": [2, 3], "keepdims": 0}),
        ("ReduceMax", "images", "largest", {"axes": [2, 3], "keepdims": 0}),
    ]
    path = write_onnx(tmp_path / "two.onnx", steps, ("batch", 3, 16, 16), outputs=["means", "largest"])
    with pytest.raises(InvalidArgumentError, match="its outputs are means, largest; choose one with output=NAME"):
        OnnxNetwork(path)
    image = np.zeros((1, 16, 16, 3), dtype=np.float32)
    image[0, 0, 0] = 256
    assert OnnxNetwork(path, output="largest", device="cpu").run(image).tolist() == [[256, 256, 256]]
    assert OnnxNetwork(path, output="0", device="cpu").run(image).tolist() == [[1, 1, 1]]


def test_files_that_are_not_image_encoders_are_refused(tmp_path: Path) -> None:
    add = [("Add", "a b", "sum", {})]
    path = write_onnx(tmp_path / "two.onnx", add, (1, 3, 32, 32), inputs=["a", "b"])
    with pytest.raises(InvalidArgumentError, match=r"this file takes a \[1, 3, 32, 32\] tensor\(float\), b "):
        OnnxNetwork(path)
    total = [("ReduceSum", "images", "total", {"keepdims": 0})]
    path = write_onnx(tmp_path / "total.onnx", total, ("batch", 3, 32, 32))
    with pytest.raises(InvalidArgumentError, match=r"output total must be \[B, D\], .* got \[\] for 4 images"):
        OnnxNetwork(path)
    wrong = [("Reshape", "images shape", "vector", {})]
    constants = {"shape": np.array([1, 7])}
    path = write_onnx(tmp_path / "wrong.onnx", wrong, ("batch", 3, 32, 32), constants=constants)
    with pytest.raises(InvalidArgumentError, match="does not run on images of 32 x 32 pixels: "):
        OnnxNetwork(path)
    (tmp_path / "text.onnx").write_text("not a network")
    with pytest.raises(InvalidArgumentError, match=r"text\.onnx: not an ONNX file: "):
        OnnxNetwork(tmp_path / "text.onnx")


@pytest.mark.parametrize("about", ["{", "[1]", "1", "[" * 100_000], ids=lambda text: text[:4])
def test_exports_with_damaged_metadata_are_refused(about: str, tmp_path: Path) -> None:
    import onnx

    path = mean_colors(tmp_path / "colors.onnx")
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {"vidkin": about})
    onnx.save(model, path)
    with pytest.raises(InvalidArgumentError, match=r"colors\.onnx: .* is damaged .*; export the model again"):
        OnnxNetwork(path, device="cpu")

"""Small ONNX files whose output is easy to compute by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import missing_part

Shape = Sequence[int | str | None]


def require_onnx() -> None:
    """Skip the test if ONNX files cannot be written or run."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        missing_part(f"{error.name} is not installed")


def write_onnx(path: Path, steps: Sequence[tuple[str, str, str, dict[str, Any]]], shape: Shape, **options: Any) -> Path:
    """Write an ONNX file.

    Args:
        path: The file.
        steps: Operator, inputs, output and attributes of each node; the input of the network is ``images``.
        shape: Shape of the input.
        options: ``outputs``, names (default: the output of the last step); ``type`` of the input (default: ``FLOAT``);
            ``inputs``, names (default: ``images``); ``constants``, name to array.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    kind = getattr(TensorProto, options.get("type", "FLOAT"))
    outputs = options.get("outputs", [steps[-1][2]])
    graph = helper.make_graph(
        [helper.make_node(operator, [*source.split()], [target], **given) for operator, source, target, given in steps],
        "network",
        [helper.make_tensor_value_info(name, kind, shape) for name in options.get("inputs", ["images"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in options.get("constants", {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, **options.get("saving", {}))
    return path


def mean_colors(path: Path, shape: Shape = ("batch", 3, 32, 32)) -> Path:
    """Write a network that returns the mean of each channel, [B, 3]."""
    return write_onnx(path, [("ReduceMean", "images", "colors", {"axes": [2, 3], "keepdims": 0})], shape)


def endless(path: Path) -> Path:
    """Write a network with an infinite loop."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    turn = [
        helper.make_node("Identity", ["goes_on"], ["goes_on_then"]),
        helper.make_node("Identity", ["value"], ["value_then"]),
    ]
    body = helper.make_graph(
        turn,
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("goes_on_then", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value_then", TensorProto.FLOAT, None),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["images"], ["colors"], axes=[2, 3], keepdims=0),
            helper.make_node("Loop", ["", "yes", "colors"], ["looped"], body=body),
        ],
        "network",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ("batch", 3, 32, 32))],
        [helper.make_tensor_value_info("looped", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(True), "yes")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def colors_in_a_file(path: Path, factor: float) -> Path:
    """Write a network that multiplies mean colors by a factor, stored next to it in ``weights.bin``."""
    steps = [
        ("ReduceMean", "images", "colors", {"axes": [2, 3], "keepdims": 0}),
        ("MatMul", "colors factors", "scaled", {}),
    ]
    factors = np.eye(3, dtype=np.float32) * [1, 1, factor]
    saving = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    constants = {"factors": factors.astype(np.float32)}
    return write_onnx(path, steps, ("batch", 3, 32, 32), constants=constants, saving=saving)

"""Untrusted ONNX files: networks that reference other files, and networks that never finish."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.features.onnx_files import colors_in_a_file, endless, mean_colors, require_onnx
from vidkin._base.stopping import StoppedError, stopping_when
from vidkin.errors import InvalidArgumentError
from vidkin.features.onnx import OnnxNetwork
from vidkin.features.sessions import open_session


@pytest.fixture(autouse=True)
def _onnx() -> None:
    require_onnx()


REFUSED = "the weights must be in the file itself"


def _external() -> Any:
    """A tensor whose values are the first twelve bytes of another file."""
    from onnx import TensorProto

    tensor = TensorProto(name="stolen", data_type=TensorProto.FLOAT, dims=[3])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret.bin")
    return tensor


def _in_a_subgraph(model: Any) -> None:
    from onnx import TensorProto, helper

    branch = helper.make_graph(
        [], "branch", [], [helper.make_tensor_value_info("stolen", TensorProto.FLOAT, [3])], [_external()]
    )
    model.graph.node.append(helper.make_node("If", ["images"], ["taken"], then_branch=branch, else_branch=branch))


def _in_a_constant(model: Any) -> None:
    from onnx import helper

    model.graph.node.append(helper.make_node("Constant", [], ["taken"], value=_external()))


def _in_a_sparse_tensor(model: Any) -> None:
    model.graph.sparse_initializer.add().values.CopyFrom(_external())


def _in_a_function(model: Any) -> None:
    from onnx import helper

    model.functions.add(name="f").node.append(helper.make_node("Constant", [], ["taken"], value=_external()))


def _in_training(model: Any) -> None:
    model.training_info.add().initialization.initializer.append(_external())


@pytest.mark.parametrize("hide", [_in_a_subgraph, _in_a_constant, _in_a_sparse_tensor, _in_a_function, _in_training])
def test_external_weights_are_refused_at_any_depth(hide: Callable[[Any], None], tmp_path: Path) -> None:
    import onnx

    (tmp_path / "secret.bin").write_bytes(np.ones(3, np.float32).tobytes())
    path = mean_colors(tmp_path / "colors.onnx")
    model = onnx.load(path, load_external_data=False)
    hide(model)
    path.write_bytes(model.SerializeToString())
    for open_file in (OnnxNetwork, open_session):
        with pytest.raises(InvalidArgumentError, match=REFUSED):
            open_file(path)  # type: ignore[operator]


def test_external_weights_are_refused_in_any_field_order(tmp_path: Path) -> None:
    path = colors_in_a_file(tmp_path / "colors.onnx", 2)
    content = path.read_bytes()
    entry = b"\n\x08location\x12\x0bweights.bin"
    assert content.count(entry) == 1

    for other in (entry, b"\x12\x0bweights.bin\n\x08location"):
        path.write_bytes(content.replace(entry, other))
        with pytest.raises(InvalidArgumentError, match=REFUSED):
            OnnxNetwork(path)

    (tmp_path / "weights.bin").unlink()
    with pytest.raises(InvalidArgumentError, match=REFUSED):
        OnnxNetwork(path)


def test_network_digest_is_the_file_digest(tmp_path: Path) -> None:
    import hashlib

    path = mean_colors(tmp_path / "colors.onnx")
    assert OnnxNetwork(path, device="cpu").digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"\x3a\xff\xff\xff\xff\x7f", b"\x0b\x0c", b"\x3a\x05ab"])
def test_damaged_onnx_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "damaged.onnx").write_bytes(content)
    with pytest.raises(InvalidArgumentError, match=r"damaged\.onnx: "):
        OnnxNetwork(tmp_path / "damaged.onnx")


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(InvalidArgumentError, match="not a regular file"):
        open_session(tmp_path / "pipe.onnx")


def test_endless_network_is_stopped_at_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.features.sessions._MAX_SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(InvalidArgumentError, match="the network did not finish within 1 s"):
        OnnxNetwork(endless(tmp_path / "endless.onnx"), device="cpu")
    assert time.monotonic() - began < 5


def test_endless_network_is_stopped_on_cancellation(tmp_path: Path) -> None:
    ends = time.monotonic() + 0.5
    with stopping_when(lambda: time.monotonic() > ends), pytest.raises(StoppedError):
        OnnxNetwork(endless(tmp_path / "endless.onnx"), device="cpu")
    assert time.monotonic() - ends < 2


@pytest.mark.kill
def test_ctrl_c_stops_an_endless_network(tmp_path: Path) -> None:
    path = endless(tmp_path / "endless.onnx")
    (tmp_path / "videos").mkdir()
    command = [sys.executable, "-m", "vidkin", "index", str(tmp_path / "videos")]
    command += ["--index", str(tmp_path / "i.vidkin"), "--extractor", f"onnx:{path}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    time.sleep(8)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=15)
    assert process.returncode == 130
    assert "Interrupted" in said
    assert "Traceback" not in said


@pytest.mark.hostile
@pytest.mark.parametrize("piece", [b"\0\0", b"\x08\0"], ids=["zeros", "versions"])
def test_file_with_millions_of_fields_is_refused_quickly(piece: bytes, tmp_path: Path) -> None:
    path = tmp_path / "long.onnx"
    path.write_bytes(piece * 10_000_000)
    start = time.process_time()
    with pytest.raises(InvalidArgumentError, match=r"long\.onnx: not an ONNX file"):
        OnnxNetwork(path)
    assert time.process_time() - start < 5

"""ONNX Runtime sessions are shared, limited in threads, and freed after use."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.features.onnx_files import mean_colors, require_onnx
from vidkin.errors import InvalidArgumentError
from vidkin.features import has_cuda, open_extractor, sessions, set_device, shipped_encoder
from vidkin.features.sessions import check_device, get_threads, open_session, set_threads


@pytest.fixture(autouse=True)
def _free_threads() -> Iterator[None]:
    require_onnx()
    yield
    set_threads(None)
    set_device("auto")


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Providers requested for each new session; ONNX Runtime pretends to support CUDA and runs on the CPU."""
    seen: list[Any] = []

    class Session(onnxruntime.InferenceSession):  # type: ignore[misc]
        def __init__(self, model: Any, options: Any, providers: list[Any]) -> None:
            seen.append(providers)
            super().__init__(model, options, providers=["CPUExecutionProvider"])

        def get_providers(self) -> list[str]:
            return [provider if isinstance(provider, str) else provider[0] for provider in seen[-1]]

    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: both)
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None, raising=False)
    # Earlier tests may have left sessions open or set the default device.
    monkeypatch.setattr(sessions, "_open", weakref.WeakValueDictionary())
    sessions._open_bundled_encoder.cache_clear()
    set_device("auto")
    yield seen
    sessions._open_bundled_encoder.cache_clear()


def test_network_has_one_session_while_in_use(tmp_path: Path) -> None:
    file = mean_colors(tmp_path / "colors.onnx")
    session = open_session(file)

    assert open_session(str(file)) is session
    content = open_session(file.read_bytes())
    assert content is open_session(file.read_bytes())
    assert content is not session

    assert open_session(file, threads=3) is not open_session(file, threads=4)

    still_open = weakref.ref(session)
    del session
    gc.collect()
    assert still_open() is None


def test_rewritten_file_is_read_again(tmp_path: Path) -> None:
    file = mean_colors(tmp_path / "colors.onnx")
    session = open_session(file)
    mean_colors(file, ("batch", 3, 16, 16))

    assert open_session(file) is not session
    assert open_session(file).get_inputs()[0].shape[2:] == [16, 16]


def test_thread_count_is_set_per_process(tmp_path: Path) -> None:
    file = mean_colors(tmp_path / "colors.onnx")
    assert 1 <= get_threads() <= 4
    set_threads(1)
    one = open_session(file)

    assert get_threads() == 1
    assert one.get_session_options().intra_op_num_threads == 1
    assert open_session(file, threads=2).get_session_options().intra_op_num_threads == 2
    with pytest.raises(InvalidArgumentError, match="threads must be at least 1, got 0"):
        set_threads(0)


def test_session_runs_the_network(tmp_path: Path) -> None:
    session = open_session(mean_colors(tmp_path / "colors.onnx"))
    images = np.arange(2 * 3 * 32 * 32, dtype=np.float32).reshape(2, 3, 32, 32)

    (colors,) = session.run(None, {"images": images})

    np.testing.assert_allclose(colors, images.mean(axis=(2, 3)), rtol=1e-6)
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_unreadable_model_is_named_in_the_error(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(b"no network")

    with pytest.raises(InvalidArgumentError, match=r"damaged\.onnx: not an ONNX file"):
        open_session(damaged)
    with pytest.raises(InvalidArgumentError, match="the network: onnxruntime"):
        open_session(b"no network")
    with pytest.raises(InvalidArgumentError, match=r"missing\.onnx: No such file"):
        open_session(tmp_path / "missing.onnx")


def test_invalid_device_names_are_refused(tmp_path: Path) -> None:
    for device in ("auto", "cpu", "cuda", "cuda:1"):
        assert check_device(device) == device
    for device in ("gpu", "cuda:", "cuda:one", "CPU", ""):
        with pytest.raises(InvalidArgumentError, match="device must be auto, cpu, cuda or cuda:N"):
            open_session(tmp_path, device=device)


@pytest.mark.skipif("has_cuda()")
def test_device_missing_from_onnxruntime_is_refused(tmp_path: Path) -> None:
    file = mean_colors(tmp_path / "colors.onnx")

    with pytest.raises(InvalidArgumentError, match="device 'cuda' needs CUDA, which the installed onnxruntime lacks"):
        open_session(file, device="cuda")
    assert open_session(file, device="auto").get_providers() == ["CPUExecutionProvider"]
    assert not has_cuda()


@pytest.mark.parametrize(("device", "number"), [("auto", 0), ("cuda", 0), ("cuda:1", 1)])
def test_cuda_device_is_requested_if_onnxruntime_supports_it(asked_for: list[Any], device: str, number: int) -> None:
    open_extractor("vidkin", device=device)

    assert asked_for == [[("CUDAExecutionProvider", {"device_id": number, "use_tf32": 0}), "CPUExecutionProvider"]]


def test_set_device_defines_auto(asked_for: list[Any]) -> None:
    set_device("cpu")
    open_extractor("squares")
    set_device("cuda:2")
    described = open_extractor("squares")
    shipped_encoder()  # the session of the cut detector
    open_extractor("squares", device="cpu")

    cuda = [("CUDAExecutionProvider", {"device_id": 2, "use_tf32": 0}), "CPUExecutionProvider"]
    # Both share one session on cuda:2 while it is in use.
    assert asked_for == [["CPUExecutionProvider"], cuda, ["CPUExecutionProvider"]], described
    assert check_device("auto") == "cuda:2"


@pytest.mark.skipif("has_cuda()")
def test_unsupported_device_is_refused_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = (
        "device 'cuda:1' needs CUDA, which the installed onnxruntime lacks; use auto or cpu, or replace it: "
        "pip uninstall onnxruntime, then pip install onnxruntime-gpu"
    )
    for has_torch in (True, False):
        if not has_torch:
            monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(InvalidArgumentError) as told:
            set_device("cuda:1")
        assert str(told.value) == sentence
        with pytest.raises(InvalidArgumentError) as told:
            open_extractor("vidkin", device="cuda:1")
        assert str(told.value) == sentence
    assert check_device("auto") == "auto"
    with pytest.raises(InvalidArgumentError, match="device must be auto, cpu, cuda or cuda:N, got 'gpu'"):
        open_extractor("classical", device="gpu")

"""Sessions of ONNX Runtime are shared, bounded, and no longer kept than used."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.features.onnx_files import mean_colors, require_onnx
from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import check_device, get_threads, has_cuda, open_session, set_threads


@pytest.fixture(autouse=True)
def _free_threads() -> Iterator[None]:
    require_onnx()
    yield
    set_threads(None)


def test_a_network_has_one_session_while_it_is_used(tmp_path: Path) -> None:
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


def test_a_file_written_anew_is_read_anew(tmp_path: Path) -> None:
    file = mean_colors(tmp_path / "colors.onnx")
    session = open_session(file)
    mean_colors(file, ("batch", 3, 16, 16))

    assert open_session(file) is not session
    assert open_session(file).get_inputs()[0].shape[2:] == [16, 16]


def test_the_process_says_how_many_threads_a_session_has(tmp_path: Path) -> None:
    file = mean_colors(tmp_path / "colors.onnx")
    assert 1 <= get_threads() <= 4
    set_threads(1)
    one = open_session(file)

    assert get_threads() == 1
    assert one.get_session_options().intra_op_num_threads == 1
    assert open_session(file, threads=2).get_session_options().intra_op_num_threads == 2
    with pytest.raises(InvalidArgumentError, match="threads must be at least 1, got 0"):
        set_threads(0)


def test_a_session_computes(tmp_path: Path) -> None:
    session = open_session(mean_colors(tmp_path / "colors.onnx"))
    images = np.arange(2 * 3 * 32 * 32, dtype=np.float32).reshape(2, 3, 32, 32)

    (colors,) = session.run(None, {"images": images})

    np.testing.assert_allclose(colors, images.mean(axis=(2, 3)), rtol=1e-6)
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(b"no network")

    with pytest.raises(InvalidArgumentError, match=r"damaged\.onnx: onnxruntime .* cannot open this file"):
        open_session(damaged)
    with pytest.raises(InvalidArgumentError, match="the network: onnxruntime"):
        open_session(b"no network")
    with pytest.raises(InvalidArgumentError, match=r"missing\.onnx: No such file"):
        open_session(tmp_path / "missing.onnx")


def test_a_device_is_a_text(tmp_path: Path) -> None:
    for device in ("auto", "cpu", "cuda", "cuda:1"):
        assert check_device(device) == device
    for device in ("gpu", "cuda:", "cuda:one", "CPU", ""):
        with pytest.raises(InvalidArgumentError, match="device must be auto, cpu, cuda or cuda:N"):
            open_session(tmp_path, device=device)


@pytest.mark.skipif("has_cuda()")
def test_a_device_that_onnxruntime_lacks_is_refused(tmp_path: Path) -> None:
    file = mean_colors(tmp_path / "colors.onnx")

    with pytest.raises(InvalidArgumentError, match="this onnxruntime has no CUDA for device 'cuda'"):
        open_session(file, device="cuda")
    assert open_session(file, device="auto").get_providers() == ["CPUExecutionProvider"]
    assert not has_cuda()

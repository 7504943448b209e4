"""ONNX Runtime sessions, one per process and network, with a limited number of threads that never spin.

All networks that run without torch use them: ``onnx:`` files, trained models, shot detectors and frame encoders.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, check_regular_file
from vidkin._base.registry import load_attribute
from vidkin._base.stopping import check_wanted
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.features.onnx_file import read_onnx
from vidkin.features.onnx_runtime import load_onnxruntime

_CUDA = "CUDAExecutionProvider"
_CPU = "CPUExecutionProvider"
_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")
# More threads do not speed up networks this small.
_MAX_THREADS = 4

# In seconds: time limit of a call, interval of checks for cancellation, and wait for a canceled call to end.
_MAX_SECONDS, _POLL_SECONDS, _STOP_SECONDS = 120.0, 0.2, 1.0

_threads: int | None = None
_device = "auto"
# Open sessions, shared by all users of a network. The key includes the process, because a session's threads do not
# survive a fork.
_open: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
_lock = Lock()

SHIPPED = Path(__file__).with_name("data") / "squares.onnx"
"""The small encoder bundled with the package."""

# Squares per pass: enough to keep the CPU busy, few enough to stay in its cache.
_SQUARES_PER_PASS = 32
_SQUARES_PER_PASS_ON_CUDA = 512


def set_threads(count: int | None) -> None:
    """Set the number of threads for sessions that this process opens from now on; None: one per core, at most 4.

    Worker processes share the machine, so they call this with 1 before opening any session.

    Raises:
        InvalidArgumentError: The count is below 1.
    """
    global _threads
    if count is not None and count < 1:
        raise InvalidArgumentError(f"threads must be at least 1, got {count}")
    _threads = count


def get_threads() -> int:
    """Return the default number of threads per session."""
    return _threads or min(os.cpu_count() or 1, _MAX_THREADS)


@check_arguments
def set_device(device: str) -> None:
    """Set the meaning of ``auto`` in this process: ``cpu``, ``cuda``, ``cuda:1``, or ``auto`` for CUDA if available.

    Open sessions keep their device. An index that is opened afterward passes the setting to its worker processes.

    Raises:
        InvalidArgumentError: The name is invalid, or neither ONNX Runtime nor torch has CUDA.
    """
    global _device
    if device != "auto" and check_device(device) != "cpu" and not has_cuda():
        _require_torch_with_cuda(device)
    _device = device


def check_device(device: str) -> str:
    """Check a device name (``auto``, ``cpu``, ``cuda``, ``cuda:N``) and return it, replacing ``auto`` with the device
    set by :func:`set_device`.

    Raises:
        InvalidArgumentError: The name is invalid.
    """
    if device == "auto":
        return _device
    if not _DEVICE.fullmatch(device):
        raise InvalidArgumentError(f"device must be auto, cpu, cuda or cuda:N, got {device!r}")
    return device


@check_arguments
def resolve_device(device: str) -> str:
    """Return the device on which torch computes; ``auto`` is ``cuda`` if torch finds one, otherwise ``cpu``.

    Requires torch.

    Raises:
        InvalidArgumentError: The name is invalid, or torch finds no CUDA device.
    """
    device = check_device(device)
    if device == "cpu":
        return device
    import torch

    found = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if found else "cpu"
    if not found:
        raise InvalidArgumentError(f"no CUDA device found for device {device!r}; use cpu")
    return device


def has_cuda() -> bool:
    """Whether the installed ONNX Runtime supports CUDA, not whether there is a CUDA device."""
    return _CUDA in load_onnxruntime().get_available_providers()


def _require_torch_with_cuda(device: str) -> None:
    """Raise an error unless torch is installed and supports the device that ONNX Runtime lacks."""
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return
    raise _cuda_error(device)


def _cuda_error(device: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"device {device!r} needs CUDA, which the installed onnxruntime lacks; use auto or cpu, or replace it: "
        "pip uninstall onnxruntime, then pip install onnxruntime-gpu"
    )


def open_session(model: bytes | PathLike, *, threads: int | None = None, device: str = "cpu", name: str = "") -> Any:
    """Open an ``onnxruntime.InferenceSession``, or return one that is already open in this process.

    Args:
        model: An ONNX file, or its content from :func:`~vidkin.features.onnx_file.read_onnx`.
        threads: Number of threads per call of ``run``; default: see :func:`set_threads`.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``: CUDA if ONNX Runtime supports it and finds a device.
            ``session.get_providers()[0]`` names the device in use.
        name: File name for messages if ``model`` is the content of a file.

    Raises:
        InvalidArgumentError: The file cannot be opened, its weights are in another file, or the device does not exist.
    """
    given = None if threads is None else max(1, threads)
    count = given or get_threads()
    device = check_device(device)
    key = (os.getpid(), _identity(model), count, device)
    with _lock:
        session = _open.get(key)
        if session is None:
            session = _open[key] = _create(model, count, device, name)
    return session


def session_failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that onnxruntime raises when opening or running networks; they have no common base
    class."""
    load_onnxruntime()
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = (kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (*own, RuntimeError, ValueError)


def _identity(model: bytes | PathLike) -> tuple[object, ...]:
    """Return the identity of a network: its content, or the current state of its file."""
    if isinstance(model, bytes):
        return (hashlib.sha256(model).hexdigest(),)
    path = os.path.realpath(model)
    try:
        status = os.stat(path)
    except OSError as error:
        raise InvalidArgumentError(f"{os.fspath(model)}: {error.strerror}; check the path") from error
    return path, status.st_mtime_ns, status.st_size


def _create(model: bytes | PathLike, threads: int, device: str, name: str) -> Any:
    onnxruntime = load_onnxruntime()
    where = name or ("the network" if isinstance(model, bytes) else os.fspath(model))
    try:
        # Pass the content rather than the path, so that the network that runs is the one that was checked.
        content = model if isinstance(model, bytes) else read_onnx(model)
    except OSError as error:
        raise InvalidArgumentError(f"{where}: cannot be read ({error.strerror or error})") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    onnxruntime.set_default_logger_severity(4)
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    # Memory patterns use memory for each batch size and save no time.
    options.enable_mem_pattern = False
    # Spinning threads would take CPU time from other workers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    providers: list[Any] = [_CPU]
    wants_cuda = device != "cpu" and has_cuda()
    if device.startswith("cuda") and not wants_cuda:
        raise _cuda_error(device)
    if wants_cuda:
        number = int(device.partition(":")[2] or 0)
        providers = [(_CUDA, {"device_id": number, "use_tf32": 0}), _CPU]
        if hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()  # CUDA libraries that were installed with torch or by pip
    try:
        session = onnxruntime.InferenceSession(content, options, providers=providers)
    except session_failures() as error:
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InvalidArgumentError(
            f"{where}: onnxruntime {onnxruntime.__version__} cannot open this file: {cause}"
        ) from error
    # If there is no CUDA device, onnxruntime silently falls back to the CPU.
    if device.startswith("cuda") and session.get_providers()[0] != _CUDA:
        raise InvalidArgumentError(f"no CUDA device found for device {device!r}; use cpu")
    return session


def run_session(session: Any, outputs: list[str] | None, inputs: Mapping[str, NDArray[Any]]) -> list[Any]:
    """Run a network with a time limit, because it may contain an endless loop; return the outputs of ``session.run``.

    Ctrl-C and cancellation (see :mod:`vidkin._base.stopping`) interrupt the call.

    Raises:
        InvalidArgumentError: The call took longer than two minutes.
    """
    options = load_onnxruntime().RunOptions()
    answer: list[Any] = []
    # Use an event instead of Thread.join: in Python 3.11, Ctrl-C during join makes the thread look finished.
    has_ended = Event()

    def run() -> None:
        try:
            answer.append(session.run(outputs, inputs, options))
        # Raised again in the waiting thread.
        except BaseException as error:  # noqa: BLE001
            answer.append(error)
        has_ended.set()

    Thread(target=run, name="vidkin network", daemon=True).start()
    ends = time.monotonic() + _MAX_SECONDS
    try:
        # Wait in short intervals so that signals are handled.
        while not has_ended.wait(_POLL_SECONDS):
            check_wanted()
            if time.monotonic() > ends:
                raise InvalidArgumentError(f"the network did not finish within {_MAX_SECONDS:g} s")
    finally:
        if not has_ended.is_set():
            options.terminate = True
            has_ended.wait(_STOP_SECONDS)
    if isinstance(answer[0], BaseException):
        raise answer[0]
    return answer[0]  # type: ignore[no-any-return]


class SquareEncoder:
    """Network that encodes squares [N, 3, side, side] as unit vectors [N, D].

    Args:
        run: Function from squares [N, 3, side, side] float32 with values in 0..255 to vectors [N, D] float32.
        side: Side of a square in pixels.
        dimension: Length of the vectors.
        digest: SHA-256 of the settings and weights; see :func:`weights_digest`.
        batch: Number of squares per call of ``run``.
    """

    def __init__(
        self,
        run: Callable[[NDArray[np.float32]], NDArray[np.float32]],
        *,
        side: int,
        dimension: int,
        digest: str,
        batch: int = _SQUARES_PER_PASS,
    ) -> None:
        self.side: Final = side
        self.dimension: Final = dimension
        self.digest: Final = digest
        self._run = run
        self._batch = batch

    def encode(self, squares: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute unit vectors [N, D] of squares with values in 0..255, [N, 3, side, side] or [N, side, side, 3]."""
        if squares.shape[1:] == (self.side, self.side, 3):
            squares = squares.transpose(0, 3, 1, 2)
        vectors = np.empty((len(squares), self.dimension), np.float32)
        for first in range(0, len(squares), self._batch):
            part = slice(first, first + self._batch)
            vectors[part] = self._run(np.ascontiguousarray(squares[part], dtype=np.float32))
        return vectors


def shipped_encoder() -> SquareEncoder:
    """Return the bundled encoder, on the device set by :func:`set_device`; it is opened once per process."""
    return _open_bundled_encoder(os.getpid(), check_device("auto"))


@check_arguments
def open_square_encoder(weights: PathLike | None = None, *, device: str = "auto") -> SquareEncoder:
    """Open a frame encoder.

    Args:
        weights: An ONNX file written by :func:`vidkin.features.frame_encoder.export_frame_encoder`; or weights in
            FILE.safetensors, which run without torch if a FILE.onnx with the same weights is in the same folder.
            Default: the bundled encoder.
        device: ``auto`` (CUDA if ONNX Runtime supports it), ``cpu``, ``cuda`` or ``cuda:1``. Torch is used for a CUDA
            device if ONNX Runtime does not support CUDA.

    Raises:
        InvalidArgumentError: The file is damaged or contains something else, or the device does not exist.
        MissingPartError: There are only safetensors weights, and torch is not installed.
    """
    path = SHIPPED if weights is None else Path(weights).expanduser()
    file = path if path.suffix == ".onnx" else path.with_suffix(".onnx")
    of_weights = None if path.suffix == ".onnx" else read_weights_digest(path)
    device = check_device(device)
    on_torch = device.startswith("cuda") and not has_cuda()
    if not on_torch and file.is_file():
        encoder = _open_onnx(file, device)
        if of_weights in (None, encoder.digest):
            return encoder
    if file == path and path != SHIPPED:
        raise InvalidArgumentError(f"onnxruntime has no CUDA for device {device!r}; use cpu, or weights in safetensors")
    if on_torch:
        _require_torch_with_cuda(device)
    return _open_with_torch(path.with_suffix(".safetensors"), device)


def weights_digest(settings: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of a network's settings and its weights by name: the identity of an encoder, independent of
    the file format."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, values in sorted(weights.items()):
        digest.update(name.encode())
        digest.update(np.asarray(values, dtype=np.float32).tobytes())
    return digest.hexdigest()


def read_weights_digest(path: PathLike) -> str:
    """Return the :func:`weights_digest` of a safetensors file that ``save_frame_encoder`` wrote.

    Raises:
        InvalidArgumentError: The file is damaged or contains something else.
    """
    from safetensors import SafetensorError, safe_open

    try:
        check_regular_file(path, follow_links=True)
        with safe_open(os.fspath(path), framework="np") as file:
            settings = parse_json((file.metadata() or {}).get("settings", "null"))
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if not isinstance(settings, dict):
            raise InvalidArgumentError("its metadata has no settings")
    except (OSError, SafetensorError, ValueError) as error:
        raise InvalidArgumentError(
            f"{os.fspath(path)} must be the weights of a frame encoder: {str(error).splitlines()[0]}"
        ) from error
    return weights_digest(settings, weights)


@cache
def _open_bundled_encoder(process: int, device: str) -> SquareEncoder:
    # A session's threads do not survive a fork, so a child process opens its own session.
    return open_square_encoder(device=device)


def _open_onnx(path: Path, device: str) -> SquareEncoder:
    """Open an encoder from an ONNX file that vidkin wrote."""
    session = open_session(path, device=device)
    about = session.get_modelmeta().custom_metadata_map
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if "digest" not in about or len(inputs) != 1 or len(outputs) != 1:
        raise InvalidArgumentError(f"{path} must be a frame encoder written by vidkin; its metadata has no digest")

    def run(squares: NDArray[np.float32]) -> NDArray[np.float32]:
        (vectors,) = run_session(session, [outputs[0].name], {inputs[0].name: squares})
        return vectors  # type: ignore[no-any-return]

    on_cuda = session.get_providers()[0] != "CPUExecutionProvider"
    return SquareEncoder(
        run,
        side=int(inputs[0].shape[-1]),
        dimension=int(outputs[0].shape[-1]),
        digest=about["digest"],
        batch=_SQUARES_PER_PASS_ON_CUDA if on_cuda else _SQUARES_PER_PASS,
    )


def _open_with_torch(path: Path, device: str) -> SquareEncoder:
    """Open an encoder from a safetensors file with torch."""
    try:
        # Import it by name, because that module imports this one.
        load_frame_encoder = load_attribute("vidkin.features.frame_encoder:load_frame_encoder")
    except ImportError as error:
        file = path.with_suffix(".onnx")
        raise MissingPartError(
            f"{path} needs torch, which is not installed, or {file.name} in the same folder; where torch is installed, "
            f"write that file with: vidkin export {path} --output {file}"
        ) from error
    encoder: SquareEncoder = load_frame_encoder(path).on_squares(device)
    return encoder

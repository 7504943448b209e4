"""Sessions of ONNX Runtime: one per process and network, on a bounded number of threads that never spin.

Everything that runs a network without torch opens it here: the shipped encoder, ``onnx:`` files, trained models and the
detectors of cuts.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from vidkin._base.files import PathLike
from vidkin.errors import InvalidArgumentError

_CUDA = "CUDAExecutionProvider"
_CPU = "CPUExecutionProvider"
_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")
# More threads than this gain nothing for networks as small as ours.
_MOST_THREADS = 4

_threads: int | None = None
# Sessions in use, so that two readers of one network share it. The process is part of the key: the threads of a session
# do not survive a fork.
_open: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
_lock = Lock()


def set_threads(count: int | None) -> None:
    """Set the threads of sessions that this process opens from now on; None: one per core, at most 4.

    A worker process that shares the machine with others calls it with 1 before it opens anything.

    Raises:
        InvalidArgumentError: The count is below 1.
    """
    global _threads
    if count is not None and count < 1:
        raise InvalidArgumentError(f"threads must be at least 1, got {count}")
    _threads = count


def get_threads() -> int:
    """The threads of a session that is opened without a number of its own."""
    return _threads or min(os.cpu_count() or 1, _MOST_THREADS)


def check_device(device: str) -> str:
    """Return the device if it is written ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        InvalidArgumentError: It is something else.
    """
    if device != "auto" and not _DEVICE.fullmatch(device):
        raise InvalidArgumentError(f"device must be auto, cpu, cuda or cuda:N, got {device!r}")
    return device


def resolve_device(device: str) -> str:
    """The device on which torch computes: ``auto`` is ``cuda`` if torch finds one, else ``cpu``. It needs torch.

    Raises:
        InvalidArgumentError: The device is written in another way, or torch finds no CUDA device.
    """
    if check_device(device) == "cpu":
        return device
    import torch

    found = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if found else "cpu"
    if not found:
        raise InvalidArgumentError(f"no CUDA device found for device {device!r}; use cpu")
    return device


def has_cuda() -> bool:
    """Whether the installed ONNX Runtime can compute on CUDA devices; not whether there is one."""
    import onnxruntime

    return _CUDA in onnxruntime.get_available_providers()


def open_session(model: bytes | PathLike, *, threads: int | None = None, device: str = "cpu", digest: str = "") -> Any:
    """Open an ``onnxruntime.InferenceSession``, or return the one of this process that is still in use.

    Args:
        model: An ONNX file, or its content.
        threads: Threads that compute one call of ``run``; None: see :func:`set_threads`.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``: CUDA if ONNX Runtime has it and finds a device.
            ``session.get_providers()[0]`` tells which it is.
        digest: Of a file with weights in files beside it, which may change without it.

    Raises:
        InvalidArgumentError: The file cannot be opened, or there is no such device.
    """
    given = None if threads is None else max(1, threads)
    count = given or get_threads()
    key = (os.getpid(), _identity(model), digest, count, check_device(device))
    with _lock:
        session = _open.get(key)
        if session is None:
            session = _open[key] = _create(model, count, device)
    return session


def session_failures() -> tuple[type[Exception], ...]:
    """Exceptions that onnxruntime raises when it opens or runs a network; they have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = (kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (*own, RuntimeError, ValueError)


def _identity(model: bytes | PathLike) -> tuple[object, ...]:
    """What distinguishes one network from another: its content, or its file as it is now."""
    if isinstance(model, bytes):
        return (hashlib.sha256(model).hexdigest(),)
    path = os.path.realpath(model)
    try:
        status = os.stat(path)
    except OSError as error:
        raise InvalidArgumentError(f"{os.fspath(model)}: {error.strerror}; check the path") from error
    return path, status.st_mtime_ns, status.st_size


def _create(model: bytes | PathLike, threads: int, device: str) -> Any:
    import onnxruntime

    where = "the network" if isinstance(model, bytes) else os.fspath(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    # Planned memory is kept once per size of a batch, for no gain in speed.
    options.enable_mem_pattern = False
    # Waiting threads would take processor time from the other workers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    providers: list[Any] = [_CPU]
    wants_cuda = device != "cpu" and has_cuda()
    if device.startswith("cuda") and not wants_cuda:
        raise InvalidArgumentError(
            f"this onnxruntime has no CUDA for device {device!r}; install onnxruntime-gpu, or use cpu"
        )
    if wants_cuda:
        number = int(device.partition(":")[2] or 0)
        providers = [(_CUDA, {"device_id": number, "use_tf32": 0}), _CPU]
        if hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()  # the CUDA libraries that torch or pip brought
    try:
        session = onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else str(Path(model)), options, providers=providers
        )
    except session_failures() as error:
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InvalidArgumentError(
            f"{where}: onnxruntime {onnxruntime.__version__} cannot open this file: {cause}"
        ) from error
    # Without a device, onnxruntime goes on with the processor.
    if device.startswith("cuda") and session.get_providers()[0] != _CUDA:
        raise InvalidArgumentError(f"no CUDA device found for device {device!r}; use cpu")
    return session

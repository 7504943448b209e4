"""The life of a worker process: what :class:`~vidkin.index.ingest.processes.ProcessExecutor` runs."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from vidkin.errors import VidkinError
from vidkin.features import FrameExtractor
from vidkin.index.ingest.executor import Unreadable, WorkerSpec
from vidkin.index.ingest.serial import describe_video

__all__ = ["Alive", "Bug", "receive", "run_worker", "send"]


@dataclass(frozen=True, slots=True)
class Alive:
    """The worker has opened its extractor, or decoded a few more frames."""


@dataclass(frozen=True, slots=True)
class Bug:
    """Something went wrong that is not the file's fault.

    Attributes:
        error: The exception.
        trace: Its traceback in the worker.
    """

    error: Exception
    trace: str


def send(connection: Connection, message: object) -> None:
    """Send any message.

    Pickled here: the connection itself would pass tensors through shared memory, which needs a common parent.
    """
    connection.send_bytes(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))


def receive(connection: Connection) -> Any:
    """The next message; :class:`EOFError` or :class:`ConnectionResetError` when the other side is gone."""
    return pickle.loads(connection.recv_bytes())


def run_worker(descriptor: int) -> None:
    """Receive a specification, then describe file after file until told to stop.

    The parent sends a ``WorkerSpec``, then paths, then None. The answers are one :class:`Alive` when the extractor is
    open, and for each file any number of :class:`Alive` and of events, the last of which is a ``Described`` or an
    ``Unreadable``, or a :class:`Bug`.

    Args:
        descriptor: Of the pipe to the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent gets it too, and ends its workers.
    _die_with_parent()
    torch.set_num_threads(1)
    connection = Connection(descriptor)
    try:
        spec: WorkerSpec = receive(connection)
        try:
            extractor = spec.open()
        except VidkinError as error:
            send(connection, _bug(error))
            return
        send(connection, Alive())
        while (path := receive(connection)) is not None:
            _describe(path, extractor, spec.base_rate, connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # The parent is gone: nobody is left to tell.


def _describe(path: str, extractor: FrameExtractor, base_rate: float, connection: Connection) -> None:
    try:
        for event in describe_video(path, extractor, base_rate, beat=lambda: send(connection, Alive())):
            send(connection, event)
    except MemoryError:
        send(connection, Unreadable(path, "needs more memory than there is"))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    # Whatever else it is, it is a bug, and the parent raises it again.
    except Exception as error:  # noqa: BLE001
        send(connection, _bug(error))


def _bug(error: Exception) -> Bug:
    """The exception itself if it can be sent, or else one with its text."""
    trace = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
    except (pickle.PicklingError, TypeError, AttributeError):
        return Bug(RuntimeError(f"{type(error).__name__}: {error}"), trace)
    return Bug(error, trace)


def _die_with_parent() -> None:
    """End this process when the one that started it ends, for whatever reason."""
    parent = os.getppid()

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(1.0)
        os._exit(0)

    # Works wherever the decoder lets other threads run.
    threading.Thread(target=watch, daemon=True).start()
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None, use_errno=True).prctl(set_parent_death_signal, signal.SIGKILL)

"""The main loop of a worker process, which :class:`~vidkin.index.ingest.workers.processes.ProcessExecutor` runs."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from dataclasses import dataclass

import torch

from vidkin.errors import VidkinError
from vidkin.features import Phase
from vidkin.index.ingest.workers.channel import Channel
from vidkin.index.ingest.workers.executor import WorkerSpec
from vidkin.index.ingest.workers.serial import describe_video

__all__ = ["Alive", "Failed", "run_worker"]

# Signs of life are sent at each change of phase, and at this interval in seconds within a phase.
_BEAT = 0.5


@dataclass(frozen=True, slots=True)
class Alive:
    """The worker has opened its extractor, or made progress with its file.

    Attributes:
        phase: The phase that begins.
    """

    phase: Phase = "decoding"


@dataclass(frozen=True, slots=True)
class Failed:
    """The extractor cannot be opened.

    Attributes:
        error: The exception.
        trace: Traceback in the worker.
    """

    error: VidkinError
    trace: str

    @classmethod
    def of(cls, error: VidkinError) -> Failed:
        """The exception being handled, in a form that can be sent."""
        try:
            pickle.loads(pickle.dumps(error))
        except (pickle.PicklingError, TypeError, AttributeError):
            # Send only its text if the exception itself cannot be pickled.
            error = VidkinError(f"{type(error).__name__}: {error}")
        return cls(error, traceback.format_exc())


def run_worker(descriptor: int) -> None:
    """Receive a specification, then describe file after file until told to stop.

    The parent sends a ``WorkerSpec``, then paths, then None. The answers are one :class:`Alive` when the extractor is
    open (or one :class:`Failed`), and for each file any number of :class:`Alive` and of events, the last of which is a
    ``Described`` or an ``Unreadable``.

    Args:
        descriptor: File descriptor of the socket to the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent gets it as well, and ends its workers.
    _die_with_parent()
    torch.set_num_threads(1)
    parent = _Parent(descriptor)
    spec = parent.receive()
    assert isinstance(spec, WorkerSpec)
    try:
        extractor = spec.open()
    except VidkinError as error:
        parent.send(Failed.of(error))
        return
    parent.send(Alive())
    while (path := parent.receive()) is not None:
        assert isinstance(path, str)
        for event in describe_video(path, extractor, spec.base_rate, beat=_Beat(parent)):
            parent.send(event)


class _Parent:
    """The channel to the parent; when the parent is gone, this process ends."""

    def __init__(self, descriptor: int) -> None:
        self._channel = Channel(socket.socket(fileno=descriptor))

    def receive(self) -> object:
        try:
            return self._channel.receive()
        except (EOFError, ConnectionError):
            os._exit(0)

    def send(self, message: object) -> None:
        try:
            self._channel.send(message)
        except ConnectionError:
            os._exit(0)


class _Beat:
    """Sends signs of life, rarely enough to cost nothing."""

    def __init__(self, parent: _Parent) -> None:
        self._parent = parent
        self._phase: Phase | None = None
        self._sent = 0.0

    def __call__(self, phase: Phase) -> None:
        now = time.monotonic()
        if phase != self._phase or now - self._sent >= _BEAT:
            self._phase, self._sent = phase, now
            self._parent.send(Alive(phase))


def _die_with_parent() -> None:
    """End this process when the one that started it ends, for whatever reason."""
    parent = os.getppid()

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(1.0)
        os._exit(0)

    # Works as long as the decoder lets other threads run.
    threading.Thread(target=watch, daemon=True).start()
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None, use_errno=True).prctl(set_parent_death_signal, signal.SIGKILL)

"""Describe files in a Ray worker; :class:`~vidkin_scale.executor.RayExecutor` runs this as an actor."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from vidkin._version import __version__
from vidkin.errors import VidkinError
from vidkin.features import FrameExtractor, Phase
from vidkin.features.sessions import set_threads
from vidkin.index.ingest.executor import Described, Event, Unreadable, describe_video
from vidkin.index.ingest.worker import Alive, Failed
from vidkin.index.storage.manifest import WorkerSpec

# Seconds for which events are collected before they are sent.
_GATHER = 0.25

# Maximum number of unsent events; beyond it a worker blocks until they are read.
_MAX_EVENTS = 8


@dataclass(frozen=True, slots=True)
class Opened:
    """The worker is ready.

    Attributes:
        host: Name of its machine.
        version: Version of vidkin on that machine.
        fingerprint: Fingerprint of the extractor on that machine.
    """

    host: str
    version: str
    fingerprint: str


class Describer:
    """Extracts the features of one file at a time, on one thread. Call :meth:`open` first."""

    def open(self, spec: WorkerSpec) -> Opened | Failed:
        """Open the extractor."""
        set_threads(1)
        self._rate = spec.base_rate
        try:
            self._extractor: FrameExtractor = spec.open()
        except VidkinError as error:
            return Failed.of(error)
        return Opened(socket.gethostname(), __version__, self._extractor.fingerprint)

    def describe(self, path: str, size: int) -> Iterator[list[Event | Alive]]:
        """Yield the events of one file in batches, ending with ``Described`` or ``Unreadable``.

        A batch includes a heartbeat if the decoder or the extractor made progress; otherwise nothing is sent.

        Args:
            path: Path of the file.
            size: Bytes of the file as the driver sees it; -1 if it does not see the file.
        """
        try:
            here = os.stat(path).st_size
        except OSError:
            here = -1
        if here != size:
            yield [Unreadable(path, _mismatch(size, here), temporary=True)]
            return
        events: queue.Queue[Event] = queue.Queue(_MAX_EVENTS)
        beats: deque[Phase] = deque(maxlen=1)

        def work() -> None:
            for event in describe_video(path, self._extractor, self._rate, beat=beats.append):
                events.put(event)

        threading.Thread(target=work, daemon=True).start()
        done = False
        while not done:
            gathered: list[Event | Alive] = []
            until = time.monotonic() + _GATHER
            while not done and len(gathered) < _MAX_EVENTS:
                try:
                    event = events.get(timeout=max(until - time.monotonic(), 0.0))
                except queue.Empty:
                    break
                gathered.append(event)
                done = isinstance(event, Described | Unreadable)
            if beats:
                gathered.insert(0, Alive(beats.pop()))
            if gathered:
                yield gathered


def _mismatch(size: int, here: int) -> str:
    state = f"it has {here:,} bytes there, {size:,} here" if here >= 0 else "it is not there"
    return (
        f"machine {socket.gethostname()} of the cluster does not see this file: {state}; mount the folder at the same "
        "path on every machine"
    )

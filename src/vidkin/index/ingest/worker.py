"""The main loop of a worker process, and the messages it exchanges with its parent over a socket pair."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vidkin.errors import VidkinError
from vidkin.features import Phase
from vidkin.features.sessions import set_threads
from vidkin.index.ingest.executor import describe_video
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.media.reader import listen_to_decoders, take_complaints

_LENGTH = struct.Struct("!Q")

_MAX_READ = 1 << 20


class Channel:
    """One end of a bidirectional message stream; a message is any picklable object.

    Sending blocks until the receiver has room, so unread messages cannot pile up. :meth:`receive_part` never blocks,
    even if the sender stopped in the middle of a message. It never reads beyond the current message, so a readable
    socket means that there is an unread message.

    Args:
        end: A connected stream socket, which the channel closes.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._bytes = bytearray()
        self._length: int | None = None

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """Create a channel, and the socket at its other end to be inherited by another process."""
        ours, theirs = socket.socketpair()
        return cls(ours), theirs

    def fileno(self) -> int:
        """File descriptor of the socket, for waiting with :func:`multiprocessing.connection.wait`."""
        return self._socket.fileno()

    def send(self, message: object) -> None:
        """Send a message; blocks until there is room.

        The message is pickled first, so a pickling error cannot leave a partial message in the stream.

        Raises:
            ConnectionError: The other side is gone.
        """
        content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._socket.sendall(_LENGTH.pack(len(content)))
        self._socket.sendall(content)

    def receive(self) -> Any:
        """Wait for the next message.

        Raises:
            EOFError, ConnectionError: The other side is gone.
        """
        while True:
            self._read()
            if self._is_whole():
                return self._take()

    def receive_part(self) -> list[Any]:
        """Read what has arrived; return a list with the message once it is complete, and an empty list until then.

        Raises:
            EOFError, ConnectionError: The other side is gone.
        """
        self._socket.setblocking(False)
        try:
            while not self._is_whole():
                self._read()
        except BlockingIOError:
            return []
        finally:
            self._socket.setblocking(True)
        return [self._take()]

    def close(self) -> None:
        """Close the socket; the other side gets an EOFError."""
        self._socket.close()

    def _read(self) -> None:
        """Read at least one more byte of the current message."""
        wanted = _LENGTH.size if self._length is None else self._length
        part = self._socket.recv(min(wanted - len(self._bytes), _MAX_READ))
        if not part:
            raise EOFError
        self._bytes += part
        if self._length is None and len(self._bytes) == _LENGTH.size:
            (self._length,) = _LENGTH.unpack(self._bytes)
            self._bytes = bytearray()

    def _is_whole(self) -> bool:
        return self._length is not None and len(self._bytes) == self._length

    def _take(self) -> Any:
        content, self._bytes, self._length = self._bytes, bytearray(), None
        return pickle.loads(content)


def share_socket(end: socket.socket, process: int) -> bytes:
    """Serialize a socket for another process on Windows, see :func:`run_worker`."""
    share: Callable[[int], bytes] = getattr(end, "share")  # noqa: B009 - exists only on Windows
    return share(process)


def _open_inherited_socket(descriptor: int | None) -> socket.socket:
    if descriptor is not None:
        return socket.socket(fileno=descriptor)
    take: Callable[[bytes], socket.socket] = getattr(socket, "fromshare")  # noqa: B009 - exists only on Windows
    return take(sys.stdin.buffer.read())


# Minimum seconds between heartbeats within a phase; a change of phase is always sent.
_BEAT = 0.5


@dataclass(frozen=True, slots=True)
class Alive:
    """A heartbeat: the worker has opened its extractor or made progress on its file.

    Attributes:
        phase: The current phase.
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
        """Wrap the exception being handled in a message that can be pickled."""
        try:
            pickle.loads(pickle.dumps(error))
        except (pickle.PicklingError, TypeError, AttributeError):
            # If the exception cannot be pickled, send only its text.
            error = VidkinError(f"{type(error).__name__}: {error}")
        return cls(error, traceback.format_exc())


def run_worker(descriptor: int | None) -> None:
    """Receive a specification, then extract features from files until told to stop.

    The parent sends a ``WorkerSpec``, then paths, then None. The worker sends one :class:`Alive` when the extractor is
    open (or one :class:`Failed`), and then, for each file, any number of :class:`Alive` messages and events, the last
    of which is a ``Described`` or an ``Unreadable``.

    Args:
        descriptor: File descriptor of the socket connected to the parent; None on Windows, where sockets are not
            inherited and the data of :func:`share_socket` arrives on standard input.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent also receives it and stops its workers
    _die_with_parent()
    set_threads(1)
    listen_to_decoders()  # the standard error stream is a file owned by the parent
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
        take_complaints()  # discard complaints about the previous file
        for event in describe_video(path, extractor, spec.base_rate, sound=spec.sound, beat=_Beat(parent)):
            parent.send(event)


class _Parent:
    """The channel to the parent; the process exits if the parent is gone."""

    def __init__(self, descriptor: int | None) -> None:
        self._channel = Channel(_open_inherited_socket(descriptor))

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
    """Sends heartbeats, throttled so that their cost is negligible."""

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
    """Make this process exit when its parent exits for any reason."""
    parent = os.getppid()

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(1.0)
        os._exit(0)

    # This works only while the decoder releases the GIL, so Linux also uses a signal from the kernel.
    threading.Thread(target=watch, daemon=True).start()
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None, use_errno=True).prctl(set_parent_death_signal, signal.SIGKILL)

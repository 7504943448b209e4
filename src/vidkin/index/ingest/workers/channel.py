"""Messages between this process and a worker process, over a pair of sockets."""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

__all__ = ["Channel"]

_LENGTH = struct.Struct("!Q")
_MOST_BYTES_AT_ONCE = 1 << 20


class Channel:
    """One end of a two-way stream of messages; a message is anything that can be pickled.

    Sending blocks until the other side has room for the message, so unread messages cannot pile up.
    Reading with :meth:`receive_part` never blocks, not even for the rest of a message whose sender was stopped in
    the middle of it. No byte beyond the current message is read, so a readable socket means an unread message.

    Args:
        end: A connected stream socket; closed with the channel.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._bytes = bytearray()
        self._length: int | None = None

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """Create a channel, and the socket of its other end for a process that inherits it."""
        ours, theirs = socket.socketpair()
        return cls(ours), theirs

    def fileno(self) -> int:
        """File descriptor of the socket, to wait for messages with :func:`multiprocessing.connection.wait`."""
        return self._socket.fileno()

    def send(self, message: object) -> None:
        """Send a message; blocks until there is room.

        Pickled whole: tensors must not pass through shared memory, which needs a common parent.

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
            self._read(0)
            if self._is_whole():
                return self._take()

    def receive_part(self) -> list[Any]:
        """Read what has arrived. Returns a list with the message once it is complete, until then an empty list.

        Raises:
            EOFError, ConnectionError: The other side is gone.
        """
        while not self._is_whole():
            try:
                self._read(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return []
        return [self._take()]

    def close(self) -> None:
        """Close the socket; the other side learns of it."""
        self._socket.close()

    def _read(self, flags: int) -> None:
        """Read more of the current message, at least one byte."""
        wanted = _LENGTH.size if self._length is None else self._length
        part = self._socket.recv(min(wanted - len(self._bytes), _MOST_BYTES_AT_ONCE), flags)
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

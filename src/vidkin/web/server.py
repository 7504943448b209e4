"""Serve the app on a local socket until Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import replace

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from vidkin._base.arguments import check_arguments
from vidkin._base.memory import share_heaps
from vidkin.errors import InvalidArgumentError
from vidkin.web.app import create_app
from vidkin.web.guard import Settings
from vidkin.web.problems import ProblemResponse, make_problem

# Maximum number of connections without a complete request; beyond it the longest-waiting one is closed.
_MAX_WAITING = 64
_BACKLOG = 128
_SHUTDOWN_SECONDS = 3
# A connection without a complete request header is closed after this many seconds.
_HEADER_SECONDS = 10.0


@check_arguments
def serve(
    index: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8800,
    settings: Settings | None = None,
    needs_token: bool = True,
    on_ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve an index until the process is interrupted.

    Without a token in the settings a new one is drawn, because other accounts of this machine can reach a loopback
    address.

    Args:
        index: Folder of the index; with ``settings.read_only`` also its address on object storage.
        host: Address to listen on.
        port: Port; 0 lets the system choose one.
        settings: Limits.
        needs_token: Draw a token if the settings have none. False is only allowed on a loopback address, and lets every
            account of this machine read and change the index.
        on_ready: Callback that receives the address to open, including the token, once connections are accepted.

    Raises:
        CollectionNotFoundError: There is no index in the folder.
        InvalidArgumentError: The address cannot be used or needs a token, or the index is on object storage and
            ``read_only`` is not set.
    """
    share_heaps()
    settings = settings or Settings()
    if not needs_token and settings.token is not None:
        raise InvalidArgumentError("needs_token must be true with a token, got false")
    if not needs_token and not _is_loopback(host):
        raise InvalidArgumentError(
            f"a server without a token must listen on 127.0.0.1, got {host}: other computers could change the index"
        )
    if settings.token is None and needs_token:
        settings = replace(settings, token=secrets.token_urlsafe(24))
    if not _is_loopback(host):
        settings = replace(settings, hosts=settings.hosts | {host, socket.gethostname()})
    app = create_app(index, settings)
    # Everything loaded so far is permanent; freezing excludes it from later garbage collections.
    gc.freeze()
    listener = _listen(host, port)
    port = listener.getsockname()[1]
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    host = f"[{name}]" if ":" in name else name
    address = f"http://{host}:{port}/" + (f"?token={settings.token}" if settings.token else "")
    config = uvicorn.Config(
        app,
        http=_Protocol,
        log_level="warning",
        access_log=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        server_header=False,
    )
    with listener:
        _Server(config, lambda: on_ready(address)).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that calls back once it accepts connections."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


class _Protocol(H11Protocol):
    """Closes connections on which no complete request arrives in time; uvicorn would wait forever.

    Connections without a request, new or idle, count separately, so that even if a client opens very many, complete
    requests are answered.
    """

    _waiting: asyncio.TimerHandle | None = None
    # Time when the last request began or, before the first, when the connection was made.
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._follow()
        self._make_room()

    @property
    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _make_room(self) -> None:
        """Close the longest-waiting connections beyond the limit."""
        waiting = [
            each
            for each in self.connections
            if isinstance(each, _Protocol) and not each._has_request and not each.transport.is_closing()
        ]
        waiting.sort(key=lambda each: each._since)
        for each in waiting[: max(len(waiting) - _MAX_WAITING, 0)]:
            each.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not a request with a problem, and close the connection."""
        problem = make_problem(400, "bad-request", "the received bytes are not an HTTP/1.1 request")
        answer = ProblemResponse(problem, {"Connection": "close"})
        lines = [b"HTTP/1.1 400 Bad Request", *(b": ".join(pair) for pair in answer.raw_headers), b"", answer.body]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def _follow(self) -> None:
        if self._has_request:
            self._since = self.loop.time()
            self._forget()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(_HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if not self._has_request:
            self.transport.close()

    def _forget(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        # On Windows SO_REUSEADDR would let another program take over the address.
        option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        listener.setsockopt(socket.SOL_SOCKET, option, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        cause = (error.strerror or str(error)).lower()
        raise InvalidArgumentError(
            f"cannot listen on {host}:{port} ({cause}); choose another --port, or 0 for any free one"
        ) from error
    return listener

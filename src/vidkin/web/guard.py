"""Server settings, and the guard that checks the host, origin, token and size of requests."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vidkin._base.arguments import check_constructor
from vidkin._base.values import check_at_least, check_positive
from vidkin.errors import InvalidArgumentError
from vidkin.web.problems import ProblemCode, ProblemResponse, RefusedError, make_problem

_ORIGIN = re.compile(r"https?://[a-z0-9._-]+(:\d{1,5})?|https?://\[[0-9a-f:.]+\](:\d{1,5})?")


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of a server; the defaults fit one person at one computer.

    Attributes:
        token: Token that every request must carry; None requires none, so anyone who reaches the address, including
            other accounts of this machine, can list, play and search all files of the index, and add files to it.
        hosts: Host names besides loopback under which browsers may address the server.
        origins: Sites whose pages may use the API, such as ``https://example.org``; they also need the token.
        read_only: Refuse requests that change the index or a file.
        cache_bytes: Maximum size of cached thumbnails and previews on disk, bytes.
        upload_bytes: Maximum size of an uploaded file, bytes.
        uploads: Maximum number of uploaded files kept at a time.
        upload_seconds: Maximum seconds for an upload to arrive, and seconds it is kept after its last use.
        request_seconds: Seconds after which a request is given up, including conversions and searches.
        preview_seconds: Length in seconds of the pieces into which unplayable videos are converted.
        preview_side: Shorter side of such a piece, pixels.
        groups_a_page: Groups of duplicates on a page.
        experiments: Folders to search for trainings and benchmarks.
        cluster: Name of a cluster that runs searches, such as ``ray:HOST:PORT``; None searches in this process.
    """

    token: str | None = None
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    read_only: bool = False
    cache_bytes: int = 2_000_000_000
    upload_bytes: int = 2_000_000_000
    uploads: int = 8
    upload_seconds: float = 1800.0
    request_seconds: float = 300.0
    preview_seconds: float = 10.0
    preview_side: int = 360
    groups_a_page: int = 30
    experiments: tuple[Path, ...] = ()
    cluster: str | None = None

    def __post_init__(self) -> None:
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise InvalidArgumentError(
                    f"an origin must be a scheme and a host, such as https://example.org, got {origin!r}"
                )
        counts = ("cache_bytes", "upload_bytes", "uploads", "preview_side", "groups_a_page")
        check_at_least(1, **{name: getattr(self, name) for name in counts})
        times = ("upload_seconds", "request_seconds", "preview_seconds")
        check_positive(**{name: getattr(self, name) for name in times})


MAX_REQUESTS = 200
"""Maximum number of simultaneous requests, including event streams; more are refused with a hint to retry."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::\d{1,5})?")

# Maximum bytes and seconds of a body; uploads have their own limits.
_BODY_BYTES, _BODY_SECONDS = 8_000_000, 60.0

_UPLOADS = "/api/uploads"

# Cookies are shared by all ports of a host, so the name has the port: two servers would overwrite each other's.
_QUERY, _COOKIE = "token", "vidkin_token_{port}"

_ASK_FOR_TOKEN = {"WWW-Authenticate": "Bearer"}
_TRY_AGAIN = {"Retry-After": "2"}

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


# Headers that pages of other sites may read and send. Browsers also ask for permission to reach a private network.
_EXPOSED = "Accept-Ranges, Content-Disposition, Content-Range, ETag, Location, Retry-After"
_PREFLIGHT = {
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Prefer, Range, X-Vidkin-Tab, X-Vidkin-Ticket",
    "Access-Control-Allow-Methods": "DELETE, GET, HEAD, POST, PUT",
    "Access-Control-Allow-Private-Network": "true",
    "Access-Control-Max-Age": "600",
}


@check_constructor
class Guard:
    """Refuses requests that a browser sends on behalf of other sites, and requests without the token.

    A page of another site can make a browser send requests to a server on this machine. They are recognized by ``Host``
    (a foreign name for this machine), ``Origin`` and ``Sec-Fetch-Site``; a link from another site may only open a page.

    Args:
        app: Receives the accepted requests.
        token: Token that every request must carry as ``Authorization: Bearer``, as a cookie, or once as ``?token=`` of
            a page, which sets the cookie. None requires no token and refuses addresses other than loopback.
        hosts: Host names besides loopback that belong to this server. With a token, numeric addresses are also
            accepted, because DNS rebinding needs a name.
        origins: Sites whose pages may use the API. They send the token as ``Authorization``, because a browser attaches
            no cookie of this server to their requests.
    """

    def __init__(
        self, app: ASGIApp, *, token: str | None, hosts: frozenset[str], origins: frozenset[str] = frozenset()
    ) -> None:
        self.inner = app
        self._token = token
        self._origins = origins
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.inner(scope, receive, send)
        elif scope["type"] == "http":
            origin = Headers(scope=scope).get("origin", "")
            shared = origin if origin in self._origins else ""
            refusal = self._refusal(scope, shared)
            if scope["path"] != _UPLOADS:
                receive = _limit_body(receive)
            self._requests += 1
            try:
                answer = self.inner if refusal is None else refusal
                await _answer_until_disconnect(answer, scope, receive, _add_headers(send, shared))
            finally:
                self._requests -= 1
        # No other protocol is supported; returning without an answer closes the connection.

    def _refusal(self, scope: Scope, shared: str) -> Response | None:
        if self._requests >= MAX_REQUESTS:
            message = f"{MAX_REQUESTS} requests are being answered; try again in a moment"
            return _refuse(503, "busy", message, _TRY_AGAIN)
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return _refuse(
                400,
                "bad-request",
                f"this server does not answer for the host {host!r}; open it by the address that `vidkin serve` "
                "prints, or start it with --host-name",
            )
        if shared:
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                return Response(status_code=204, headers=_PREFLIGHT)  # a browser's preflight request has no token
            return None if self._token is None else self._check_token(scope, headers, self._token)
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return _refuse(403, "forbidden", f"requests of pages from {origin} are refused")
        opens_page = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not (
            opens_page and headers.get("sec-fetch-dest") == "document"
        ):
            return _refuse(403, "forbidden", "requests of pages from other sites are refused")
        return None if self._token is None else self._check_token(scope, headers, self._token)

    def _is_ours(self, host: str) -> bool:
        parts = _HOST.fullmatch(host)
        if parts is None:
            return False
        name = parts[1].strip("[]").lower()
        return name in self._hosts or (self._token is not None and _is_address(name))

    def _check_token(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and _equal(given, token):
            return None
        port = headers.get("host", "").rpartition(":")[2]
        cookie = _COOKIE.format(port=port if port.isdecimal() else "80")
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and _equal(query.pop(_QUERY, [""])[0], token):
            # Redirect to remove the token from the address, so that no bookmark, history or screenshot contains it.
            address = scope["path"].lstrip("/")
            rest = urlencode(query, doseq=True)
            answer = RedirectResponse(f"/{address}{'?' if rest else ''}{rest}", 303)
            # Lax, because a link, such as the file that `--open` hands to a browser, may open a page; other requests
            # from other sites have been refused above.
            answer.set_cookie(cookie, token, httponly=True, samesite="lax", max_age=30 * 86400)
            return answer
        if any(_equal(value, token) for value in _cookie_values(headers.getlist("cookie"), cookie)):
            return None
        message = "the token is missing or wrong; open the address that `vidkin serve` printed"
        if "text/html" in headers.get("accept", "") and not scope["path"].startswith("/api/"):
            return PlainTextResponse(message + "\n", 401, _ASK_FOR_TOKEN)
        return _refuse(401, "unauthorized", message, _ASK_FOR_TOKEN)


def _limit_body(receive: Receive) -> Receive:
    """Wrap a request so that reading a body that is too large or too slow raises an error."""
    left, ended = _BODY_BYTES, asyncio.get_running_loop().time() + _BODY_SECONDS
    is_complete = False

    async def receive_bounded() -> Message:
        nonlocal left, is_complete
        if is_complete:  # only the disconnect can follow, at any time
            return await receive()
        try:
            async with asyncio.timeout_at(ended):
                message = await receive()
        except TimeoutError as error:
            raise RefusedError(408, "request-timeout", f"the request did not arrive in {_BODY_SECONDS:g} s") from error
        is_complete = not message.get("more_body", False)
        left -= len(message.get("body", b""))
        if left < 0:
            raise RefusedError(413, "too-large", f"a request must have at most {_BODY_BYTES} bytes")
        return message

    return receive_bounded


async def _answer_until_disconnect(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request; a client that disconnects early cancels the work."""
    has_left = asyncio.Event()
    is_answered = False
    watching: asyncio.Task[None] | None = None

    async def watch() -> None:
        with contextlib.suppress(RefusedError):  # a body that nothing reads is too large
            while (await receive())["type"] != "http.disconnect":
                continue
        has_left.set()
        if not is_answered:
            answering.cancel()

    async def take() -> Message:
        nonlocal watching
        if watching is not None:  # nothing but the disconnect can follow
            await has_left.wait()
            return {"type": "http.disconnect"}
        message = await receive()
        if not message.get("more_body", False):
            watching = asyncio.create_task(watch())
        return message

    async def send_on(message: Message) -> None:
        nonlocal is_answered
        is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)
        await send(message)

    answering = asyncio.ensure_future(_run(app, scope, take, send_on))
    if scope["method"] in ("GET", "HEAD", "DELETE"):  # no function reads a body of theirs
        watching = asyncio.create_task(watch())
    try:
        await answering
    except asyncio.CancelledError:
        answering.cancel()
        if not has_left.is_set():
            raise
    finally:
        if watching is not None:
            watching.cancel()


async def _run(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


def _add_headers(send: Send, shared: str) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.add_vary_header("Origin")
            if shared:
                headers["Access-Control-Allow-Origin"] = shared
                headers["Access-Control-Expose-Headers"] = _EXPOSED
                headers["Cross-Origin-Resource-Policy"] = "cross-origin"
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cookie_values(headers: Iterable[str], name: str) -> Iterator[str]:
    """The values of all cookies with this name; malformed cookies of other programs are ignored."""
    for part in ";".join(headers).split(";"):
        found, _, value = part.strip().partition("=")
        if found == name:
            yield value.strip('"')


def _equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _refuse(status: int, code: ProblemCode, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return ProblemResponse(make_problem(status, code, message), headers)

"""Settings that say what a server may do and use, and the guard that checks the host, origin and token of requests."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vidkin._base.values import check_at_least, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of a server; the defaults fit one person at one computer.

    Attributes:
        token: Token that every request must carry; None requires none: whoever reaches the address, other accounts of
            this machine included, lists, plays and searches all files of the index, and adds files to it.
        hosts: Names, besides the loopback ones, by which browsers may address the server.
        read_only: Refuse whatever changes the index or a file.
        cache_bytes: Thumbnails and previews that are kept on disk, bytes; the least recently used are deleted.
        upload_bytes: Largest file, in bytes, that can be dropped for a search.
        uploads: Dropped files that are kept at a time.
        upload_seconds: Seconds that a dropped file may take to arrive, and that it is kept after it was last used.
        request_seconds: Seconds after which a request is given up, a conversion or a search included.
        preview_seconds: Length of a converted piece of a video that the browser cannot play.
        preview_side: Length in pixels of the shorter side of such a piece.
        groups_a_page: Groups of duplicates on a page.
        experiments: Folders below which trainings and benchmarks are shown.
        cluster: Name of a cluster that searches, such as ``ray:HOST:PORT``; None searches in this process.
    """

    token: str | None = None
    hosts: frozenset[str] = frozenset()
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
        check_at_least(
            1,
            cache_bytes=self.cache_bytes,
            upload_bytes=self.upload_bytes,
            uploads=self.uploads,
            preview_side=self.preview_side,
            groups_a_page=self.groups_a_page,
        )
        check_positive(
            upload_seconds=self.upload_seconds,
            request_seconds=self.request_seconds,
            preview_seconds=self.preview_seconds,
        )


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::\d{1,5})?")

# Bytes and seconds of a body; files that are dropped have bounds of their own.
_BODY_BYTES, _BODY_SECONDS = 8_000_000, 60.0

_UPLOADS = "/api/uploads"

# Cookies belong to a host, whatever the port: two servers of one computer would take each other's.
_QUERY, _COOKIE = "token", "vidkin_token_{port}"

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


class Guard:
    """Refuses requests that a browser sends for other sites, and those without the token.

    A page of another site can make a browser ask a server on this machine. Such requests are recognized by ``Host``
    (another name of this machine), ``Origin`` and ``Sec-Fetch-Site``; a link from another site may only open
    a page.

    Args:
        app: Gets the requests that pass.
        token: What every request must carry: as ``Authorization: Bearer``, as a cookie, or once as ``?token=`` of a
            page, which sets the cookie. None for no token: then addresses other than loopback are refused, too.
        hosts: Host names, besides the loopback ones, that belong to this server. With a token, addresses in numbers
            are accepted as well: no name that leads here is among them.
    """

    def __init__(self, app: ASGIApp, *, token: str | None, hosts: frozenset[str]) -> None:
        self.inner = app
        self._token = token
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.inner(scope, receive, send)
        elif scope["type"] == "http":
            refusal = self._refusal(scope)
            if scope["path"] != _UPLOADS:
                receive = _with_bounds(receive)
            await (self.inner if refusal is None else refusal)(scope, receive, _with_headers(send))
        # Nothing here speaks any other protocol; returning without an answer closes the connection.

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return _refuse(
                400,
                f"this server does not answer for the host {host!r}; open it by the address that `vidkin serve` "
                "prints, or start it with --host-name",
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return _refuse(403, f"requests of pages from {origin} are refused")
        opens_page = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not (
            opens_page and headers.get("sec-fetch-dest") == "document"
        ):
            return _refuse(403, "requests of pages from other sites are refused")
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
            # The token leaves the address at once, so that no bookmark, history or picture of the screen holds it.
            address = scope["path"].lstrip("/")
            rest = urlencode(query, doseq=True)
            answer = RedirectResponse(f"/{address}{'?' if rest else ''}{rest}", 303)
            # Lax: the page may be opened by a link, as by the file that `--open` gives a browser; requests of other
            # sites that do more are refused before.
            answer.set_cookie(cookie, token, httponly=True, samesite="lax", max_age=30 * 86400)
            return answer
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(cookie)
        except CookieError:
            morsel = None
        if morsel is not None and _equal(morsel.value, token):
            return None
        return _refuse(401, "the token is missing or wrong; open the address that `vidkin serve` printed")


def _with_bounds(receive: Receive) -> Receive:
    """The same request, whose body ends with an error when it is too large or does not arrive."""
    left, ended = _BODY_BYTES, asyncio.get_running_loop().time() + _BODY_SECONDS
    is_complete = False

    async def receive_bounded() -> Message:
        nonlocal left, is_complete
        if is_complete:  # what comes now is the end of the connection, whenever that is
            return await receive()
        try:
            async with asyncio.timeout_at(ended):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, f"the request did not arrive in {_BODY_SECONDS:g} s") from error
        is_complete = not message.get("more_body", False)
        left -= len(message.get("body", b""))
        if left < 0:
            raise HTTPException(413, f"a request must have at most {_BODY_BYTES} bytes")
        return message

    return receive_bounded


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
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


def _equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _refuse(status: int, message: str) -> Response:
    if status == 401:
        return PlainTextResponse(message + "\n", status, {"WWW-Authenticate": "Bearer"})
    return JSONResponse({"detail": message}, status)

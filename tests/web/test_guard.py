"""Requests from other sites, for unknown hosts or without the token are refused before anything else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.responses import Response
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from tests.web.conftest import Connect, Library
from vidkin.errors import InvalidArgumentError
from vidkin.web import Settings, create_app
from vidkin.web.guard import Guard


@pytest.mark.parametrize("host", ["127.0.0.1:8800", "localhost:1234", "LOCALHOST", "[::1]:8800"])
def test_local_host_names_are_accepted(client: TestClient, host: str) -> None:
    assert client.get("/api/videos", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "192.168.1.7", "a b", "localhost:80:80", "127.0.0.1@evil", ""],
)
def test_foreign_host_names_are_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/videos", headers={"Host": host})
    assert answer.status_code == 400
    assert "does not answer for the host" in answer.json()["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ],
)
def test_requests_from_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/api/videos", headers=headers).status_code == 403
    assert client.post("/api/jobs/1/stop", headers=headers).status_code == 403


def test_links_from_other_sites_open_pages_but_their_forms_are_refused(client: TestClient) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    assert client.post("/api/jobs/1/stop", headers=link).status_code == 403
    own = {"Origin": "http://127.0.0.1:8800", "Sec-Fetch-Site": "same-origin"}
    # The request passed the guard; there is no such job.
    assert client.post("/api/jobs/1/stop", headers=own).status_code == 404


def test_every_answer_has_security_headers(client: TestClient) -> None:
    for address in ("/", "/static/base.css", "/nothing"):
        headers = client.get(address).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self';" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cross-origin-resource-policy"] == "same-origin"
    assert client.get("/").headers["cache-control"] == "no-store"


def test_large_bodies_are_refused(client: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(9):
            yield b" " * 1_000_000

    for content in (b" " * 8_000_001, pieces()):  # with and without a declared length
        answer = client.post("/api/search", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["detail"]) == (
            413,
            "a request must have at most 8000000 bytes",
        )
    plain = {"Content-Type": "application/json"}
    assert client.post("/api/search", content=b" " * 7_000_000 + b"{}", headers=plain).status_code == 422


def test_slow_bodies_time_out(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.web.guard._BODY_SECONDS", 0.2)
    app, sent = create_app(library.index), []
    scope = {"type": "http", "method": "POST", "path": "/api/search", "query_string": b"", "scheme": "http"}
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]

    async def receive() -> Message:
        await asyncio.sleep(0.05)  # the body arrives slowly
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app({**scope, "headers": headers}, receive, send))
    assert sent[0]["status"] == 408


def test_token_is_required_if_configured(library: Library, connect: Connect) -> None:
    client = connect(library.index, token="swordfish", hosts=frozenset({"Nas.local"}))
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Cookie": "vidkin_token_8800=wrong"},
        {"Authorization": "swordfish"},
    ):
        for address in ("/", "/api/videos", "/static/base.css", "/?token=wrong"):
            answer = client.get(address, headers=headers)
            assert answer.status_code == 401, (headers, address)
            assert "open the address that `vidkin serve` printed" in answer.text
    assert client.get("/api/videos", headers={"Authorization": "Bearer swordfish"}).status_code == 200
    # Only known names and addresses are accepted, not a foreign name that resolves to this machine.
    known = {"Authorization": "Bearer swordfish"}
    for host, status in (("nas.local:8800", 200), ("192.168.1.7:8800", 200), ("evil.example", 400)):
        assert client.get("/api/videos", headers={**known, "Host": host}).status_code == status


def test_token_in_url_becomes_an_http_only_cookie(library: Library, connect: Connect) -> None:
    client = connect(library.index, token="swordfish")
    answer = client.get("/?q=a%20b&token=swordfish&sort=size", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?q=a+b&sort=size"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert cookie.startswith("vidkin_token_8800=")  # each server on this computer has its own
    assert client.get("/api/videos").status_code == 200  # the client keeps the cookie
    # No URL redirects to another site.
    far = client.get("http://127.0.0.1:8800//evil.example/?token=swordfish", follow_redirects=False)
    assert far.headers["location"] == "/evil.example/"


COOKIES = [
    'prefs={"theme": "dark"}',
    "a[b]=1",
    "version=2",
    "domain=elsewhere",
    "flag",
    "=",
    "name=J\xf6rg",
    'text="a; b=c"',
    "x" * 5000,
]


@pytest.mark.parametrize("other", COOKIES)
def test_cookies_of_other_programs_are_ignored(other: str, library: Library, connect: Connect) -> None:
    reader = connect(library.index, token="secret")
    for cookies in (f"{other}; vidkin_token_8800=secret", f"vidkin_token_8800=secret; {other}"):
        assert reader.get("/api/videos", headers={"Cookie": cookies.encode("latin-1")}).status_code == 200
    for cookies in (other, f"{other}; vidkin_token_8801=secret", f"{other}; vidkin_token_8800=secret2"):
        assert reader.get("/api/videos", headers={"Cookie": cookies.encode("latin-1")}).status_code == 401


def test_pages_of_allowed_sites_can_use_the_api_with_the_token(library: Library, connect: Connect) -> None:
    client = connect(library.index, token="swordfish", origins=frozenset({"https://media.example"}))
    page = {"Origin": "https://media.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    asks = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    first = client.options("/api/search", headers=asks)
    assert first.status_code == 204
    assert first.headers["access-control-allow-origin"] == "https://media.example"
    assert "Authorization" in first.headers["access-control-allow-headers"]
    assert "POST" in first.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in first.headers
    answer = client.get("/api/videos", headers={**page, "Authorization": "Bearer swordfish"})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://media.example"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "Location" in answer.headers["access-control-expose-headers"]
    refused = client.get("/api/videos", headers=page)
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == "https://media.example"  # its scripts read why
    for other in ("https://media.example.evil", "http://media.example", "null"):
        foreign = {**asks, "Origin": other, "Authorization": "Bearer swordfish"}
        for answer in (client.options("/api/search", headers=foreign), client.get("/api/videos", headers=foreign)):
            assert answer.status_code == 403, other
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("origin", ["*", "null", "media.example", "https://media.example/x", "https://a b"])
def test_invalid_origins_are_refused(origin: str) -> None:
    with pytest.raises(InvalidArgumentError, match="an origin must be a scheme and a host"):
        Settings(origins=frozenset({origin}))


def test_requests_beyond_the_limit_are_refused_with_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.web.guard.MAX_REQUESTS", 2)

    async def ask() -> None:
        is_free = asyncio.Event()

        async def wait(scope: Scope, receive: Receive, send: Send) -> None:
            await is_free.wait()
            await Response(status_code=204)(scope, receive, send)

        guarded = Guard(wait, token=None, hosts=frozenset())
        async with AsyncClient(transport=ASGITransport(guarded), base_url="http://localhost") as client:
            waiting = [asyncio.create_task(client.get("/")) for _ in range(2)]
            await asyncio.sleep(0.05)
            refused = await client.get("/api/videos")
            is_free.set()
            assert [(await answer).status_code for answer in waiting] == [204, 204]
            assert (await client.get("/")).status_code == 204
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["code"] == "busy"

    asyncio.run(ask())

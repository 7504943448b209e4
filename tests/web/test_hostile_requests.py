"""Thousands of requests that no page makes: each is answered soon, by a sentence, and with nothing of the computer."""

from __future__ import annotations

import json
import logging
import os
import random
import time
from collections import Counter
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import HOST, Library
from vidkin.web import Settings, create_app

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)

REQUESTS = int(os.environ.get("VIDKIN_HOSTILE_REQUESTS", "10000"))
SECONDS = 60.0
# They read folders of the computer as they are asked to, or start a program on it.
LEFT_OUT = ("/api/index", "/api/computer", "/open", "/split", "/copies")
TEXTS = (
    *("", "0", "1", "-1", "1e309", "nan", "-0", "9" * 400, "0x10", "1_000", "true", "null", "[]", "{}", "%00", "\x00"),
    *("../../etc/passwd", "/etc/passwd", "..%2f..%2fetc%2fpasswd", "file:///etc/passwd", "\\\\server\\share", "C:\\x"),
    *("<script>alert(1)</script>", "' OR 1=1 --", "${7*7}", "{{7*7}}", "%s%n", "a" * 20_000, "\ud800", "é山🎬"),
    *("http://evil.example/", "\r\nX-Injected: 1", "=cmd|' /C calc'!A0", "\u202egpj.4pm", "con", "."),
)
NUMBERS = (0, 1, 2, 3, -1, 1.5, 1e308, -1e308, 10**30, 2**63, 2**31, True, None)
PAGES = ("/", "/search", "/match", "/map", "/videos/{video}", "/static/{name}", "/experiments", "/{anything}")
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW")


def value(random_: random.Random, depth: int = 0) -> Any:
    kind = random_.randrange(6)
    if kind < 2:
        return random_.choice(NUMBERS)
    if kind < 4 or depth > 3:
        return random_.choice(TEXTS)
    if kind == 4:
        return [value(random_, depth + 1) for _ in range(random_.randrange(5))]
    return {random_.choice(TEXTS): value(random_, depth + 1) for _ in range(random_.randrange(4))}


def body_of(random_: random.Random, schema: dict[str, Any]) -> bytes:
    """Fields that the address knows, with any values, or anything at all."""
    kind = random_.randrange(8)
    if kind == 0:
        return random_.choice([b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"a":' * 2000, b"null", b"1" * 5000])
    fields = list(schema.get("properties", {})) or ["video"]
    named = {name: value(random_) for name in fields if random_.random() < 0.8}
    if random_.random() < 0.3:
        named |= {"video": 1, "target": 2}
    return json.dumps(named if kind > 1 else value(random_)).encode("utf-8", "surrogatepass")


def headers_of(random_: random.Random) -> dict[str, bytes]:
    headers = {
        "Content-Type": random_.choice([b"application/json", b"text/plain", b"application/x-www-form-urlencoded"])
    }
    for name, values in (
        ("Host", (b"evil.example", b"127.0.0.1:99999", b"[::1]", b"localhost", b"")),
        ("Origin", (b"https://evil.example", b"null", HOST.encode())),
        ("Sec-Fetch-Site", (b"cross-site", b"same-origin", b"none")),
        ("Range", (b"bytes=0-", b"bytes=-1", b"bytes=9-1", b"bytes=" + b"9" * 400 + b"-", b"bytes=0-0,1-1", b"x")),
        ("If-Range", (b'"x"', b"\xff")),
        ("Accept", (b"text/html", b"*/*", b"\xff")),
        ("Cookie", (b'a[b]=1; x={"y": 1}', b"vidkin_token_8800=x", b"\xff\xfe=1", b";" * 3000)),
        ("Authorization", (b"Bearer", b"Bearer x", b"Basic eA==", b"\xff")),
        ("X-Vidkin-Ticket", (b"a" * 64, b"a" * 65, b"..")),
    ):
        if random_.random() < 0.12:
            headers[name] = random_.choice(values)
    return headers


def address_of(random_: random.Random, template: str) -> str:
    """The address with anything in place of its parts."""
    parts = template.split("{")
    filled = parts[0] + "".join(random_.choice([*"1234", *TEXTS[:30]]) + part.partition("}")[2] for part in parts[1:])
    return quote(filled, safe="/%.:\\<>'=|", errors="replace")[:8000]


def request_of(random_: random.Random, client: TestClient, described: dict[str, Any]) -> Any | None:
    """A request to one of the addresses; None if it cannot be sent, or may do something on this computer."""
    known_paths = described["paths"]
    template = random_.choice([*known_paths, *PAGES])
    known = known_paths.get(template, {})
    method = random_.choice([*[name.upper() for name in known] * 3, random_.choice(METHODS)])
    operation = known.get(method.lower(), {})
    names = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    query = {name: random_.choice(TEXTS).encode("utf-8", "replace").decode() for name in (*names, "x")}
    reference = json.dumps(operation.get("requestBody", {})).partition("#/components/schemas/")[2].partition('"')[0]
    content = body_of(random_, described["components"]["schemas"].get(reference, {}))
    address = address_of(random_, template)
    if any(part in address for part in LEFT_OUT):
        return None
    given = {} if method in ("GET", "HEAD") else {"content": content}
    try:
        return client.build_request(method, address, params=query, headers=headers_of(random_), **given)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None


@pytest.mark.parametrize("read_only", [True, False])
def test_every_request_is_answered(read_only: bool, own_library: Library) -> None:
    random_, counts, slowest = random.Random(int(read_only)), Counter[int](), 0.0
    app = create_app(own_library.index, Settings(read_only=read_only))
    with TestClient(app, base_url=HOST) as client:
        described = client.get("/api/openapi.json").json()
        while sum(counts.values()) < REQUESTS // 2:
            request = request_of(random_, client, described)
            if request is None:
                continue
            began = time.monotonic()
            answer = client.send(request)
            took = time.monotonic() - began
            slowest = max(slowest, took)
            counts[answer.status_code] += 1
            about = (request.method, str(request.url)[:200], answer.status_code, answer.text[:300])
            assert answer.status_code < 500 or answer.status_code in (503, 504), about
            assert took < SECONDS, about
            assert b"root:x:" not in answer.content, about
            assert b"Traceback" not in answer.content, about
            assert "x-injected" not in answer.headers, about
    logger.info("%s; the slowest after %.1f s", dict(counts), slowest)

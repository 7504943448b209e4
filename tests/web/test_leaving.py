"""A client that disconnects, or stops a job, ends its work within a second, between two frames."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from tests.web.conftest import Connect, Library
from vidkin.index import Index, SerialExecutor
from vidkin.web import Settings, create_app

pytestmark = pytest.mark.hostile

LONG_ENOUGH = 3000


def write_endless_gif(path: Path, *, side: int = 4000, frames: int = LONG_ENOUGH) -> None:
    """A few bytes a frame, each of which changes one of many million pixels."""
    head = b"GIF89a" + struct.pack("<HHBBB", side, side, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x21\xf9\x04\x04\x0a\x00\x00\x00\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0)
    path.write_bytes(head + (frame + b"\x02\x02\x44\x01\x00") * frames + b";")


class Visitor:
    """Asks an app for something, and leaves after a while."""

    def __init__(self, app: Any, method: str, path: str, *, content: bytes = b"", query: bytes = b"") -> None:
        self.app = app
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1:8800"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 5000),
            "server": ("127.0.0.1", 8800),
        }
        self.content = content
        self.status = 0

    async def stay(self, seconds: float) -> None:
        sent = False

        async def receive() -> Message:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": self.content, "more_body": False}
            await asyncio.sleep(seconds)
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.status = message.get("status", self.status)

        await self.app(self.scope, receive, send)


def busy_threads() -> set[str]:
    """Names of the threads whose call stacks are in a reader."""
    import sys
    import traceback

    frames = sys._current_frames()
    return {
        thread.name
        for thread in threading.enumerate()
        if thread.ident in frames
        and any("media" in part.filename for part in traceback.extract_stack(frames[thread.ident]))
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/search"), ("GET", "/uploads/{upload}/thumbnail"), ("GET", "/uploads/{upload}/preview")],
)
def test_disconnecting_cancels_the_work(
    method: str, path: str, tmp_path: Path, library: Library, connect: Connect
) -> None:
    write_endless_gif(tmp_path / "long.gif")
    app = create_app(library.index, Settings())
    with TestClient(app, base_url="http://127.0.0.1:8800") as client:
        answer = client.post("/api/uploads?name=long.gif", content=(tmp_path / "long.gif").read_bytes())
        assert answer.status_code == 201, answer.text
        upload = answer.json()["key"]["upload"]
        content = f'{{"upload": "{upload}"}}'.encode() if method == "POST" else b""
        query = {"thumbnail": b"time=200", "preview": b"piece=20"}.get(path.rpartition("/")[2], b"")
        visitor = Visitor(app, method, path.format(upload=upload), content=content, query=query)
        began = time.monotonic()
        asyncio.run(visitor.stay(1.0))
        assert visitor.status == 0, "it must take longer than the visitor stays"
        assert time.monotonic() - began < 3
        end = time.monotonic() + 2.0
        while busy_threads() and time.monotonic() < end:
            time.sleep(0.05)
        assert busy_threads() == set()
        assert client.get("/api/videos").status_code == 200


def test_stopped_job_ends_between_two_frames(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    with Index.open(tmp_path / "c.vidkin", extractor="classical", create=True) as index:
        index.add(tmp_path / "videos", executor=SerialExecutor(index.worker_spec))
    write_endless_gif(tmp_path / "videos" / "long.gif")
    with TestClient(create_app(tmp_path / "c.vidkin"), base_url="http://127.0.0.1:8800") as client:
        job = client.post("/api/index", json={"paths": [str(tmp_path / "videos")]}).json()
        time.sleep(4.0)
        assert client.get(f"/api/jobs/{job['id']}").json()["state"] == "running"
        client.post(f"/api/jobs/{job['id']}/stop")
        end = time.monotonic() + 3.0
        while client.get(f"/api/jobs/{job['id']}").json()["state"] == "running" and time.monotonic() < end:
            time.sleep(0.1)
        assert client.get(f"/api/jobs/{job['id']}").json()["state"] == "stopped"

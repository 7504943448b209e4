"""Dropped files: bounded in size, number and time, and deleted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import HTTPException
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient

from tests.web.conftest import Connect, Library, finish_job
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.web import Settings
from vidkin.web.lanes import Lane
from vidkin.web.uploads import Uploads


async def pieces(content: bytes, pause: float = 0.0) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 4096):
        await asyncio.sleep(pause)
        yield content[start : start + 4096]


def receive(uploads: Uploads, content: bytes, *, name: str = "clip.mp4", size: int | None = None) -> str:
    lane = Lane("test", workers=1, waiting=8, seconds=10)
    return asyncio.run(uploads.receive(name, size, pieces(content), lane)).id


def stored(uploads: Uploads) -> list[Path]:
    return list(uploads._folder.iterdir())


def test_too_large_files_are_refused_by_announced_and_actual_size(library: Library) -> None:
    content = library.clip.read_bytes()
    uploads = Uploads(Settings(upload_bytes=len(content) - 1))
    with pytest.raises(HTTPException, match="a file must be at most"):
        receive(uploads, content, size=len(content))
    for size in (None, 10):  # nothing is said, or a lie
        with pytest.raises(HTTPException, match="a file must be at most"):
            receive(uploads, content, size=size)
    assert stored(uploads) == []
    uploads.close()


def test_uploads_that_are_not_videos_are_deleted(library: Library) -> None:
    uploads = Uploads(Settings())
    for content in (b"", b"#!/bin/sh\nrm -rf /", b"<html><script>alert(1)</script>" * 100):
        with pytest.raises(MediaError, match=r"^notes.mp4: "):  # as the sender calls it
            receive(uploads, content, name="C/notes.mp4")
    assert stored(uploads) == []
    # The name gives an extension and nothing else.
    number = receive(uploads, library.clip.read_bytes(), name="../../x\x00/evil\x1b.MP4")
    assert [path.name for path in stored(uploads)] == [f"{number}.mp4"]
    assert uploads.get(number).name == "evil�.MP4"
    uploads.close()
    assert not uploads._folder.exists()


def test_number_and_lifetime_of_uploads_are_limited(library: Library) -> None:
    content = library.clip.read_bytes()
    uploads = Uploads(Settings(uploads=2, upload_seconds=5))
    first, second = receive(uploads, content), receive(uploads, content)
    uploads.get(first)  # used later than the second
    third = receive(uploads, content)
    assert {path.stem for path in stored(uploads)} == {first, third}
    with pytest.raises(HTTPException, match="upload it again"):
        uploads.get(second)
    uploads.get(first).used = time.monotonic() - 6
    uploads.clean()
    assert [path.stem for path in stored(uploads)] == [third]
    uploads.remove(third)
    uploads.remove(third)
    assert stored(uploads) == []
    uploads.close()


def test_slow_and_excess_uploads_are_refused(library: Library) -> None:
    content = library.clip.read_bytes()
    uploads = Uploads(Settings(uploads=1, upload_seconds=0.3))
    lane = Lane("test", workers=1, waiting=8, seconds=10)

    async def send() -> None:
        slow = asyncio.create_task(uploads.receive("a.mp4", None, pieces(content, 0.2), lane))
        await asyncio.sleep(0.05)
        with pytest.raises(InvalidArgumentError, match="at most 1 files can be uploaded at once"):
            await uploads.receive("b.mp4", None, pieces(content), lane)
        with pytest.raises(InvalidArgumentError, match="did not arrive in time"):
            await slow

    asyncio.run(send())
    assert stored(uploads) == []
    receive(uploads, content)
    uploads.close()


def test_trickling_upload_is_aborted_but_a_pause_is_tolerated(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = library.clip.read_bytes()
    monkeypatch.setattr("vidkin.web.uploads._PATIENCE", 0.3)
    uploads = Uploads(Settings(uploads=1, upload_seconds=60))
    lane = Lane("test", workers=1, waiting=8, seconds=10)

    async def drops() -> AsyncIterator[bytes]:
        for byte in content:
            await asyncio.sleep(0.02)  # never silent for long
            yield bytes([byte])

    began = time.monotonic()
    with pytest.raises(InvalidArgumentError, match="did not arrive in time"):
        asyncio.run(uploads.receive("a.mp4", None, drops(), lane))
    assert 0.3 <= time.monotonic() - began < 5
    assert stored(uploads) == []
    # Its place is free again; whoever sends enough in between may pause, more than a drop may in all.

    async def halves() -> AsyncIterator[bytes]:
        for part in (content + bytes(16_000), b"the rest"):
            await asyncio.sleep(0.2)
            yield part

    asyncio.run(uploads.receive("b.mp4", None, halves(), lane))
    assert len(stored(uploads)) == 1
    uploads.close()


def test_disconnected_upload_leaves_no_file() -> None:
    async def half() -> AsyncIterator[bytes]:
        yield b"half a file"
        raise ClientDisconnect

    uploads, lane = Uploads(Settings()), Lane("test", workers=1, waiting=8, seconds=10)
    with pytest.raises(InvalidArgumentError, match="the sender disconnected"):
        asyncio.run(uploads.receive("a.mp4", None, half(), lane))
    assert stored(uploads) == []
    uploads.close()


def test_uploads_are_deleted_when_the_server_ends(library: Library, connect: Connect) -> None:
    client = connect(library.index, upload_bytes=10_000_000)
    source = client.post("/api/uploads?name=a.mp4", content=library.clip.read_bytes()).json()
    assert client.get(f"{source['address']}/preview?piece=0").headers["content-type"] == "video/mp4"
    large = client.post("/api/uploads?name=a.mp4", content=bytes(10_000_001))
    assert large.status_code == 413
    assert "at most 10.0 MB" in large.json()["detail"]


def test_file_can_be_uploaded_in_a_form(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    content = library.clip.read_bytes()
    fields = {"note": "about it", "more": "x" * 5000}
    sent = client.post("/api/uploads", data=fields, files={"file": ("clip.mp4", content, "video/mp4")})
    assert sent.status_code == 201, sent.text
    assert sent.json()["name"] == "clip.mp4"
    assert client.get(f"{sent.json()['address']}/file").content == content
    named = client.post("/api/uploads?name=other.mp4", files={"file": ("clip.mp4", content)})
    assert named.json()["name"] == "other.mp4"
    assert client.post("/api/search", json=sent.json()["key"]).json()["matches"][0]["video"]["name"] == "coffee.mp4"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--x\r\n\r\n--x--"),
        ("multipart/form-data; boundary=x", b"no form at all"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n1'),
        ("multipart/form-data; boundary=" + "x" * 300, b"--x"),
    ],
)
def test_form_without_a_file_is_refused(client: TestClient, kind: str, body: bytes) -> None:
    answer = client.post("/api/uploads", content=body, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request"), answer.text


def test_answers_never_name_temporary_files(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    key = client.post("/api/uploads?name=clip.mp4", content=library.clip.read_bytes()).json()["key"]
    site = client.app.inner.state.site  # type: ignore[attr-defined]
    path = site.uploads.get(key["upload"]).path
    path.write_bytes(b"damaged meanwhile")
    for headers in ({}, {"Prefer": "respond-async"}):
        answer = client.post("/api/search", json=key, headers=headers)
        text = answer.text
        if answer.status_code == 202:
            job = finish_job(client, answer.json())
            assert job["state"] == "failed"
            text = json.dumps(job)
        assert "clip.mp4: " in text
        assert "vidkin-run-" not in text
        assert str(path) not in text
    assert site.uploads.shown(f"{path.parent}/gone.mp4: is gone") == "a temporary file: is gone"

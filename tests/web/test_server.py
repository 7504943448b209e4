"""Connections on which nothing arrives make room for others."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
import uvicorn

from vidkin.web.server import _MAX_WAITING, _Protocol


async def answer(scope: dict[str, object], receive: object, send: object) -> None:
    """An app that says hello."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})  # type: ignore[operator]
    await asyncio.sleep(0.4)  # longer than a head may take
    await send({"type": "http.response.body", "body": b"hello"})  # type: ignore[operator]


@pytest.mark.large
def test_connections_without_a_complete_request_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.web.server._HEADER_SECONDS", 0.25)
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\n"

    async def ask() -> None:
        config = uvicorn.Config(answer, port=0, http=_Protocol, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        # Nothing at all, half a head in one piece, and one that comes in drops.
        for sent in (b"", head):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in head:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.02)
            if reader.at_eof():
                break
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        # Whoever asks is answered, however long that takes, and may ask again on the same connection, but not half.
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(head + b"\r\n")
            assert await asyncio.wait_for(reader.readuntil(b"hello"), 5)
        writer.write(head)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        server.should_exit = True
        await running

    asyncio.run(ask())


@pytest.mark.large
def test_idle_connections_do_not_block_requests() -> None:
    async def ask() -> None:
        config = uvicorn.Config(answer, port=0, http=_Protocol, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        head = b"GET / HTTP/1.1\r\nHost: localhost\r\n"

        async def request() -> asyncio.StreamWriter:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head + b"\r\n")
            assert await asyncio.wait_for(reader.readuntil(b"hello"), 5)
            return writer

        opened = []
        # 150 that ask once and stay, 300 with half a head; one request is under way meanwhile.
        for _ in range(15):
            opened += await asyncio.gather(*(request() for _ in range(10)))
        under_way = asyncio.create_task(request())
        for _ in range(300):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head)
            opened.append(writer)
        opened += [await under_way, await request()]
        assert len(server.server_state.connections) <= _MAX_WAITING + 2
        for writer in opened:
            writer.close()
        server.should_exit = True
        await running

    asyncio.run(ask())


def test_invalid_request_bytes_are_answered_with_a_problem() -> None:
    async def ask() -> None:
        config = uvicorn.Config(answer, port=0, http=_Protocol, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        for sent in (b"what is this\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"\x16\x03\x01\x02\n\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
            assert b"content-type: application/problem+json" in head.lower()
            assert json.loads(body)["code"] == "bad-request"
            writer.close()
        server.should_exit = True
        await running

    asyncio.run(ask())


@pytest.mark.large
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="its memory is shared out by another library")
def test_many_threads_share_two_heaps() -> None:
    """In a process of its own: 24 threads that each keep a little leave as many heaps behind otherwise."""
    code = (
        "import re, sys, threading\n"
        "from vidkin._base.memory import share_heaps\n"
        "if sys.argv[1] == 'shared' and not share_heaps(): sys.exit('no')\n"
        "gate = threading.Barrier(25)\n"
        "def work():\n"
        "    kept = [bytearray(50_000) for _ in range(20)]\n"
        "    gate.wait(); gate.wait()\n"
        "threads = [threading.Thread(target=work) for _ in range(24)]\n"
        "[thread.start() for thread in threads]\n"
        "gate.wait()\n"
        # A heap of a thread begins at a multiple of 64 MiB.
        "lines = open('/proc/self/maps').read().splitlines()\n"
        "heap = re.compile(r'[0-9a-f]*[048c]000000-\\S+ rw-p 00000000 00:00 0')\n"
        "heaps = sum(heap.match(line) is not None for line in lines)\n"
        "gate.wait()\n"
        "print(heaps)\n"
    )
    counts = {
        how: int(subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True).stdout)
        for how in ("shared", "usual")
    }
    assert counts["shared"] <= 2 < counts["usual"]

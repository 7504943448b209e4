"""Throughput and latency of `vidkin serve` on the loopback interface.

    python research/benchmarks/web_load.py [--videos 10000] [--requests 300] [--output research/results/web.md]

An index of synthetic records simulates a large collection; thumbnails and file content come from one real video. The
style sheet requires no index: comparing the other rows with it shows the cost of the index. The last row is the library
while other connections are stuck: uploads that never send a byte, and downloads that are never read. A second table has
the latencies of the pages for a single client, including the maximum, which should be at most 300 ms.
"""

from __future__ import annotations

import argparse
import http.client
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.videos import encode, pan
from tests.web.synthetic import fill

from vidkin.index import Index, SerialExecutor
from vidkin.rendering.machine import describe_machine

_STUCK = 16
_AT_A_TIME = 8
_TURNS = 5
# Latency limit of a page for a single client in milliseconds, and the pages measured.
_MOST_ALONE = 300
_PAGES = {
    "library": "/",
    "library, sorted by length": "/?sort=duration&page=7",
    "library, filtered by name": "/?q=video+042",
    "a video": "/videos/{number}",
    "search": "/search",
    "duplicates": "/duplicates",
    "what recurs": "/recurring",
    "list of shots": "/shots",
    "map": "/map",
    "review": "/review",
}
_local = threading.local()


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "many.vidkin"
        fill(index, options.videos)
        video = encode(Path(folder) / "coffee.mp4", pan("coffee", 250, width=640, height=360))
        with Index.open(index) as collection:
            collection.add(video, executor=SerialExecutor(collection.worker_spec))
            number = next(record.id for record in collection.videos() if record.path == str(video))
        with start_server(index) as port:
            rows = measure(port, number, options.requests)
            alone = measure_alone(port, number, options.requests)
    text = page(rows, alone, options.videos)
    print(text)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")


def measure(port: int, number: int, count: int) -> list[tuple[str, float, float, float]]:
    """Return request, requests per second, and median and 99th percentile latency in milliseconds."""
    asked = {
        "style sheet": "/static/base.css",
        "library page, the first 60": "/",
        "library page, sorted by length": "/?sort=duration&page=7",
        "search by name": "/api/videos?q=video+042",
        "thumbnail, made before": f"/videos/{number}/thumbnail",
        "64 kB of a video": f"/videos/{number}/file",
    }
    # Interleaved, so that load on the machine affects all alike.
    times: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(_TURNS):
        for name, address in asked.items():
            times[name] += load(port, address, count // _TURNS)
        with stuck(port, number):
            name = f"library page, {2 * _STUCK} connections left open"
            times.setdefault(name, []).extend(load(port, "/", count // _TURNS))
    rows = []
    for name, each in times.items():
        milliseconds = np.array(each)
        rate = _AT_A_TIME * 1000 / float(milliseconds.mean())
        rows.append((name, rate, float(np.median(milliseconds)), float(np.quantile(milliseconds, 0.99))))
    return rows


def measure_alone(port: int, number: int, count: int) -> list[tuple[str, float, float]]:
    """Return name, median and maximum milliseconds of each page, for a single client."""
    times: dict[str, list[float]] = {name: [] for name in _PAGES}
    for _ in range(_TURNS):
        for name, address in _PAGES.items():
            times[name] += load(port, address.format(number=number), max(count // _TURNS // 10, 2), clients=1)
    return [(name, float(np.median(each)), max(each)) for name, each in times.items()]


def load(port: int, address: str, count: int, clients: int = _AT_A_TIME) -> list[float]:
    """Milliseconds of each request, for clients with persistent connections."""
    headers = {"Range": "bytes=0-65535"}

    def ask(_: int) -> float:
        if not hasattr(_local, "connection"):
            _local.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        began = time.perf_counter()
        _local.connection.request("GET", address, headers=headers)
        answer = _local.connection.getresponse()
        answer.read()
        assert answer.status in (200, 206), answer.status
        return 1000 * (time.perf_counter() - began)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(ask, range(2 * clients)))
        return list(pool.map(ask, range(count)))


@contextmanager
def stuck(port: int, number: int) -> Iterator[None]:
    """Open connections that upload nothing, and connections that read nothing of the response."""
    sockets = []
    lines = (
        b"POST /api/uploads?name=a.mp4 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n",
        f"GET /videos/{number}/file HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(),
    )
    for line in lines * _STUCK:
        one = socket.create_connection(("127.0.0.1", port))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        one.sendall(line)
        sockets.append(one)
    time.sleep(0.5)
    yield
    for one in sockets:
        one.close()


@contextmanager
def start_server(index: Path) -> Iterator[int]:
    """Port of a server in a separate process."""
    command = [sys.executable, "-m", "vidkin", "serve", str(index), "--port", "0", "--no-token"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline().rstrip().rstrip("/").rpartition(":")[2])
        server.send_signal(signal.SIGINT)


def page(rows: list[tuple[str, float, float, float]], alone: list[tuple[str, float, float]], videos: int) -> str:
    """Format the results as Markdown."""
    pages = [f"| {name} | {median:.1f} | {longest:.1f} |" for name, median, longest in alone]
    slowest_page, _, most = max(alone, key=lambda row: row[2])
    lines = [f"| {name} | {rate:.0f} | {median:.1f} | {slowest:.1f} |" for name, rate, median, slowest in rows]
    return "\n".join(
        [
            "# The web app under load",
            "",
            f"`vidkin serve` with {videos:,} videos, {_AT_A_TIME} clients at a time on the same machine, which is also "
            "where they run:",
            "",
            "| request | a second | median, ms | 99th percentile, ms |",
            "|---|---|---|---|",
            *lines,
            "",
            f"Left open are {_STUCK} uploads that never send a byte, of which the server takes eight at a time,",
            f"and {_STUCK} downloads that nobody reads.",
            "",
            "One client alone:",
            "",
            "| page | median, ms | longest, ms |",
            "|---|---|---|",
            *pages,
            "",
            f"The longest request of all was {most:.0f} ms ({slowest_page}); "
            f"{_MOST_ALONE} ms {'are held' if most <= _MOST_ALONE else 'are MISSED'}.",
            "",
            f"Measured on {describe_machine()}, by `python research/benchmarks/web_load.py --output "
            "research/results/web.md`.",
            "",
        ]
    )


if __name__ == "__main__":
    main()

"""A server that answers thousands of requests takes as much memory as after a few hundred."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import Library

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc"),
]

REQUESTS, FIRST, MOST = 2000, 300, 350


class Server:
    """``vidkin serve`` in a process of its own."""

    def __init__(self, index: Path, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "vidkin", "serve", "--index", str(index), "--port", str(port), "--no-token"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while True:
            try:
                self.ask("GET", "/api/jobs")
                return
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.2)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, method=method, data=content, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def megabytes(self) -> int:
        """Memory of the process that is in use now."""
        time.sleep(3.0)  # what work has left is given back within two seconds
        for line in Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) // 1024
        raise AssertionError("the server has ended")


def varied(random_: random.Random, videos: list[int]) -> tuple[str, str, Any]:
    """One of the requests that pages make."""
    video, other = random_.choice(videos), random_.choice(videos)
    moment = round(random_.uniform(0, 6), 1)
    box = [0.1, 0.1, 0.7, 0.8]
    return random_.choice(
        [
            ("GET", f"/videos/{video}/thumbnail?time={moment}", None),
            ("GET", f"/videos/{video}/thumbnail?time={moment}&side=720", None),
            ("GET", f"/videos/{video}/preview", None),
            ("GET", f"/videos/{video}/file", None),
            ("GET", f"/api/rectangles?video={video}&time={moment}", None),
            ("POST", "/api/search", {"video": video}),
            ("POST", "/api/search", {"video": video, "start": 0, "end": 2}),
            ("POST", "/api/search", {"video": video, "time": moment, "box": box}),
            ("POST", "/api/match", {"video": video, "target": other}),
            ("POST", f"/api/videos/{video}/neighbors", {}),
            ("GET", f"/videos/{video}", None),
            ("GET", f"/search?video={video}", None),
            ("GET", random_.choice(["/", "/api/videos", "/duplicates", "/review", "/api/lists", "/map"]), None),
        ]
    )


def test_memory_does_not_grow_with_the_number_of_requests(own_library: Library) -> None:
    server = Server(own_library.index, 18_000 + os.getpid() % 10_000)
    try:
        listed = json.loads(server.ask("GET", "/api/videos?limit=500"))["videos"]
        videos = [video["id"] for video in listed if video["status"] == "ok"]
        random_ = random.Random(0)
        after: list[int] = []
        for number in range(1, REQUESTS + 1):
            server.ask(*varied(random_, videos))
            if number >= FIRST and number % 100 == 0:
                after.append(server.megabytes())
        assert max(after) <= MOST, after
        assert min(after[-5:]) <= after[0] + 20, after
    finally:
        server.process.terminate()
        server.process.wait(15)

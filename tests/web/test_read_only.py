"""A server with --read-only changes no file of the index, whatever it is asked for."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from tests.web.conftest import Connect, Library, number_of


def files_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Time of the last change and digest of every file, and of every folder the time alone."""
    found: dict[str, tuple[int, str]] = {}
    for place, _, names in os.walk(folder):
        found[place] = (os.stat(place).st_mtime_ns, "")
        for name in names:
            path = Path(place, name)
            found[str(path)] = (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
    return found


@pytest.mark.thorough
def test_read_only_server_changes_nothing_in_the_index(own_library: Library, connect: Connect) -> None:
    writing = connect(own_library.index)
    number = number_of(writing, "coffee.mp4")
    kept = writing.get(f"/videos/{number}/thumbnail?time=1").content
    before = files_of(own_library.index)
    client = connect(own_library.index, read_only=True)
    assert client.get(f"/videos/{number}/thumbnail?time=1").content == kept
    for address in (f"/videos/{number}/thumbnail?time=2", f"/videos/{number}/preview", "/", "/duplicates"):
        assert client.get(address).status_code == 200
    assert client.post(f"/api/videos/{number}/neighbors").status_code == 200
    assert client.get(f"/api/videos/{number}/neighbors").json() is not None
    assert client.post("/api/search", json={"video": number}).json()["matches"]
    asked = [
        client.post(address, json={})
        for address in ("/api/duplicates", "/api/recurring", f"/api/videos/{number}/shots", "/api/map")
    ]
    assert asked[0].status_code in (200, 202)
    end = time.monotonic() + 60
    while any(job["state"] == "running" for job in client.get("/api/jobs").json()) and time.monotonic() < end:
        time.sleep(0.1)
    assert "done" in {job["state"] for job in client.get("/api/jobs").json()}
    assert files_of(own_library.index) == before

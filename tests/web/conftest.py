"""A small index of real videos, and a client for its web app."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.videos import encode, pan
from vidkin.index import Index, SerialExecutor
from vidkin.web import Settings, create_app

HOST = "http://127.0.0.1:8800"


@dataclass(frozen=True)
class Library:
    """A folder of videos and its index.

    ``coffee.mp4`` runs for 12 s at 10 frames a second; ``copy.mp4`` is the same, smaller; ``rocket & <b>.mp4`` of 8 s
    is something else; ``broken.mp4`` is no video. ``clip`` is seconds 4 to 9 of coffee and not in the index.
    """

    folder: Path
    index: Path
    clip: Path


def make_library(root: Path) -> Library:
    """Made and indexed in ``root``; tests that write make their own."""
    folder = root / "videos"
    folder.mkdir()
    encode(folder / "coffee.mp4", pan("coffee", 120))
    encode(folder / "copy.mp4", pan("coffee", 120, width=128, height=96), options={"crf": "32"})
    encode(folder / "rocket & <b>.mp4", pan("rocket", 80))
    (folder / "broken.mp4").write_bytes(b"no video at all" * 50)
    clip = encode(root / "clip.mp4", list(pan("coffee", 120))[40:90])
    with Index.open(root / "c.vidkin", extractor="classical", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
    return Library(folder, root / "c.vidkin", clip)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """One that tests only read."""
    return make_library(tmp_path_factory.mktemp("web"))


Connect = Callable[..., TestClient]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens a client for an index: ``connect(path, token="...")``."""
    with ExitStack() as stack:

        def open_client(index: Path, **settings: object) -> TestClient:
            app = create_app(index, Settings(**settings))  # type: ignore[arg-type]
            return stack.enter_context(TestClient(app, base_url=HOST))

        yield open_client


@pytest.fixture
def client(library: Library, connect: Connect) -> TestClient:
    """Of the library that tests only read."""
    return connect(library.index)


def finish_job(client: TestClient, job: dict[str, Any]) -> dict[str, Any]:
    """The last state of a job that was started; fails after a minute."""
    for _ in range(1200):
        state: dict[str, Any] = client.get(f"/api/jobs/{job['id']}").json()
        if state["state"] != "running":
            return state
        time.sleep(0.05)
    raise AssertionError(f"the job does not end: {state}")


def number_of(client: TestClient, name: str) -> int:
    """The number of the video with this name."""
    found = client.get("/api/videos", params={"limit": 500}).json()["videos"]
    number: int = next(video["id"] for video in found if video["name"] == name)
    return number

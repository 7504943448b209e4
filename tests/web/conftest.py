"""A small index of real videos, and a client for its web app."""

from __future__ import annotations

import shutil
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
    """Made and indexed in ``root``."""
    folder = root / "videos"
    folder.mkdir()
    # Well enough encoded for times to a tenth of a second.
    encode(folder / "coffee.mp4", pan("coffee", 120), options={"preset": "medium"})
    small = pan("coffee", 120, width=144, height=96)
    encode(folder / "copy.mp4", small, options={"crf": "32", "preset": "medium"})
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


class Restored:
    """A library that tests write to, brought back to what it was: making it takes longer than most of them.

    Args:
        root: An empty folder.
        compared: Whether a command has looked for duplicates in it.
    """

    def __init__(self, root: Path, *, compared: bool) -> None:
        self._live, self._saved = root / "live", root / "saved"
        self._live.mkdir()
        self._library = make_library(self._live)
        if compared:
            with Index.open(self._library.index) as index:
                index.duplicates()
        shutil.copytree(self._live, self._saved)  # with the times of the files, by which the index knows them

    def restore(self) -> Library:
        """The library as it was made, at the same paths."""
        shutil.rmtree(self._live)
        shutil.copytree(self._saved, self._live)
        return self._library


@pytest.fixture(scope="session")
def _own_library(tmp_path_factory: pytest.TempPathFactory) -> Restored:
    return Restored(tmp_path_factory.mktemp("own"), compared=False)


@pytest.fixture
def own_library(_own_library: Restored) -> Library:
    """One that the test may write to."""
    return _own_library.restore()


@pytest.fixture(scope="session")
def _compared_library(tmp_path_factory: pytest.TempPathFactory) -> Restored:
    return Restored(tmp_path_factory.mktemp("compared"), compared=True)


@pytest.fixture
def compared_library(_compared_library: Restored) -> Library:
    """One that the test may write to, whose copies a command has found."""
    return _compared_library.restore()


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

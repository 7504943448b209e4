"""A place is opened once, at the entry point; inner functions never convert a path or an address to a place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.index import Index, Location, Place, SerialExecutor
from vidkin.index.storage import opening


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Location]:
    """Record the arguments of all calls of :func:`open_place` during a test."""
    calls: list[Location] = []
    original = opening.open_place

    def count(location: Location) -> Place:
        calls.append(location)
        return original(location)

    for name, module in list(sys.modules.items()):
        if name.startswith("vidkin.") and getattr(module, "open_place", None) is original:
            monkeypatch.setattr(module, "open_place", count)
    return calls


def test_index_command_opens_its_place_once(tmp_path: Path, opened: list[Location]) -> None:
    clip = encode(tmp_path / "clip.mp4", pan("coffee", 10), rate=10)
    folder = tmp_path / "c.vidkin"
    with Index.open(folder, create=True) as index:
        index.add(clip, executor=SerialExecutor(index.worker_spec))
    assert opened == [folder]


def test_search_and_decision_open_only_their_place(tmp_path: Path, opened: list[Location]) -> None:
    clips = [encode(tmp_path / f"{name}.mp4", pan(name, 10), rate=10) for name in ("coffee", "rocket")]
    with Index.open(tmp_path / "c.vidkin", create=True) as index:
        index.add(clips, executor=SerialExecutor(index.worker_spec))
        opened.clear()
        index.search(clips[0])
        index.reject(*clips)
        index.duplicates()
        index.decisions()
        index.info()
        index.remove(clips[1])
    assert opened == []

"""A query file is read once, and the components of a search are loaded once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import av
import pytest

from tests.support.videos import encode, pan
from vidkin.index import Calibration, Index, SerialExecutor
from vidkin.index.query import query as parts


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """The only video in the index."""
    path = encode(tmp_path / "clip.mp4", pan("coffee", 30, width=160, height=120), rate=10)
    with Index.open(tmp_path / "i", create=True) as index:
        index.add(path, executor=SerialExecutor(index.worker_spec))
    return path


def test_query_deleted_after_it_was_read_is_still_searched(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = tmp_path / "query.mp4"
    query.write_bytes(clip.read_bytes())
    describe = parts.describe_query

    def describe_and_delete(*arguments: Any, **options: Any) -> Any:
        described = describe(*arguments, **options)
        query.unlink()
        return described

    with Index.open(tmp_path / "i") as index:
        found = index.search(query)
        monkeypatch.setattr(parts, "describe_query", describe_and_delete)
        again = index.search(query)
    assert [match.path for match in again] == [match.path for match in found] == [str(clip)]
    assert not query.exists()


def test_search_components_are_loaded_once(clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def load(*arguments: Any, **options: Any) -> Any:
            loads[f"{owner.__name__}.{name}"] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, load)

    count(Calibration, "open")
    count(parts, "open_scorer")
    count(av, "open")
    once = {"Calibration.open": 1, "vidkin.index.query.query.open_scorer": 1, "av.open": 1}
    with Index.open(tmp_path / "i") as index:
        first = index.search(clip)
        assert loads == once  # the file is opened once for probing and decoding
        assert index.search(clip) == first
        assert loads == {**once, "av.open": 2}

"""The contract tests of vidkin's stores, run on Lance tables and shards."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.index.storage import test_stores
from vidkin.index import VectorStore, open_place
from vidkin_scale.lance_store import LanceStore
from vidkin_scale.shards import ShardedStore


@pytest.fixture(params=["lance", "shards"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> VectorStore:
    place = open_place(tmp_path / "store")
    return LanceStore(place) if request.param == "lance" else ShardedStore(place, 3)


_SHARED = {
    name: test
    for name, test in vars(test_stores).items()
    if name.startswith("test_") and "store" in inspect.signature(test).parameters
}
globals().update(_SHARED)


def test_contract_tests_are_included() -> None:
    assert {"test_appended_videos_are_read_back", "test_thumbnails_are_read_back"} < _SHARED.keys()

"""The contract of stores, for Lance tables and for shards: the tests of the product with other stores."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.index.storage import test_stores, test_whitened
from vidkin.index import VectorStore, open_place
from vidkin_scale.lance_store import LanceStore
from vidkin_scale.shards import ShardedStore


@pytest.fixture(params=["lance", "shards"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> VectorStore:
    place = open_place(tmp_path / "store")
    whitening = test_whitened.whitening_of if request.function.__module__ == test_whitened.__name__ else None
    if request.param == "lance":
        return LanceStore(place, whitening=whitening)
    return ShardedStore(place, 3, whitening=whitening)


_SHARED = {
    name: test
    for module in (test_stores, test_whitened)
    for name, test in vars(module).items()
    if name.startswith("test_") and "store" in inspect.signature(test).parameters
}
globals().update(_SHARED)


def test_the_tests_of_the_product_are_here() -> None:
    assert {"test_appended_videos_are_read_back", "test_video_without_windows_stays_empty"} < _SHARED.keys()

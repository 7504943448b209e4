"""Checks that a Lance store contains exactly what its records refer to."""

from __future__ import annotations

from tests.index.ingest.test_session_kill import check
from vidkin_scale.lance_store import LanceStore


def stored_ids(store: LanceStore) -> list[int]:
    """Ids of all videos with features or windows."""
    return sorted(store._features.sizes().keys() | store._window_counts().keys())


def check_without_remains(store: LanceStore) -> None:
    """Check that every record is complete, and that the tables have no rows without a record."""
    check(store)
    assert stored_ids(store) == sorted(record.id for record in store.videos())
    assert store._windows.dataset.count_rows() == store.window_count()

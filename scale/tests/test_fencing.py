"""A writer that has lost its lock without noticing cannot change anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from scale.tests.remains import check_without_remains
from scale.tests.s3_server import S3Server
from scale.tests.test_lease import INDEX, expire

from tests.index.ingest.killed_writer import entry
from tests.index.ingest.test_session_kill import check
from vidkin.errors import CollectionLockedError
from vidkin.index import open_place
from vidkin_scale.lance_store import VIDEOS_TABLE, WINDOWS_TABLE, LanceStore

ZOMBIE_WRITES: dict[str, Callable[[LanceStore], object]] = {
    "append": lambda store: store.append_many([entry(5), entry(6)]),
    "replace": lambda store: store.append_many([entry(0, version=1)]),
    "update": lambda store: store.update([replace(store.videos()[0], path="/moved.mp4")]),
    "remove": lambda store: store.remove([store.videos()[1].id]),
    "optimize": lambda store: store.optimize(),
    "recover": lambda store: store.recover(),
    "refresh": lambda store: store.refresh(),
}


@pytest.mark.parametrize("name", ZOMBIE_WRITES)
def test_writes_of_a_writer_without_its_lock_fail(name: str, s3: S3Server) -> None:
    slow, quick = open_place(INDEX), open_place(INDEX)
    with slow.exclusive(0):
        zombie = LanceStore(slow, keep_versions=timedelta(0))
        for number in range(3):
            zombie.append_many([entry(number)])
        # It is delayed, and another writer takes over; both believe that they hold the lock.
        expire(s3)
        with quick.exclusive(0):
            store = LanceStore(quick)
            store.recover()
            with pytest.raises(CollectionLockedError, match="finished work is saved: run the same command again"):
                ZOMBIE_WRITES[name](zombie)
            store.append_many([entry(3), entry(4)])
            store.remove([store.videos()[2].id])
            # Files it wrote before its commit failed do no harm.
            store.recover()
            check_without_remains(store)
    assert [record.size for record in LanceStore(open_place(INDEX)).videos()] == [0, 1, 3, 4]
    check_without_remains(LanceStore(open_place(INDEX)))


def test_ids_of_a_writer_without_its_lock_are_not_reused(s3: S3Server) -> None:
    slow, quick = open_place(INDEX), open_place(INDEX)
    with slow.exclusive(0):
        zombie = LanceStore(slow)
        zombie.append_many([entry(0)])
        (last,) = zombie.videos()
        expire(s3)
        with quick.exclusive(0):
            store = LanceStore(quick)
            store.recover()
            (added,) = store.append_many([entry(1)])
            assert added.id > last.id + 1000
            # A request of the fenced writer was already on its way when it lost its lock.
            features = entry(9).features
            assert features is not None
            s3_files = LanceStore(open_place(INDEX))._features
            s3_files.write(last.id + 1, features)
            check(LanceStore(open_place(INDEX)))
            store.recover()
            check_without_remains(store)


def test_late_fence_undoes_nothing(s3: S3Server) -> None:
    """A writer takes over, but is delayed before it fences the tables."""
    slow = open_place(INDEX)
    with slow.exclusive(0):
        store = LanceStore(slow)
        store.append_many([entry(0)])
        other = LanceStore(open_place(INDEX))
        other.append_many([entry(1)])
        for table in (store._videos, store._windows):
            assert table.name in (VIDEOS_TABLE, WINDOWS_TABLE)
            with pytest.raises(CollectionLockedError, match="another process has taken over writing"):
                table.fence()
    assert LanceStore(open_place(INDEX)).count() == 2
    check_without_remains(LanceStore(open_place(INDEX)))


def test_no_fence_is_needed_after_a_clean_release(s3: S3Server) -> None:
    place = open_place(INDEX)
    with place.exclusive(0):
        LanceStore(place).append_many([entry(0)])
    before = set(s3.files)
    with place.exclusive(0):
        store = LanceStore(place)
        store.recover()
        assert set(s3.files) == before
        (added,) = store.append_many([entry(1)])
        assert added.id == 2

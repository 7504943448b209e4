"""The write lease of an index on object storage."""

from __future__ import annotations

import json
import threading
import time

import pytest
from scale.tests.s3_server import S3Server

from vidkin.errors import CollectionLockedError
from vidkin.index import open_place
from vidkin_scale import lease

INDEX = "s3://bucket/index"
LEASE = "bucket/index/writer.json"


def expire(server: S3Server) -> None:
    """Backdate the last renewal of the lease by a minute."""
    server.times[LEASE] -= 60


def note(server: S3Server) -> dict[str, object]:
    content: dict[str, object] = json.loads(server.files[LEASE])
    return content


def test_second_writer_is_rejected_and_the_first_named(s3: S3Server) -> None:
    with (
        open_place(INDEX).exclusive(),
        pytest.raises(
            CollectionLockedError,
            match=r"^s3://bucket/index is being written to by process \d+ on \S+ since 20.*; try again later.*"
            r"wait=SECONDS\); if that process was killed, its lock ends in 3[0-3] s",
        ),
        open_place(INDEX).exclusive(),
    ):
        raise AssertionError("never reached")
    with open_place(INDEX).exclusive():
        assert note(s3)["released"] is False
    assert note(s3)["released"] is True


def test_writer_can_wait_for_the_lock(s3: S3Server) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with open_place(INDEX).exclusive():
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(30)
    with (
        pytest.raises(CollectionLockedError, match=r"still after 0.2 s by process"),
        open_place(INDEX).exclusive(0.2),
    ):
        raise AssertionError("never reached")
    threading.Timer(0.3, leave.set).start()
    with open_place(INDEX).exclusive(30):
        pass
    thread.join()


def test_only_one_of_many_writers_gets_the_lease(s3: S3Server) -> None:
    """All of them see that it is free before the first acquires it."""
    barrier, inside, refused = threading.Barrier(8, timeout=30), [], []
    s3.on_request = lambda what, name: (what == "PUT" and name == LEASE and barrier.wait(), None)[1]

    def write() -> None:
        try:
            with open_place(INDEX).exclusive():
                inside.append(1)
                everyone.wait(30)
        except CollectionLockedError:
            refused.append(1)

    everyone = threading.Event()
    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(refused) < 7 and len(inside) < 2:
        time.sleep(0.01)
    s3.on_request = lambda what, name: None
    everyone.set()
    for thread in threads:
        thread.join()
    assert (len(inside), len(refused)) == (1, 7)


def test_expired_lease_is_taken_over_and_its_holder_cannot_write(s3: S3Server) -> None:
    slow = open_place(INDEX)
    with slow.exclusive(0):
        slow.write("a", b"one")
        expire(s3)
        quick = open_place(INDEX)
        with quick.exclusive(0):
            assert quick.needs_fence()
            slow.check_writer()  # by its own clock it still holds the lease
            with pytest.raises(CollectionLockedError, match=r"the right to write was lost, .* 30 s; finished work"):
                slow.check_writer(ask=True)
            with pytest.raises(CollectionLockedError):
                slow.write("a", b"two")
            with pytest.raises(CollectionLockedError):
                slow.delete(["a"])
            quick.check_writer(ask=True)
        assert note(s3)["released"] is True
    # Leftovers of the slow writer do not undo that.
    assert note(s3)["released"] is True
    assert slow.read("a") == b"one"


def test_needed_fence_is_recorded_until_it_is_made(s3: S3Server) -> None:
    with open_place(INDEX).exclusive():
        pass
    with (place := open_place(INDEX)).exclusive(0):
        assert not place.needs_fence()
        expire(s3)
        with open_place(INDEX).exclusive():  # fences nothing
            pass
    with (place := open_place(INDEX)).exclusive(0):
        assert place.needs_fence()
        place.note_fence()
        assert not place.needs_fence()
    with (place := open_place(INDEX)).exclusive(0):
        assert not place.needs_fence()


def test_lease_is_renewed_while_the_writer_is_alive(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SECONDS", 0.4)
    place = open_place(INDEX)
    with place.exclusive(0):
        deadline = time.monotonic() + 30
        while note(s3)["count"] != 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        place.check_writer(ask=True)
        assert int(str(note(s3)["count"])) >= 5


def test_lease_without_renewal_expires_by_the_holders_clock(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SECONDS", 0.3)
    place = open_place(INDEX)
    with place.exclusive(0):
        s3.buckets.clear()  # the storage rejects everything
        time.sleep(0.5)
        with pytest.raises(CollectionLockedError, match=r"could not be renewed for 0\.3 s"):
            place.write("a", b"one")
        s3.buckets.add("bucket")
        # Nobody acquired it in the meantime, so it can be renewed.
        place.check_writer(ask=True)
        place.write("a", b"one")


@pytest.mark.parametrize("content", [b"", b"{}", b'{"pid": 1, "host": "x", "since": "2026"}'])
def test_unreadable_lease_has_the_default_duration(s3: S3Server, content: bytes) -> None:
    s3.put(LEASE, content, None, None)
    with pytest.raises(CollectionLockedError, match="by another process"), open_place(INDEX).exclusive():
        raise AssertionError("never reached")
    expire(s3)
    with open_place(INDEX).exclusive():
        pass

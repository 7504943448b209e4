"""Files on object storage."""

from __future__ import annotations

import threading

import pytest
from scale.tests.s3_server import S3Server

from tests.index.storage.test_places import (
    test_map_returns_results_in_order,
    test_place_lists_and_deletes_folders,
    test_place_reads_writes_and_deletes_files,
)
from vidkin.errors import CollectionError, CollectionLockedError, InvalidArgumentError
from vidkin.index import open_place
from vidkin.index.storage.opening import folder_of
from vidkin.index.storage.place import Place

__all__ = [
    "test_map_returns_results_in_order",
    "test_place_lists_and_deletes_folders",
    "test_place_reads_writes_and_deletes_files",
]


@pytest.fixture
def place(s3: S3Server) -> Place:
    return open_place("s3://bucket/index")


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_address_opens_object_storage(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    place = open_place(f"{scheme.upper()}://Bucket.name/films/2024/")
    assert place.uri == f"{scheme}://Bucket.name/films/2024"
    assert place.address("videos.lance") == f"{scheme}://Bucket.name/films/2024/videos.lance"
    assert open_place(f"{scheme}://bucket").address("a") == f"{scheme}://bucket/a"
    with pytest.raises(CollectionError, match="is not a local folder"):
        folder_of(place)


@pytest.mark.parametrize("name", ["http://host/x", "s3://", "azure://x/y"])
def test_other_addresses_are_rejected(name: str) -> None:
    accepted = "index must be a folder or gs://BUCKET/PREFIX or s3://BUCKET/PREFIX"
    with pytest.raises(InvalidArgumentError, match=f"^{accepted}, got {name}$"):
        open_place(name)


def test_lock_files_are_not_listed(place: Place) -> None:
    with place.exclusive():
        place.write("a", b"")
        assert place.names() == {"a"}
        assert "writer.json" in place.sizes()


def test_requests_run_in_parallel(s3: S3Server) -> None:
    """Sixteen requests run at a time: the barrier only opens when all of them have arrived."""
    place = open_place("s3://bucket/index")
    barrier = threading.Barrier(16, timeout=30)
    s3.on_request = lambda what, name: (what == "GET" and barrier.wait(), None)[1]
    assert place.map(place.read, [f"{number}" for number in range(32)]) == [None] * 32


def test_file_is_replaced_only_if_unchanged_since_it_was_read(s3: S3Server) -> None:
    one, other = open_place("s3://bucket/index"), open_place("s3://bucket/index")
    assert one.read("a") is None
    assert other.read("a") is None
    one.write("a", b"first")
    with pytest.raises(CollectionLockedError, match="s3://bucket/index/a was changed by another process"):
        other.write("a", b"second")
    assert other.read("a") == b"first"
    other.write("a", b"third")
    with pytest.raises(CollectionLockedError):
        one.write("a", b"fourth")
    one.read("a")
    other.delete(["a"])
    with pytest.raises(CollectionLockedError):
        one.write("a", b"fifth")
    assert one.read("a") is None


def test_lost_answer_is_not_mistaken_for_another_writer(s3: S3Server) -> None:
    place = open_place("s3://bucket/index")
    place.read("a")
    s3.answers_to_lose = 1
    place.write("a", b"one")
    assert s3.counts["PUT"] == 2
    s3.answers_to_lose = 1
    place.write("a", b"two")
    assert place.read("a") == b"two"


def test_errors_name_the_cause_and_the_remedy(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CollectionError, match=r"^s3://none/x: there is no such bucket; create it or correct"):
        open_place("s3://none/x").read("a")
    with pytest.raises(CollectionError, match="there is no such bucket"):
        open_place("s3://none/x").write("a", b"")
    with pytest.raises(CollectionError, match="there is no such bucket"):
        open_place("s3://none/x").names()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wrong")
    with pytest.raises(CollectionError, match="the access key is unknown; set the credentials in the env"):
        open_place("s3://bucket/x").read("a")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(CollectionError, match="the storage cannot be reached; check the network and AWS_END"):
        open_place("s3://bucket/x").read("a")

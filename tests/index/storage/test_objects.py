"""Files on object storage, and the same for a folder where both must agree."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.s3_server import S3Server
from vidkin.errors import CollectionError, CollectionLockedError
from vidkin.index.storage.opening import open_place
from vidkin.index.storage.place import Place


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, s3: S3Server) -> Place:
    made = open_place(tmp_path / "index" if request.param == "folder" else "s3://bucket/index")
    made.prepare()
    return made


def test_files(place: Place) -> None:
    assert place.read("a.json") is None
    assert place.version("a.json") is None
    assert not place.has_file("a.json")
    place.write("a.json", b"one")
    first = place.version("a.json")
    assert place.read("a.json") == b"one"
    place.write("a.json", b"other")
    assert place.read("a.json") == b"other"
    place.delete(["a.json"])
    assert place.read("a.json") is None
    place.write("a.json", b"again")
    place.delete(["a.json"])
    place.write("a.json", b"third")
    assert place.version("a.json") != first
    assert place.has_file("a.json")


def test_folders(place: Place) -> None:
    names = ["features/000000/1.x", "features/000001/2.x", "features2/3.x", "top"]
    for size, name in enumerate(names):
        place.write(name, b"." * size, sync=False)
    assert place.names() == {"features", "features2", "top"}
    assert place.sizes("features") == {names[0]: 0, names[1]: 1}
    assert place.sizes() == dict(zip(names, range(4), strict=True))
    assert place.sizes("none") == {}
    assert place.has_folder()
    assert place.has_folder("features/000000")
    assert not place.has_folder("feat")
    assert not place.has_folder("none")
    place.delete([names[0], "features/000000/9.x"])
    assert place.sizes("features") == {names[1]: 1}
    place.delete_folder("features")
    assert place.names() - {"features"} == {"features2", "top"}
    assert place.sizes("features") == {}


def test_a_function_is_called_for_each_item_in_order(place: Place) -> None:
    def double(number: int) -> int:
        return 2 * number

    assert place.map(double, range(50)) == list(range(0, 100, 2))


def test_requests_wait_together(s3: S3Server) -> None:
    """Sixteen requests are under way at a time: the barrier lets them pass only when they all are."""
    place = open_place("s3://bucket/index")
    barrier = threading.Barrier(16, timeout=30)
    s3.on_request = lambda what, name: (what == "GET" and barrier.wait(), None)[1]
    assert place.map(place.read, [f"{number}" for number in range(32)]) == [None] * 32


def test_what_was_read_is_replaced_only_if_it_has_not_changed(s3: S3Server) -> None:
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


def test_a_lost_answer_is_not_taken_for_another_writer(s3: S3Server) -> None:
    place = open_place("s3://bucket/index")
    place.read("a")
    s3.answers_to_lose = 1
    place.write("a", b"one")
    assert s3.counts["PUT"] == 2
    s3.answers_to_lose = 1
    place.write("a", b"two")
    assert place.read("a") == b"two"


def test_refusals_name_the_cause_and_the_remedy(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
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

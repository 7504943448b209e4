"""An index on object storage is equal to the same index in a folder."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from scale.tests.remains import check_without_remains
from scale.tests.s3_server import S3Server
from scale.tests.test_lease import INDEX, expire

from tests.index.helpers import video
from tests.index.ingest.killed_writer import VIDEOS, entry, write
from tests.index.ingest.test_session_kill import check
from vidkin.errors import CollectionError, CollectionLockedError, CollectionNotFoundError
from vidkin.index import Index, SerialExecutor, open_place, repair
from vidkin_scale.lance_store import LanceStore

# Requests of a writer from its first to its last, at each of which it is killed once.
REQUESTS = 280
MOMENTS = random.Random(18)


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    for seed in range(2):
        video(tmp_path / "videos" / f"{seed}.mp4", seed=seed)
    video(tmp_path / "videos" / "copy.mp4", seed=0, frames=9)
    return tmp_path / "videos"


def add(index: Index, folder: Path) -> dict[str, int]:
    report = index.add(folder, executor=SerialExecutor(index.worker_spec))
    return {kind: len(getattr(report, kind)) for kind in ("added", "unchanged", "broken")}


def test_index_on_object_storage_gives_the_results_of_a_folder(videos: Path, tmp_path: Path, s3: S3Server) -> None:
    local = Index.open(tmp_path / "index", extractor="classical", create=True)
    remote = Index.open(INDEX, extractor="classical", create=True)
    assert add(local, videos) == add(remote, videos) == {"added": 3, "unchanged": 0, "broken": 0}
    # Except for records and windows, the stored files are identical.
    own = ("writer", "videos", "windows-", "collection.json")
    for path in (tmp_path / "index").rglob("*"):
        name = path.relative_to(tmp_path / "index").as_posix()
        if path.is_file() and not name.startswith(own):
            assert s3.files[f"bucket/index/{name}"] == path.read_bytes()
    fresh = Index.open(INDEX)
    assert local.search(videos / "copy.mp4") == remote.search(videos / "copy.mp4")
    assert local.search(videos / "1.mp4") == fresh.search(videos / "1.mp4")
    one, other = (index.match(videos / "copy.mp4", videos / "0.mp4") for index in (local, fresh))
    assert (one.score, one.segments) == (other.score, other.segments)
    assert one.score > 0.9
    assert local.duplicates() == fresh.duplicates()
    assert len(local.duplicates()) == 1
    assert replace(fresh.info(), path="", bytes=0, created="") == replace(local.info(), path="", bytes=0, created="")
    assert fresh.info().path == INDEX
    assert fresh.info().bytes == sum(map(len, s3.files.values()))
    assert repr(fresh) == "Index('s3://bucket/index', extractor='classical', videos=3)"
    with pytest.raises(CollectionError, match="s3://bucket/index is not a local folder"):
        fresh.path  # noqa: B018

    before = dict(s3.files)
    assert add(fresh, videos) == {"added": 0, "unchanged": 3, "broken": 0}
    changed = {name for name in s3.files if s3.files[name] != before.get(name)}
    assert changed == {"bucket/index/writer.json"}

    fresh.reject(videos / "0.mp4", videos / "copy.mp4")
    assert fresh.duplicates() == []
    assert fresh.remove(videos / "1.mp4") == 1
    assert add(fresh, videos) == {"added": 0, "unchanged": 2, "broken": 0}
    assert remote.refresh()
    assert len(remote) == 2
    assert len(Index.open(INDEX).decisions()) == 1


def test_folder_copied_to_a_bucket_is_an_index(videos: Path, tmp_path: Path, s3: S3Server) -> None:
    local = Index.open(tmp_path / "index", extractor="classical", create=True, store="lance")
    add(local, videos)
    for path in (tmp_path / "index").rglob("*"):
        if path.is_file():
            name = path.relative_to(tmp_path / "index").as_posix()
            s3.put(f"bucket/{name}", path.read_bytes(), None, None)
    copied = Index.open("s3://bucket")
    assert copied.search(videos / "1.mp4") == local.search(videos / "1.mp4")
    assert add(copied, videos)["unchanged"] == 3


def test_disk_store_copied_to_a_bucket_is_rejected_with_the_cause(tmp_path: Path, s3: S3Server) -> None:
    Index.open(tmp_path / "index", extractor="classical", create=True).close()
    s3.put("bucket/collection.json", (tmp_path / "index" / "collection.json").read_bytes(), None, None)
    with pytest.raises(CollectionError, match=r"s3://bucket is not a local folder; copy the index to one"):
        Index.open("s3://bucket")


def test_damage_is_found_and_repaired(videos: Path, s3: S3Server) -> None:
    index = Index.open(INDEX, extractor="classical", create=True)
    add(index, videos)
    index.close()
    (first, second, *_) = sorted(name for name in s3.files if "/features/" in name)
    s3.files[first] = s3.files[first][:100]
    del s3.files[second]
    s3.put("bucket/index/background.safetensors", b"\xff" * 40, None, None)
    parts = [part.part for part in repair(open_place(INDEX))]
    assert f"{INDEX}/background.safetensors" in parts
    assert [name for name in parts if name.endswith(".mp4")] == [str(videos / "0.mp4"), str(videos / "1.mp4")]
    assert add(Index.open(INDEX), videos) == {"added": 2, "unchanged": 1, "broken": 0}
    assert repair(open_place(INDEX)) == ()


def test_missing_bucket_or_index_and_foreign_folder_are_named(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CollectionNotFoundError, match="there is no index at s3://bucket/index; create one with"):
        Index.open(INDEX)
    with pytest.raises(CollectionError, match="s3://none/index: there is no such bucket"):
        Index.open("s3://none/index", extractor="classical", create=True)
    s3.put("bucket/index/notes.txt", b"mine", None, None)
    with pytest.raises(CollectionError, match=r"is not an index and is not empty \(it contains 'notes.txt'\)"):
        Index.open(INDEX, extractor="classical", create=True)
    # If the storage fails in between, the index is not considered damaged.
    store = LanceStore(open_place("s3://bucket/other"))
    store.append_many([entry(0)])
    s3.buckets.clear()
    for action in (store.refresh, lambda: store.append_many([entry(1)])):
        with pytest.raises(CollectionError, match="there is no such bucket; create it") as raised:
            action()
        assert type(raised.value) is CollectionError


def killed_at(request: int, s3: S3Server) -> None:
    """Run a writer and kill it with SIGKILL when it makes this request, which is not answered."""
    environment = {**os.environ, **s3.environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "scale.tests.killed_object_writer", INDEX]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        s3.reset_counts()

        def kill(what: str, name: str) -> None:
            if s3.counts.total() >= request:
                os.kill(writer.pid, signal.SIGKILL)

        s3.on_request = kill
        assert writer.wait(60) == -signal.SIGKILL
        s3.on_request = lambda what, name: None


def check_resume(request: int, s3: S3Server) -> None:
    killed_at(request, s3)
    check(LanceStore(open_place(INDEX)))
    place = open_place(INDEX)
    with pytest.raises(CollectionLockedError, match="if that process was killed"), place.exclusive():
        raise AssertionError("never reached")
    expire(s3)
    with place.exclusive():
        store = LanceStore(place)
        write(store)
        check_without_remains(store)
    store = LanceStore(open_place(INDEX))
    check_without_remains(store)
    assert sorted((r.size, r.mtime_ns) for r in store.videos()) == [(0, 1)] + [(n, 0) for n in range(1, VIDEOS)]


@pytest.mark.parametrize("request_number", [MOMENTS.randrange(1, REQUESTS) for _ in range(3)])
def test_index_survives_a_kill_at_any_moment(request_number: int, s3: S3Server) -> None:
    check_resume(request_number, s3)


@pytest.mark.slow
@pytest.mark.parametrize("request_number", [MOMENTS.randrange(1, REQUESTS) for _ in range(40)])
def test_index_survives_kills_at_many_moments(request_number: int, s3: S3Server) -> None:
    check_resume(request_number, s3)


def test_readers_see_complete_videos_during_writes(s3: S3Server) -> None:
    place = open_place(INDEX)
    done, seen = threading.Event(), set()
    problems: list[BaseException] = []

    def read() -> None:
        try:
            reader = LanceStore(open_place(INDEX))
            while not done.is_set():
                reader.refresh()
                check(reader)
                seen.add(reader.count())
        except BaseException as error:  # noqa: BLE001 - told to the test
            problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    with place.exclusive():
        store = LanceStore(place)
        for reader in readers:
            reader.start()
        write(store)
    done.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert len(seen) > 1


def test_second_simultaneous_writer_is_rejected(videos: Path, s3: S3Server) -> None:
    index = Index.open(INDEX, extractor="classical", create=True)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with open_place(INDEX).exclusive():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(60)
    with pytest.raises(CollectionLockedError, match="s3://bucket/index is being written to by process"):
        add(index, videos)
    threading.Timer(0.5, leave.set).start()
    index.add(videos, executor=SerialExecutor(index.worker_spec), wait=60)
    thread.join()
    assert len(index) == 3

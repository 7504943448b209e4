"""Updating an index: which files are read, recognized and reported."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.index.helpers import FATAL, PLAIN, color_video, video
from tests.support.videos import broken_off, encode, pan
from vidkin.errors import CollectionError
from vidkin.index import (
    DiskStore,
    Event,
    Executor,
    FolderRules,
    IngestInterrupted,
    IngestReport,
    MemoryStore,
    ProcessExecutor,
    Progress,
    SerialExecutor,
    VectorStore,
    open_place,
    scan,
)
from vidkin.index.ingest.session import Plan, ingest
from vidkin.similarity import FrameFeatures


class Counting(SerialExecutor):
    """Records the files that it reads, and can be interrupted."""

    def __init__(self, *, interrupt_after: int | None = None) -> None:
        super().__init__(PLAIN)
        self.read: list[str] = []
        self.left = interrupt_after

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        def noted() -> Iterator[str]:
            for path in paths:
                if self.left is not None and len(self.read) >= self.left:
                    raise KeyboardInterrupt
                self.read.append(os.path.basename(path))
                yield path

        return super().run(noted())


class Collection:
    """A folder of videos and a store."""

    def __init__(self, folder: Path, store: VectorStore) -> None:
        self.folder = folder
        self.store = store
        self.read: list[str] = []

    def add(self, *, executor: Executor | None = None, **options: object) -> IngestReport:
        used = executor or Counting()
        report = ingest(self.store, scan([self.folder]), used, **options)  # type: ignore[arg-type]
        self.read = used.read if isinstance(used, Counting) else []
        return report

    def names(self) -> list[str]:
        return [os.path.relpath(record.path, self.folder) for record in self.store.videos()]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    for seed, name in enumerate(["a.mp4", "b.mp4", "c.mp4"]):
        video(folder / name, seed=seed)
    return folder


@pytest.fixture(params=["memory", "lance"])
def collection(request: pytest.FixtureRequest, originals: Path, tmp_path: Path) -> Collection:
    shutil.copytree(originals, tmp_path / "videos")
    store = MemoryStore() if request.param == "memory" else DiskStore(open_place(tmp_path / "store"))
    return Collection(tmp_path / "videos", store)


def short(outcomes: Iterable[object]) -> list[str]:
    return [os.path.basename(outcome.path) for outcome in outcomes]  # type: ignore[attr-defined]


def test_truncated_file_is_added_with_a_note(collection: Collection, caplog: pytest.LogCaptureFixture) -> None:
    long = video(collection.folder / "d.mp4", seed=3, frames=60)
    broken_off(long, collection.folder / "e.mp4")
    report = collection.add()
    assert report.broken == ()
    causes = {os.path.basename(outcome.path): outcome.cause for outcome in report.added if outcome.cause}
    assert list(causes) == ["e.mp4"]
    assert re.fullmatch(
        r"the file is cut off: it has [3-8]\.\d s of 12\.0 s(; the file is damaged: [^;]*)?",
        causes["e.mp4"],
    )
    assert causes["e.mp4"] in caplog.text
    assert {os.path.basename(r.path): r.damage for r in collection.store.videos() if r.damage} == causes


def test_damage_is_recorded_until_the_file_is_repaired(
    collection: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    path = video(collection.folder / "d.ts", seed=3, frames=60)
    data = bytearray(path.read_bytes())
    # The encoder output differs from run to run, and a decoder may conceal a single damaged range.
    for place in (3, 4, 5, 6, 7):
        start = len(data) * place // 10
        data[start : start + 2000] = np.random.default_rng(place).bytes(2000)
    path.write_bytes(data)
    report = collection.add()
    assert report.broken == ()
    causes = {os.path.basename(outcome.path): outcome.cause for outcome in report.added if outcome.cause}
    assert list(causes) == ["d.ts"]
    # If a timestamp was damaged, the file also seems to be truncated.
    assert re.fullmatch(
        r"(the file is cut off: .*; )?the file is damaged: \d+ packets? skipped(, \d+ frames? with errors)?"
        r", first at \d\.\d s",
        causes["d.ts"],
    )
    assert caplog.text.count(causes["d.ts"]) == 1
    record = collection.store.find(str(path))
    assert record is not None
    assert (record.status, record.damage) == ("ok", causes["d.ts"])
    # A copy has the same damage; a file replaced by an intact one has none.
    shutil.copy(path, collection.folder / "e.ts")
    collection.add()
    copy = collection.store.find(str(collection.folder / "e.ts"))
    assert copy is not None
    assert copy.damage == record.damage
    video(path, seed=3, frames=60)
    collection.add()
    mended = collection.store.find(str(path))
    assert mended is not None
    assert mended.damage == ""


def test_bytes_missing_in_the_middle_of_a_webm_are_recorded_as_damage(collection: Collection) -> None:
    """The demuxer skips the rest of the cluster, here all of the video, without an error."""
    path = encode(collection.folder / "d.webm", pan("coffee", 40, width=96, height=64), codec="libvpx")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + content[len(content) // 2 + 20 :])
    collection.add()
    record = collection.store.find(str(path))
    assert record is not None
    assert record.status == "ok"
    assert record.damage == f"the file is cut off: it has {record.duration:.1f} s of 4.0 s"


def test_file_that_changes_while_being_read_is_read_again(
    collection: Collection,
) -> None:
    """The content changes between hashing and reading; another file has the original content."""
    changing = collection.folder / "a.mp4"
    shutil.copy(changing, collection.folder / "z.mp4")

    class Replacing(Counting):
        def run(self, paths: Iterable[str]) -> Iterator[Event]:
            for event in super().run(paths):
                if getattr(event, "path", "").endswith("a.mp4") and changing.stat().st_size != other.stat().st_size:
                    shutil.copy(other, changing)
                yield event

    other = video(collection.folder.parent / "other.mp4", seed=7, frames=20)
    report = collection.add(executor=Replacing())
    assert [(os.path.basename(o.path), o.cause) for o in report.broken] == [
        ("a.mp4", "the file changed while it was being read; index it again")
    ]
    twin = collection.store.find(str(collection.folder / "z.mp4"))
    assert twin is not None
    assert twin.duration == 2.0
    report = collection.add()
    assert (short(report.added), report.broken) == (["a.mp4"], ())
    record = collection.store.find(str(changing))
    assert record is not None
    assert record.duration == 4.0


def test_second_run_reads_nothing(collection: Collection) -> None:
    report = collection.add()
    assert short(report.added) == collection.read == ["a.mp4", "b.mp4", "c.mp4"]
    assert str(report) == "3 added, 0 unchanged, 0 moved, 0 broken, 0 removed"
    assert report.seconds_of_video == pytest.approx(3 * 2.0)
    (record, *_) = collection.store.videos()
    assert (record.duration, record.width, record.height, record.codec) == (2.0, 96, 64, "h264")
    # Two seconds at the highest sampling rate of 2 fps; the file has 5 fps.
    assert (record.frames, record.sampling_rate, record.frame_rate) == (4, 2.0, 5.0)
    features = collection.store.read(record.id)
    assert features.values.shape == (4, 1, 4, 16)
    assert features.values.dtype == np.float16
    assert features.timestamps.tolist() == pytest.approx([0, 0.4, 1.0, 1.4])
    again = collection.add()
    assert short(again.unchanged) == ["a.mp4", "b.mp4", "c.mp4"]
    assert collection.read == []
    assert again.seconds_of_video == 0
    assert (again.total, again.usable) == (3, 3)


def test_baseline_is_stored_with_the_features(collection: Collection) -> None:
    collection.add(calibrate=lambda f: replace(f, baseline=np.abs(f.values.astype(np.float32)).max(axis=(2, 3))))
    features = collection.store.read(collection.store.videos()[0].id)
    assert np.array_equal(features.baselines, np.abs(features.values.astype(np.float32)).max(axis=(2, 3)))


def test_windows_of_added_videos_can_be_searched(collection: Collection) -> None:
    collection.add()
    for record in collection.store.videos():
        windows = collection.store.read_windows(record.id)
        neighbors = collection.store.nearest(windows.astype(np.float32), 1)
        assert record.windows == len(windows) > 0
        assert set(neighbors.video_ids[:, 0].tolist()) == {record.id}
        assert neighbors.scores[:, 0].min() > 0.998


def test_broken_files_are_reported_and_retried_only_when_useful(collection: Collection) -> None:
    bad = collection.folder / "bad.mp4"
    bad.write_text("no video at all")
    (collection.folder / "empty.mp4").write_bytes(b"")
    (collection.folder / "dead.mp4").symlink_to("nowhere.mp4")
    report = collection.add()
    assert len(report.added) == 3
    causes = {os.path.basename(outcome.path): outcome.cause for outcome in report.broken}
    assert set(causes) == {"bad.mp4", "empty.mp4", "dead.mp4"}
    assert "text" in causes["bad.mp4"]
    assert "empty" in causes["empty.mp4"]
    assert causes["dead.mp4"] == "there is no such file or folder"
    again = collection.add()
    assert collection.read == []
    assert {os.path.basename(o.path): o.cause for o in again.broken} == causes
    collection.add(retry_broken=True)
    assert sorted(collection.read) == ["bad.mp4", "empty.mp4"]
    video(bad, seed=4)
    mended = collection.add()
    assert collection.read == ["bad.mp4"]
    assert [(o.kind, os.path.basename(o.path)) for o in mended.added] == [("changed", "bad.mp4")]
    assert collection.store.count() == 5


def test_touched_file_is_not_read_again(collection: Collection) -> None:
    collection.add()
    path = collection.folder / "a.mp4"
    os.utime(path, ns=(10**18, 10**18))
    before = collection.store.find(str(path))
    report = collection.add()
    assert collection.read == []
    assert short(report.unchanged) == ["a.mp4", "b.mp4", "c.mp4"]
    after = collection.store.find(str(path))
    assert before is not None
    assert after is not None
    assert (after.id, after.mtime_ns) == (before.id, 10**18)


def test_changed_file_is_read_again(collection: Collection) -> None:
    collection.add()
    path = collection.folder / "b.mp4"
    old = collection.store.find(str(path))
    video(path, seed=5, frames=20)
    report = collection.add()
    assert collection.read == short(report.added) == ["b.mp4"]
    new = collection.store.find(str(path))
    assert old is not None
    assert new is not None
    assert new.id != old.id
    assert new.duration == 4.0
    assert collection.names() == ["a.mp4", "b.mp4", "c.mp4"]


def test_moved_and_renamed_files_are_recognized(collection: Collection) -> None:
    collection.add()
    before = {record.content_hash: record.id for record in collection.store.videos()}
    (collection.folder / "sub").mkdir()
    os.rename(collection.folder / "a.mp4", collection.folder / "sub" / "new name.mp4")
    report = collection.add()
    assert collection.read == []
    assert [(os.path.basename(o.path), os.path.basename(o.cause)) for o in report.moved] == [("new name.mp4", "a.mp4")]
    assert collection.names() == ["b.mp4", "c.mp4", "sub/new name.mp4"]
    assert {record.content_hash: record.id for record in collection.store.videos()} == before


def test_files_that_swapped_names_are_recognized(collection: Collection) -> None:
    collection.add()
    hashes = {name: _hash(collection, name) for name in ("a.mp4", "b.mp4")}
    os.rename(collection.folder / "a.mp4", collection.folder / "x")
    os.rename(collection.folder / "b.mp4", collection.folder / "a.mp4")
    os.rename(collection.folder / "x", collection.folder / "b.mp4")
    report = collection.add()
    assert collection.read == []
    assert short(report.added) == ["a.mp4", "b.mp4"]
    assert _hash(collection, "a.mp4") == hashes["b.mp4"]
    assert _hash(collection, "b.mp4") == hashes["a.mp4"]
    assert collection.names() == ["a.mp4", "b.mp4", "c.mp4"]


def test_identical_files_have_two_records_but_are_read_once(collection: Collection) -> None:
    shutil.copy(collection.folder / "a.mp4", collection.folder / "a twin.mp4")
    report = collection.add()
    assert collection.read == ["a twin.mp4", "b.mp4", "c.mp4"]
    assert len(report.added) == 4
    assert report.added[1].cause == f"same content as {collection.folder / 'a twin.mp4'}"
    shutil.copy(collection.folder / "a.mp4", collection.folder / "later.mp4")
    collection.add()
    assert collection.read == []
    ids = [r.id for r in collection.store.videos() if r.content_hash == _hash(collection, "a.mp4")]
    assert len(ids) == 3
    first, *others = collection.store.read_many(ids)
    assert all(np.array_equal(first.values, other.values) for other in others)
    # Each record is independent.
    collection.store.remove(ids[:1])
    assert len(collection.store.read(ids[1])) == 4


def test_duplicate_of_a_file_that_changes_during_the_run_is_read(collection: Collection) -> None:
    collection.add()
    wanted = _hash(collection, "a.mp4")
    shutil.copy(collection.folder / "a.mp4", collection.folder / "z.mp4")
    video(collection.folder / "a.mp4", seed=4)
    report = collection.add()
    assert collection.read == ["a.mp4", "z.mp4"]
    assert short(report.added) == ["a.mp4", "z.mp4"]
    assert _hash(collection, "z.mp4") == wanted
    assert _hash(collection, "a.mp4") != wanted


def test_identical_broken_files_are_both_broken(collection: Collection) -> None:
    for name in ("x.mp4", "y.mp4"):
        (collection.folder / name).write_text("the same nonsense")
    report = collection.add()
    assert collection.read == ["a.mp4", "b.mp4", "c.mp4", "x.mp4"]
    assert len({outcome.cause for outcome in report.broken}) == 1
    assert short(report.broken) == ["x.mp4", "y.mp4"]


def test_moved_file_and_its_copy_are_both_recognized(collection: Collection) -> None:
    collection.add()
    os.rename(collection.folder / "a.mp4", collection.folder / "n1.mp4")
    shutil.copy(collection.folder / "n1.mp4", collection.folder / "n2.mp4")
    report = collection.add()
    assert collection.read == []
    assert short(report.moved) == ["n1.mp4"]
    assert short(report.added) == ["n2.mp4"]
    assert collection.names() == ["b.mp4", "c.mp4", "n1.mp4", "n2.mp4"]


def test_missing_files_are_removed_only_on_request(collection: Collection, tmp_path: Path) -> None:
    other = video(tmp_path / "elsewhere" / "d.mp4", seed=3)
    ingest(collection.store, scan([other]), Counting())
    collection.add()
    (collection.folder / "a.mp4").unlink()
    other.unlink()
    assert collection.add().removed == ()
    report = collection.add(prune=True)
    assert short(report.removed) == ["a.mp4"]
    # Only below the scanned folders, or files given by name.
    assert len(collection.names()) == 3
    named = ingest(collection.store, scan([other]), Counting(), prune=True)
    assert short(named.removed) == ["d.mp4"]
    assert named.broken == ()
    assert collection.names() == ["b.mp4", "c.mp4"]


def test_files_excluded_later_are_reported_and_pruned_on_request(collection: Collection) -> None:
    collection.add()
    rules = FolderRules(exclude=("b*",))
    given = scan([collection.folder], rules)
    report = ingest(collection.store, given, Counting(), rules=rules)
    assert (short(report.excluded), short(report.removed)) == (["b.mp4"], [])
    assert len(collection.names()) == 3
    report = ingest(collection.store, given, Counting(), rules=rules, prune=True)
    assert (short(report.excluded), short(report.removed)) == ([], ["b.mp4"])
    assert collection.names() == ["a.mp4", "c.mp4"]


def test_missing_folder_prunes_nothing(collection: Collection) -> None:
    collection.add()
    os.rename(collection.folder, collection.folder.with_name("unmounted"))
    report = collection.add(prune=True)
    assert report.removed == ()
    assert short(report.broken) == ["videos"]
    assert collection.store.count() == 3


def test_progress_is_consistent(collection: Collection) -> None:
    (collection.folder / "bad.mp4").write_text("no video at all")
    seen: list[Progress] = []
    collection.add(on_progress=seen.append)
    settled = [progress for progress in seen if progress.outcome is not None]
    assert [progress.done for progress in settled] == [1, 2, 3, 4]
    assert {progress.total for progress in seen} == {4}
    last = seen[-1]
    assert (last.frames, last.done) == (12, 4)
    assert last.bytes == sum(path.stat().st_size for path in collection.folder.iterdir())
    assert all(
        progress.outcome.path == progress.path and progress.outcome.kind in ("added", "broken")
        for progress in settled
        if progress.outcome is not None
    )


def test_ctrl_c_keeps_complete_videos(collection: Collection) -> None:
    with pytest.raises(IngestInterrupted, match="interrupted: 2 added") as caught:
        collection.add(executor=Counting(interrupt_after=2))
    assert short(caught.value.report.added) == ["a.mp4", "b.mp4"]
    assert collection.names() == ["a.mp4", "b.mp4"]
    collection.add()
    assert collection.read == ["c.mp4"]


def test_unexpected_exception_affects_one_file_and_logs_its_traceback(collection: Collection, tmp_path: Path) -> None:
    bad = color_video(collection.folder / "A bug.mp4", "bug")
    log = tmp_path / "errors.log"
    report = collection.add(executor=SerialExecutor(FATAL), errors_file=log)
    assert short(report.added) == ["a.mp4", "b.mp4", "c.mp4"]
    cause = f"internal error: ZeroDivisionError: a bug in an extractor; traceback in {log}"
    assert [(outcome.path, outcome.cause) for outcome in report.broken] == [(str(bad), cause)]
    text = log.read_text()
    assert "A bug.mp4" in text
    assert "Traceback (most recent call last)" in text
    assert 'raise ZeroDivisionError("a bug in an extractor")' in text
    # The extractor may be fixed by then, so the next call reads the file again.
    again = collection.add(errors_file=log)
    assert collection.read == ["A bug.mp4"]
    assert (short(again.added), again.broken) == (["A bug.mp4"], ())


def test_bug_after_extraction_affects_one_file(collection: Collection, caplog: pytest.LogCaptureFixture) -> None:
    def calibrate(features: FrameFeatures) -> FrameFeatures:
        if len(features) != 4:
            raise ZeroDivisionError
        return features

    video(collection.folder / "d.mp4", frames=60)
    report = collection.add(calibrate=calibrate)
    assert (short(report.added), short(report.broken)) == (["a.mp4", "b.mp4", "c.mp4"], ["d.mp4"])
    assert report.broken[0].cause == "internal error: ZeroDivisionError"
    assert "raise ZeroDivisionError" in caplog.text


def test_tracebacks_are_not_written_through_a_symbolic_link(collection: Collection, tmp_path: Path) -> None:
    color_video(collection.folder / "bug.mp4", "bug")
    other = tmp_path / "precious"
    other.write_text("mine")
    (tmp_path / "errors.log").symlink_to(other)
    report = collection.add(executor=SerialExecutor(FATAL), errors_file=tmp_path / "errors.log")
    assert report.broken[0].cause == "internal error: ZeroDivisionError: a bug in an extractor"
    assert other.read_text() == "mine"


@pytest.mark.kill
def test_file_of_a_killed_worker_is_read_by_the_next_run(collection: Collection, tmp_path: Path) -> None:
    color_video(collection.folder / "z.mp4", "killed")
    report = collection.add(executor=ProcessExecutor(FATAL, workers=1))
    assert short(report.broken) == ["z.mp4"]
    assert "SIGKILL" in report.broken[0].cause
    report = collection.add()
    assert collection.read == ["z.mp4"]
    assert (short(report.added), report.broken) == (["z.mp4"], ())
    fresh = Collection(collection.folder, MemoryStore())
    fresh.add()
    for one, other in zip(collection.store.videos(), fresh.store.videos(), strict=True):
        assert replace(one, id=0, added_at=0) == replace(other, id=0, added_at=0)
        assert np.array_equal(collection.store.read(one.id).values, fresh.store.read(other.id).values)


@pytest.mark.kill
def test_file_that_crashes_its_decoder_is_recorded_as_broken(collection: Collection) -> None:
    color_video(collection.folder / "z.mp4", "segfault")
    report = collection.add(executor=ProcessExecutor(FATAL, workers=1))
    assert report.broken[0].cause == "decoder process was killed by signal SIGSEGV"
    again = collection.add()
    assert collection.read == []
    assert again.broken[0].cause == report.broken[0].cause


def test_deleting_the_index_during_a_run_stops_it_with_the_cause(originals: Path, tmp_path: Path) -> None:
    shutil.copytree(originals, tmp_path / "videos")
    collection = Collection(tmp_path / "videos", DiskStore(open_place(tmp_path / "store")))
    collection.add()

    class Deleting(Counting):
        def run(self, paths: Iterable[str]) -> Iterator[Event]:
            for event in super().run(paths):
                yield event
                shutil.rmtree(tmp_path / "store", ignore_errors=True)

    video(tmp_path / "videos" / "d.mp4", seed=4)
    cause = rf"{tmp_path / 'store'} was deleted while it was being written to; run the same command again"
    with pytest.raises(CollectionError, match=cause):
        collection.add(executor=Deleting())
    assert not (tmp_path / "store").exists()


def test_vanished_or_unreadable_file_is_broken(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned = scan([collection.folder])
    (collection.folder / "b.mp4").unlink()
    report = ingest(collection.store, scanned, Counting())
    assert short(report.added) == ["a.mp4", "c.mp4"]
    assert [(os.path.basename(o.path), o.cause) for o in report.broken] == [
        ("b.mp4", "cannot be read: no such file or directory")
    ]
    assert collection.names() == ["a.mp4", "c.mp4"]


@pytest.mark.parametrize("kind", ["nothing", "folder", "pipe"])
@pytest.mark.parametrize("is_back_at_once", [True, False])
def test_temporarily_missing_drive_breaks_no_file(collection: Collection, kind: str, is_back_at_once: bool) -> None:
    """When opened, each file is missing or replaced by something else; afterward it is back, unchanged."""

    def run(self: Counting, paths: Iterable[str]) -> Iterator[Event]:
        for path in paths:
            os.rename(path, f"{path}.away")
            if kind == "folder":
                os.mkdir(path)
            elif kind == "pipe":
                os.mkfifo(path)
            events = list(SerialExecutor.run(self, [path]))
            if is_back_at_once:
                put_back(path)
            yield from events
            if not is_back_at_once:
                put_back(path)

    def put_back(path: str) -> None:
        if kind == "folder":
            os.rmdir(path)
        os.replace(f"{path}.away", path)

    executor = type("Gone", (Counting,), {"run": run})()
    assert len(collection.add(executor=executor).broken) == 3
    report = collection.add()
    assert (short(report.added), report.broken) == (["a.mp4", "b.mp4", "c.mp4"], ())


def test_hashing_does_not_run_far_ahead_of_reading(collection: Collection) -> None:
    """The first video is processed before the last file is probed."""
    looked: list[str] = []

    class Watching(Plan):
        def _step(self, file: object) -> object:  # type: ignore[override]
            looked.append(os.path.basename(file.path))  # type: ignore[attr-defined]
            return super()._step(file)  # type: ignore[arg-type]

    steps = Watching([]).steps(scan([collection.folder]).files)
    next(steps)
    assert looked == ["a.mp4"]


def test_unusual_names_are_indexed(collection: Collection) -> None:
    names = ["mit Leerzeichen.mp4", "映画.mp4", "new\nline.mp4", os.fsdecode(b"\xff\xfe.mp4")]
    for seed, name in enumerate(names):
        video(collection.folder / "tmp.mp4", seed=10 + seed)
        os.rename(collection.folder / "tmp.mp4", collection.folder / name)
    assert len(collection.add().added) == 7
    assert set(names) < set(collection.names())
    assert len(collection.add().unchanged) == 7


def _hash(collection: Collection, name: str) -> str:
    record = collection.store.find(str(collection.folder / name))
    assert record is not None
    return record.content_hash

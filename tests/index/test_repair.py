"""An index with missing or damaged parts reports them, never returns incomplete results, and can be repaired."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save, save_file

from tests.index.storage.test_stores import entry, unit
from tests.support.videos import encode, pan
from vidkin.errors import (
    CollectionDamagedError,
    CollectionError,
    CollectionLockedError,
    CollectionNotFoundError,
)
from vidkin.index import DiskStore, Index, Match, SerialExecutor, VideoRecord, open_place, repair
from vidkin.similarity import FrameFeatures

NAMES = ("coffee", "chelsea", "rocket")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repair")
    (root / "videos").mkdir()
    for name in NAMES:
        encode(root / "videos" / f"{name}.mp4", pan(name, 40))
    encode(root / "videos" / "coffee small.mp4", pan("coffee", 40, width=96, height=64))
    with Index.open(root / "c.vidkin", create=True) as index:
        index.add(root / "videos", executor=SerialExecutor(index.worker_spec))
    return root


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the index to be damaged."""
    shutil.copytree(made / "c.vidkin", tmp_path / "c.vidkin")
    return tmp_path / "c.vidkin"


def found(folder: Path, made: Path) -> list[Match]:
    with Index.open(folder, read_only=True) as index:
        return [match for match in index.search(made / "videos" / "coffee.mp4") if match.score >= 0.5]


def add(folder: Path, made: Path) -> Index:
    index = Index.open(folder)
    index.add(made / "videos", executor=SerialExecutor(index.worker_spec))
    return index


def features_of(folder: Path, stem: str) -> Path:
    with Index.open(folder, read_only=True) as index:
        (number,) = [record.id for record in index.videos() if Path(record.path).stem == stem]
    return folder / "features" / "000000" / f"{number:09d}.safetensors"


def as_first(records: list[VideoRecord]) -> list[VideoRecord]:
    """Clear the id and the time at which a video was added."""
    return [replace(record, id=0, added_at=0.0) for record in records]


def test_intact_index_needs_no_repair(folder: Path, made: Path) -> None:
    assert [Path(match.path).stem for match in found(folder, made)] == ["coffee", "coffee small"]
    assert repair(open_place(folder)) == ()


def test_missing_windows_are_reported_and_rebuilt_from_features(folder: Path, made: Path) -> None:
    before = found(folder, made)
    with Index.open(folder, read_only=True) as index:
        windows = [index.store.read_windows(record.id) for record in index.videos()]
    (folder / "windows-1.vectors").unlink()
    with pytest.raises(
        CollectionDamagedError,
        match=r"windows-1\.vectors is damaged: it has only 0 of \d+ windows; run",
    ):
        found(folder, made)
    with Index.open(folder, read_only=True) as index:
        assert len(index.store.missing()) == 4
        with pytest.raises(CollectionDamagedError):
            index.store.read_windows(index.videos()[0].id)
    with Index.open(folder) as index:
        report = index.add([], executor=SerialExecutor(index.worker_spec))  # rebuilt without reading the files
        assert report.added == ()
        assert index.store.missing() == {}
        again = [index.store.read_windows(record.id) for record in index.videos()]
    assert all(np.array_equal(one, other) for one, other in zip(windows, again, strict=True))
    assert found(folder, made) == before


@pytest.mark.parametrize(
    "how", ["gone", *(pytest.param(how, marks=pytest.mark.thorough) for how in ("empty", "cut", "zeros"))]
)
def test_files_with_lost_features_are_read_again(folder: Path, made: Path, how: str) -> None:
    before = found(folder, made)
    with Index.open(folder, read_only=True) as index:
        records = index.videos()
    path = features_of(folder, "coffee small")
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "cut": content[:-1000], "zeros": bytes(len(content))}[how])
    with pytest.raises(CollectionDamagedError, match=rf"{path.name} is (damaged|missing).*doctor --repair"):
        found(folder, made)
    if how in ("cut", "zeros"):  # the damage cannot be detected by file size
        (part,) = repair(open_place(folder))
        assert Path(part.part).stem == "coffee small"
        assert path.name in part.cause
        with Index.open(folder, read_only=True) as index:
            (stale,) = [record for record in index.videos() if record.needs_reindex]
            assert stale.cause == "its features are missing in the index; index the file again"
        assert [Path(match.path).stem for match in found(folder, made)] == ["coffee"]
    with Index.open(folder) as index:
        report = index.add(made / "videos", executor=SerialExecutor(index.worker_spec))
        assert [Path(outcome.path).stem for outcome in report.added] == ["coffee small"]
        assert as_first(index.videos()) == as_first(records)
    assert [(m.path, m.score, m.segments) for m in found(folder, made)] == [
        (m.path, m.score, m.segments) for m in before
    ]


def test_features_with_corrupted_values_are_removed(folder: Path) -> None:
    path = features_of(folder, "rocket")
    content = path.read_bytes()
    tensors = load(content)
    header = content[:12] + bytes([content[12] ^ 4]) + content[13:]
    middle = len(content) // 2
    sector = content[:middle] + b"\xff" * 64 + content[middle + 64 :]
    times = save({**tensors, "timestamps": tensors["timestamps"][::-1].copy()})
    for damaged, cause in (
        (header, "its header is corrupted"),
        (times, "its times or weights are corrupted"),
        (sector, "the stored values are corrupted"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(CollectionDamagedError, match=cause), Index.open(folder) as index:
            index.store.read(int(path.stem))
    (part,) = repair(open_place(folder))
    assert Path(part.part).stem == "rocket"
    assert "the stored values are corrupted" in part.cause
    chelsea = features_of(folder, "chelsea")
    save_file({**tensors, "part_views": np.append(tensors["part_views"], np.int32(4))}, chelsea)
    (part,) = repair(open_place(folder))
    assert "its parts are corrupted" in part.cause
    whole = ("values", "timestamps", "information", "baseline")
    save_file({name: tensors[name][:-1] for name in whole}, features_of(folder, "coffee"))
    (part,) = repair(open_place(folder))
    assert "it has features for 7 frames instead of 8" in part.cause


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["cut", "flipped", "zeros"])
def test_damaged_windows_are_reported_and_rebuilt(folder: Path, made: Path, how: str) -> None:
    before = found(folder, made)
    damage(folder / "windows-1.vectors", how)
    with Index.open(folder) as index:
        ids = [record.id for record in index.videos()]
        with pytest.raises(CollectionDamagedError, match=r"windows-1\.vectors is damaged.*doctor --repair"):
            index.store.read_windows_many(ids)
    (part,) = repair(open_place(folder))
    assert part.part == str(folder / "windows-1.vectors")
    assert found(folder, made) == before
    assert repair(open_place(folder)) == ()


def damage(path: Path, how: str) -> None:
    """Truncate a file, flip a bit in its middle, or fill it with zeros."""
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    path.write_bytes({"cut": content[: middle + 1], "flipped": flipped, "zeros": bytes(len(content))}[how])


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["cut", "zeros"])
def test_damaged_video_table_is_reported_and_left_unchanged(folder: Path, made: Path, how: str) -> None:
    path = folder / "videos.sqlite"
    damage(path, how)
    damaged = path.read_bytes()
    for call in (lambda: found(folder, made), lambda: add(folder, made), lambda: repair(open_place(folder))):
        with pytest.raises(CollectionDamagedError, match=r"videos\.sqlite is damaged .*restore it from a backup"):
            call()
    assert path.read_bytes() == damaged
    # Following only half of the advice in the message is refused before anything is deleted; all of it works.
    path.unlink()
    for call in (lambda: found(folder, made), lambda: add(folder, made), lambda: repair(open_place(folder))):
        with pytest.raises(CollectionDamagedError, match=r"videos\.sqlite is missing; restore it from a backup"):
            call()
    assert len(list((folder / "features").rglob("*.safetensors"))) == 4
    for windows in folder.glob("windows-*"):
        windows.unlink()
    shutil.rmtree(folder / "features")
    add(folder, made).close()
    assert [Path(match.path).stem for match in found(folder, made)] == ["coffee", "coffee small"]


@pytest.mark.thorough
def test_flipped_bits_in_the_video_table_never_change_results_silently(folder: Path) -> None:
    path = folder / "videos.sqlite"
    content = path.read_bytes()
    with Index.open(folder, read_only=True) as index:
        expected = index.videos()
    generator, reported = np.random.default_rng(5), 0
    for at in generator.choice(len(content), 300, replace=False).tolist():
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :])
        try:
            with Index.open(folder, read_only=True) as index:
                assert index.videos() == expected, at
        except CollectionError:
            reported += 1
    assert reported >= 20


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER more AFTER INSERT ON videos BEGIN DELETE FROM videos; END",
        "CREATE VIEW all_videos AS SELECT * FROM videos",
        "UPDATE videos SET size = 7",
        "UPDATE videos SET cause = X'00'",
        "DELETE FROM videos WHERE id = 2",
        "UPDATE state SET rows = -5",
        "DELETE FROM state",
        "DROP TABLE state",
    ],
)
def test_video_table_modified_by_another_program_is_refused(folder: Path, change: str) -> None:
    connection = sqlite3.connect(folder / "videos.sqlite")
    with connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(CollectionDamagedError, match=r"videos\.sqlite is damaged \(.*(corrupted|its schema is wrong)"):
        Index.open(folder, read_only=True)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes and links of this kind")
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
@pytest.mark.parametrize("name", ["videos.sqlite", "windows-1.vectors"])
def test_index_parts_that_are_not_regular_files_are_not_opened(folder: Path, made: Path, name: str, kind: str) -> None:
    path = folder / name
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/etc/passwd")
        case _:
            path.mkdir()
    with pytest.raises(CollectionDamagedError, match="is damaged"):
        found(folder, made)


def test_damaged_background_is_rebuilt(folder: Path, made: Path) -> None:
    background = (folder / "background.safetensors").read_bytes()
    (folder / "background.safetensors").write_bytes(b"")
    with pytest.raises(CollectionDamagedError, match=r"\.safetensors is damaged"):
        found(folder, made)
    assert [Path(part.part).name for part in repair(open_place(folder))] == ["background.safetensors"]
    assert found(folder, made)
    assert (folder / "background.safetensors").read_bytes() == background


@pytest.mark.thorough
def test_videos_with_lost_features_are_kept_while_other_folders_are_indexed(
    folder: Path, made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = made / "videos" / "coffee.mp4", made / "videos" / "coffee small.mp4"
    features_of(folder, "coffee small").unlink()
    features_of(folder, "rocket").unlink()
    with Index.open(folder) as index:
        index.add([], executor=SerialExecutor(index.worker_spec))
        caplog.clear()
        assert [Path(match.path).stem for match in index.search(first, threshold=0.5)] == ["coffee"]
        assert "2 videos are left out until they are indexed again" in caplog.text
        assert len(index.store.missing()) == 2
        index.reject(first, second)  # possible because the content hash is known
    moved = tmp_path / "moved.mp4"
    shutil.copy(made / "videos" / "rocket.mp4", moved)
    with Index.open(folder) as index:
        report = index.add([moved, made / "videos"], executor=SerialExecutor(index.worker_spec))
        assert {Path(outcome.path).stem for outcome in report.added} == {"moved", "rocket", "coffee small"}
        assert index.store.missing() == {}
        (group,) = index.duplicates()  # without the rejected pair
        assert {member.path for member in group.members} == {
            str(path) for path in (moved, made / "videos" / "rocket.mp4")
        }


def test_search_restarts_if_a_candidate_is_removed(folder: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates another process that removes a candidate and its features between the two stages."""
    index = Index.open(folder, read_only=True)
    read, times = index.store.read_many, []

    def removed_meanwhile(ids: list[int]) -> list[FrameFeatures]:
        if not times:
            times.append(1)
            with Index.open(folder) as writer:
                writer.remove(made / "videos" / "coffee small.mp4")
                writer.store.recover()
        return read(ids)

    monkeypatch.setattr(index.store, "read_many", removed_meanwhile)
    matches = index.search(made / "videos" / "coffee.mp4", threshold=0.5)
    assert [Path(match.path).stem for match in matches] == ["coffee"]
    times.clear()
    with Index.open(folder) as writer:
        writer.add(made / "videos", executor=SerialExecutor(writer.worker_spec))
    assert index.duplicates() == []
    index.close()


def test_repair_needs_an_index_and_the_writer_lock(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CollectionNotFoundError):
        repair(open_place(tmp_path / "nothing"))
    with open_place(folder).exclusive(), pytest.raises(CollectionLockedError):
        repair(open_place(folder))


def test_reader_opened_between_two_writes_of_a_commit_is_consistent(tmp_path: Path) -> None:
    """Records become visible only together with their windows, which are written first."""
    writer = DiskStore(open_place(tmp_path / "s"))
    writer.append_many([entry("/a.mp4", seed=1)])
    reader = DiskStore(open_place(tmp_path / "s"))
    for step in range(5):
        writer.append_many([entry(f"/{step}.mp4", seed=step)])
        writer.remove([writer.videos()[0].id])
        # The old snapshot keeps working whatever the writer does, and so does a refreshed one.
        assert reader.nearest(unit([1.0, 0, 0, 0]), 1).scores[0, 0] == pytest.approx(1.0, abs=1e-3)
        reader.refresh()
        assert reader.count() == writer.count()
        assert reader.nearest(unit([1.0, 0, 0, 0]), 1).scores[0, 0] == pytest.approx(1.0, abs=1e-3)

"""Which step each file needs, given the files on disk and their records."""

from __future__ import annotations

import os
from pathlib import Path

from vidkin.index import VideoFile, VideoRecord
from vidkin.index.ingest.session import Copy, Extract, Fail, Keep, Move, Plan, content_hash


def file_of(path: Path) -> VideoFile:
    status = path.stat()
    return VideoFile(str(path), status.st_size, status.st_mtime_ns)


def record_of(path: Path, number: int, **facts: object) -> VideoRecord:
    file = file_of(path)
    digest = content_hash(file.path, file.size).text
    given = {"path": file.path, "size": file.size, "mtime_ns": file.mtime_ns, "content_hash": digest}
    return VideoRecord(**{**given, "id": number, **facts})  # type: ignore[arg-type]


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_unchanged_file_is_not_opened(tmp_path: Path) -> None:
    path = write(tmp_path, "a.mp4", b"film")
    record, file = record_of(path, 1), file_of(path)
    path.write_bytes(b"FILM")
    os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
    assert list(Plan([record]).steps([file])) == [Keep(file, record, touched=False)]


def test_touched_file_keeps_its_features(tmp_path: Path) -> None:
    path = write(tmp_path, "a.mp4", b"film")
    record = record_of(path, 1)
    os.utime(path, ns=(5, 5))
    (step,) = Plan([record]).steps([file_of(path)])
    assert isinstance(step, Keep)
    assert step.touched
    assert (step.record.id, step.record.mtime_ns, record.mtime_ns == 5) == (1, 5, False)


def test_new_and_changed_files_are_read(tmp_path: Path) -> None:
    old, new = write(tmp_path, "old.mp4", b"film"), write(tmp_path, "new.mp4", b"another")
    record = record_of(old, 1)
    write(tmp_path, "old.mp4", b"longer film")
    changed, added = Plan([record]).steps([file_of(old), file_of(new)])
    assert isinstance(changed, Extract)
    assert isinstance(added, Extract)
    assert (changed.known, added.known) == (True, False)
    assert added.hash == content_hash(str(new), 7).text


def test_renamed_file_is_moved_once_and_its_duplicate_copied(tmp_path: Path) -> None:
    old = write(tmp_path, "old.mp4", b"film")
    record = record_of(old, 1)
    new = old.rename(tmp_path / "new.mp4")
    twin = write(tmp_path, "twin.mp4", b"film")
    move, copy = Plan([record]).steps([file_of(new), file_of(twin)])
    assert isinstance(move, Move)
    assert (move.old_path, move.record.path, move.record.id) == (str(old), str(new), 1)
    # By then, the features belong to the file with the new name.
    assert copy == Copy(file_of(twin), record.content_hash, str(new), known=False)


def test_two_new_files_with_the_same_content_are_read_once(tmp_path: Path) -> None:
    files = [file_of(write(tmp_path, name, b"film")) for name in ("a.mp4", "b.mp4")]
    first, second = Plan([]).steps(files)
    assert isinstance(first, Extract)
    assert second == Copy(files[1], first.hash, files[0].path, known=False)


def test_stale_files_are_always_read_and_broken_ones_on_request(tmp_path: Path) -> None:
    path = write(tmp_path, "a.mp4", b"film")
    file = file_of(path)
    broken = record_of(path, 1, status="broken", cause="no video in it")
    assert list(Plan([broken]).steps([file])) == [Keep(file, broken, touched=False)]
    (again,) = Plan([broken], retry_broken=True).steps([file])
    assert isinstance(again, Extract)
    (lost,) = Plan([broken.as_stale("its features were lost")]).steps([file])
    assert isinstance(lost, Extract)


def test_vanished_file_fails_without_affecting_others(tmp_path: Path) -> None:
    path = write(tmp_path, "a.mp4", b"film")
    gone = VideoFile(str(tmp_path / "gone.mp4"), 4, 1)
    failed, read = Plan([]).steps([gone, file_of(path)])
    assert failed == Fail(gone, "cannot be read: no such file or directory")
    assert isinstance(read, Extract)

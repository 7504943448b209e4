"""File operations: none replaces an existing file by accident, and tests can observe each one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support.power import PowerCut
from vidkin._base import disk
from vidkin._base.files import is_unfinished, replace_file, write_text


@pytest.mark.parametrize("has_call", [True, False], ids=["the system's call", "without it"])
def test_rename_never_replaces_a_file_or_a_broken_link(
    tmp_path: Path, has_call: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_call:
        monkeypatch.setattr(disk, "_load_rename", lambda: None)
    source, target, broken = (tmp_path / name for name in ("é.txt", "b.txt", "c.txt"))
    source.write_text("source")
    target.write_text("target")
    broken.symlink_to("nothing")
    for taken in (target, broken):
        with pytest.raises(FileExistsError):
            disk.rename_new(str(source), str(taken))
    assert (source.read_text(), target.read_text()) == ("source", "target")
    disk.rename_new(str(source), str(tmp_path / "new.txt"))
    assert (tmp_path / "new.txt").read_text() == "source"
    with pytest.raises(FileNotFoundError):
        disk.rename_new(str(source), str(tmp_path / "other.txt"))


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_rename_without_hard_links_replaces_nothing(tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(disk, "_load_rename", lambda: None)
    monkeypatch.setattr(os, "link", refuse)
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("source")
    target.write_text("target")
    with pytest.raises(FileExistsError):
        disk.rename_new(str(source), str(target))
    disk.rename_new(str(source), str(tmp_path / "c.txt"))
    assert ((tmp_path / "c.txt").read_text(), target.read_text()) == ("source", "target")


def test_rename_without_the_system_call_moves_a_link_instead_of_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_load_rename", lambda: None)
    (tmp_path / "film").write_text("film")
    (tmp_path / "link").symlink_to("film")
    disk.rename_new(str(tmp_path / "link"), str(tmp_path / "new"))
    assert (tmp_path / "new").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["film", "new"]


def test_copy_never_overwrites_a_file(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"x" * (3 << 20))
    disk.copy_new(str(source), str(target))
    assert target.read_bytes() == source.read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    for taken in (target, tmp_path / "link"):
        with pytest.raises(FileExistsError):
            disk.copy_new(str(source), str(taken))
    assert not (tmp_path / "victim").exists()


def test_each_new_folder_is_synced_before_the_next_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watching = PowerCut()
    monkeypatch.setattr(disk, "before", watching)
    disk.make_folders(str(tmp_path / "a" / "b"))
    disk.make_folders(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    assert watching.operations == ["folder", "sync", "folder", "sync"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO])
def test_syncing_a_folder_fails_only_on_disk_errors(tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            disk.sync_folder(tmp_path)
    else:
        disk.sync_folder(tmp_path)


def test_atomic_write_reports_each_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watching = PowerCut()
    monkeypatch.setattr(disk, "before", watching)
    write_text(tmp_path / "a.txt", "x")
    assert watching.operations == ["create", "write", "sync", "rename", "sync"]


def test_names_of_unfinished_files_are_recognized(tmp_path: Path) -> None:
    for name in ("a.json", "a"):
        with replace_file(tmp_path / name) as temporary:
            assert is_unfinished(temporary.name)
    assert not any(map(is_unfinished, ("film.part.json", ".part.json", ".hidden", "a.json")))

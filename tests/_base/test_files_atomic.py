"""Files are written atomically."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vidkin._base.files import replace_file, write_bytes, write_text


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def stop_while_writing(path: Path) -> None:
    with replace_file(path) as temporary:
        temporary.write_text("new, in part")
        raise RuntimeError("stop")


def test_file_is_created_and_replaced(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "one\r\nünë\n")
    assert (tmp_path / "a.txt").read_bytes() == b"one\r\n\xc3\xbcn\xc3\xab\n"
    write_bytes(tmp_path / "a.txt", b"\x00\xff")
    assert (tmp_path / "a.txt").read_bytes() == b"\x00\xff"
    assert names(tmp_path) == ["a.txt"]


def test_failure_keeps_the_old_content_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for before in (None, "old"):
        if before is not None:
            path.write_text(before)
        with pytest.raises(RuntimeError, match="stop"):
            stop_while_writing(path)
        assert names(tmp_path) == ([] if before is None else ["a.txt"])
    assert path.read_text() == "old"


def test_temporary_file_is_hidden_empty_and_has_the_folder_and_suffix_of_the_target(tmp_path: Path) -> None:
    seen = set()
    for _ in range(2):
        with replace_file(tmp_path / "clip.mp4") as temporary:
            assert temporary.parent == tmp_path
            assert temporary.name.startswith(".")
            assert temporary.suffix == ".mp4"
            assert temporary.read_bytes() == b""
            seen.add(temporary.name)
    assert len(seen) == 2


def test_files_with_the_longest_allowed_names_can_be_written(tmp_path: Path) -> None:
    for name in ("x" * 251 + ".mp4", "a." + "y" * 253):
        write_text(tmp_path / name, "z")
        assert (tmp_path / name).read_text() == "z"


def test_permissions_follow_the_umask_regardless_of_the_writer(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    usual = (tmp_path / "usual").stat().st_mode
    with replace_file(tmp_path / "a") as temporary:
        # Some libraries write to a private temporary file and move it.
        temporary.unlink()
        os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
    assert (tmp_path / "a").stat().st_mode == usual


def test_symlink_at_the_temporary_name_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda count: "guessed")
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / ".guessed.part.txt").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "a.txt", "new")
    assert victim.read_text() == "untouched"
    assert not (tmp_path / "a.txt").exists()


def test_missing_folder_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_text(tmp_path / "none" / "a.txt", "")


def test_content_is_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, rename = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        steps.append("sync")
        sync(descriptor)

    def replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(self, target)

    monkeypatch.setattr("os.fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    write_text(tmp_path / "a.txt", "x")
    assert steps == ["sync", "rename", "sync"]

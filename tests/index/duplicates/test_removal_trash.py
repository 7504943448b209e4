"""Files found in a trash as the freedesktop.org specification describes it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from vidkin.index.duplicates.removal_moves import find_in_trash


@pytest.fixture
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("files", "info"):
        (tmp_path / "data" / "Trash" / name).mkdir(parents=True)
    return tmp_path / "data" / "Trash"


def put(trash: Path, name: str, source: str, deleted: str = "2024-05-01T12:00:00") -> Path:
    (trash / "files" / name).write_bytes(b"film")
    note = f"[Trash Info]\nPath={quote(source)}\nDeletionDate={deleted}\n"
    (trash / "info" / f"{name}.trashinfo").write_text(note, encoding="utf-8")
    return trash / "files" / name


def test_the_file_that_was_deleted_last_is_found(trash: Path) -> None:
    put(trash, "a.mp4", "/films/ä 50%.mp4", "2024-05-01T12:00:00")
    newest = put(trash, "a.2.mp4", "/films/ä 50%.mp4", "2024-05-03T09:00:00")
    put(trash, "a.3.mp4", "/films/ä 50%.mp4", "2024-05-02T23:00:00")
    put(trash, "b.mp4", "/films/b.mp4", "2024-05-04T12:00:00")
    assert find_in_trash("/films/ä 50%.mp4") == str(newest)


def test_a_note_without_its_file_or_sense_is_passed_over(trash: Path) -> None:
    put(trash, "a.mp4", "/films/a.mp4").unlink()
    (trash / "info" / "b.trashinfo").write_text("no section", encoding="utf-8")
    (trash / "info" / "c.trashinfo").write_text("[Trash Info]\n", encoding="utf-8")
    assert find_in_trash("/films/a.mp4") is None
    assert find_in_trash("/films/b.mp4") is None


def test_without_a_trash_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nowhere"))
    assert find_in_trash(str(tmp_path / "a.mp4")) is None


def test_a_file_is_found_by_any_name_of_its_folder(trash: Path, tmp_path: Path) -> None:
    """Its note names it without the links to folders through which it was reached."""
    (tmp_path / "films").mkdir()
    (tmp_path / "link").symlink_to("films")
    held = put(trash, "a.mp4", str(tmp_path / "films" / "a.mp4"))
    assert find_in_trash(str(tmp_path / "link" / "a.mp4")) == str(held)


def test_files_beside_the_trash_are_named_from_there(trash: Path, tmp_path: Path) -> None:
    held = put(trash, "a.mp4", "films/a.mp4")
    assert find_in_trash(str(tmp_path / "data" / "films" / "a.mp4")) == str(held)

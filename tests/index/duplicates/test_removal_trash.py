"""Files found in the trash of each system: the specification of freedesktop.org, Windows and macOS."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from vidkin.index.duplicates import removal_moves
from vidkin.index.duplicates.plans import DuplicatePlan, FileState, PlannedGroup
from vidkin.index.duplicates.removal import apply_plan
from vidkin.index.duplicates.removal_log import Journal
from vidkin.index.duplicates.removal_moves import find_in_trash, note_in_trash, put_in_trash
from vidkin.index.duplicates.removal_undo import undo


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


# Other systems: their trashes as those systems keep them, in a folder of the test.


class OtherTrash:
    """A trash of Windows or macOS, filled as the system fills it."""

    def __init__(self, system: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.system, self.number = system, 0
        monkeypatch.setattr(removal_moves, "_SYSTEM", system)
        monkeypatch.setattr(removal_moves, "_volume_of", lambda path: str(root))
        monkeypatch.setenv("HOME", str(root / "home"))
        monkeypatch.setattr("send2trash.send2trash", self.send)
        self.files = root / "home" / ".Trash" if system == "darwin" else root / "$Recycle.Bin" / "S-1-5-21-1001"
        self.files.mkdir(parents=True)
        # Somebody else's, which cannot be listed.
        (root / "$Recycle.Bin").mkdir(exist_ok=True)
        (root / "$Recycle.Bin" / "S-1-5-18").write_bytes(b"")

    def send(self, path: str) -> None:
        """What the system does with a file."""
        self.number += 1
        source = Path(path)
        if self.system == "darwin":
            there = self.files / source.name
            taken = there.exists()
            source.rename(there.with_name(f"{source.stem} 10.21.3{self.number}{source.suffix}") if taken else there)
            return
        name = f"ABCDE{self.number}{source.suffix}"
        size = source.stat().st_size.to_bytes(8, "little")
        time = (133_000_000_000_000_000 + self.number).to_bytes(8, "little")
        text = f"{source}\0".encode("utf-16-le")
        version, told = (
            (1, text.ljust(520, b"\0")) if self.number % 2 else (2, (len(text) // 2).to_bytes(4, "little") + text)
        )
        (self.files / f"$I{name}").write_bytes(version.to_bytes(8, "little") + size + time + told)
        source.rename(self.files / f"$R{name}")


@pytest.fixture(params=["win32", "darwin"])
def other(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OtherTrash:
    return OtherTrash(request.param, tmp_path, monkeypatch)


@pytest.fixture
def films(tmp_path: Path) -> Path:
    folder = tmp_path / "films \u00e4"
    folder.mkdir()
    (folder / "best.mp4").write_bytes(b"best")
    (folder / "spare.mp4").write_bytes(b"spare")
    return folder


def plan_of(folder: Path) -> DuplicatePlan:
    keep, spare = (FileState.of(str(folder / name), whole=True) for name in ("best.mp4", "spare.mp4"))
    return DuplicatePlan((PlannedGroup(keep, "larger", (spare,)),))


def test_the_trash_of_other_systems_gives_back_what_it_holds(other: OtherTrash, films: Path, tmp_path: Path) -> None:
    # A file of the same name was deleted before, and one that is alike after it.
    (films / "spare.mp4").write_bytes(b"older")
    other.send(str(films / "spare.mp4"))
    (films / "spare.mp4").write_bytes(b"spare")
    journal = Journal(tmp_path / "log")
    (action,) = apply_plan(plan_of(films), journal)
    assert (action.outcome, Path(action.place).read_bytes()) == ("removed", b"spare")
    assert Path(action.place).parent == other.files
    held = len(list(other.files.iterdir()))
    assert [back.outcome for back in undo(journal)] == ["restored"]
    assert (films / "spare.mp4").read_bytes() == b"spare"
    # Nothing of it is left, and the older file is.
    assert held - len(list(other.files.iterdir())) == (2 if other.system == "win32" else 1)
    assert b"older" in [path.read_bytes() for path in other.files.iterdir()]


def test_a_power_cut_before_the_log_knew_the_place_loses_nothing(
    other: OtherTrash, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    plan, journal = plan_of(films), Journal(log)
    monkeypatch.setattr("vidkin.index.duplicates.removal.put_in_trash", lambda path: other.send(path))
    apply_plan(plan, journal)
    log.write_text(log.read_text().splitlines(keepends=True)[0])  # begun, not done
    assert [back.outcome for back in undo(Journal(log))] == ["restored"]
    assert (films / "spare.mp4").read_bytes() == b"spare"


def test_a_trash_that_cannot_be_listed_leaves_the_file_to_the_person(
    other: OtherTrash, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "log")
    with monkeypatch.context() as denied:
        denied.setattr(removal_moves, "_entries", lambda folders: iter(()))
        (action,) = apply_plan(plan_of(films), journal)
        assert (action.outcome, action.place) == ("removed", "")
        denied.setattr("vidkin.index.duplicates.removal_undo.TRASH_IS_FOUND", False)
        (back,) = undo(journal)
        assert back.cause == "the trash does not tell where it is; open the trash, and restore the file there"
    assert [back.outcome for back in undo(journal)] == ["restored"]


def test_windows_deletes_nothing_of_another_machine_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    trash = OtherTrash("win32", tmp_path, monkeypatch)
    monkeypatch.setattr("send2trash.send2trash", sent.append)
    with pytest.raises(OSError, match="there is no trash on a drive of another machine; use --move-to FOLDER"):
        put_in_trash("//server/share/films/a.mp4")
    kernel = SimpleNamespace(GetDriveTypeW=lambda root: 4)
    monkeypatch.setattr(removal_moves.ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    with pytest.raises(OSError, match="another machine"):
        put_in_trash(str(tmp_path / "a.mp4"))
    assert (sent, list(trash.files.iterdir())) == ([], [])


def test_notes_of_the_recycle_bin_without_sense_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trash = OtherTrash("win32", tmp_path, monkeypatch)
    for name, content in (
        ("short", b"\2"),
        ("version", bytes([9]).ljust(40, b"\0")),
        ("cut", bytes([2]).ljust(29, b"\0")),
    ):
        (trash.files / f"$I{name}").write_bytes(content)
    assert find_in_trash(str(tmp_path / "a.mp4")) is None
    assert note_in_trash(str(tmp_path / "a.mp4")) is None

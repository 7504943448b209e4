"""The trash of Windows and macOS, simulated in a folder."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.plans import carry_out
from vidkin.files import DuplicatePlan, FileState, Journal, PlannedGroup, trash, undo_plan


class OtherTrash:
    """A trash folder with the layout of Windows or macOS."""

    def __init__(self, system: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.system, self.number = system, 0
        monkeypatch.setattr(trash, "_SYSTEM", system)
        monkeypatch.setattr(trash, "volume_of", lambda path: str(root))
        monkeypatch.setenv("HOME", str(root / "home"))
        monkeypatch.setattr("send2trash.send2trash", self.send)
        self.files = root / "home" / ".Trash" if system == "darwin" else root / "$Recycle.Bin" / "S-1-5-21-1001"
        self.files.mkdir(parents=True)
        # The trash of another user cannot be listed.
        (root / "$Recycle.Bin").mkdir(exist_ok=True)
        (root / "$Recycle.Bin" / "S-1-5-18").write_bytes(b"")

    def send(self, path: str) -> None:
        """Move a file to the trash as the system does."""
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
    keep, spare = (FileState.of(str(folder / name)) for name in ("best.mp4", "spare.mp4"))
    return DuplicatePlan((PlannedGroup(keep, "larger", (spare,)),))


def test_file_is_restored_from_the_trash_of_other_systems(other: OtherTrash, films: Path, tmp_path: Path) -> None:
    # An older file with the same name is already in the trash.
    (films / "spare.mp4").write_bytes(b"older")
    other.send(str(films / "spare.mp4"))
    (films / "spare.mp4").write_bytes(b"spare")
    journal = Journal(tmp_path / "log")
    (action,) = carry_out(plan_of(films), journal)
    assert (action.outcome, Path(action.place).read_bytes()) == ("removed", b"spare")
    assert Path(action.place).parent == other.files
    held = len(list(other.files.iterdir()))
    assert [back.outcome for back in undo_plan(journal)] == ["restored"]
    assert (films / "spare.mp4").read_bytes() == b"spare"
    # The restored file leaves nothing behind, and the older file is still there.
    assert held - len(list(other.files.iterdir())) == (2 if other.system == "win32" else 1)
    assert b"older" in [path.read_bytes() for path in other.files.iterdir()]


def test_later_deletion_of_the_same_path_does_not_mislead_undo(other: OtherTrash, films: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log")
    carry_out(plan_of(films), journal)
    (films / "spare.mp4").write_bytes(b"later")
    other.send(str(films / "spare.mp4"))
    assert [back.outcome for back in undo_plan(journal)] == ["restored"]
    assert (films / "spare.mp4").read_bytes() == b"spare"
    assert b"later" in [path.read_bytes() for path in other.files.iterdir()]


def test_power_failure_before_the_trash_path_was_logged_loses_nothing(
    other: OtherTrash, films: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    carry_out(plan_of(films), Journal(log))
    log.write_text(log.read_text().splitlines(keepends=True)[0])  # begun, not done
    assert [back.outcome for back in undo_plan(Journal(log))] == ["restored"]
    assert (films / "spare.mp4").read_bytes() == b"spare"


def test_user_must_restore_files_from_a_trash_that_cannot_be_listed(
    other: OtherTrash, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "log")
    with monkeypatch.context() as denied:
        denied.setattr(trash, "_entries", lambda path: iter(()))
        (action,) = carry_out(plan_of(films), journal)
        assert (action.outcome, action.place) == ("removed", "")
        (back,) = undo_plan(journal)
        assert back.cause == "the trash does not report where it is; open the trash, and restore the file there"
    assert [back.outcome for back in undo_plan(journal)] == ["restored"]


def test_files_on_network_drives_are_not_deleted_permanently_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    bin_ = OtherTrash("win32", tmp_path, monkeypatch)
    monkeypatch.setattr("send2trash.send2trash", sent.append)
    with pytest.raises(OSError, match="there is no trash on a network drive; use --move-to FOLDER"):
        trash.send("//server/share/films/a.mp4")
    kernel = SimpleNamespace(GetDriveTypeW=lambda root: 4)
    monkeypatch.setattr(trash.ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    with pytest.raises(OSError, match="network drive"):
        trash.send(str(tmp_path / "a.mp4"))
    assert (sent, list(bin_.files.iterdir())) == ([], [])

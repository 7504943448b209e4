"""The freedesktop.org trash: reserved names, info files, other disks, and restoring."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from tests.support.plans import carry_out, proven_group
from vidkin._base import disk
from vidkin.files import DuplicatePlan, Journal, undo_plan
from vidkin.files import trash as trash_module
from vidkin.index import DuplicateMember, plan_removal

pytestmark = pytest.mark.skipif(not trash_module.is_written_here(), reason="the system writes its trash itself")

SPARE = b"a copy" * 7


def plan_of(folder: Path, name: str = "00000.mp4", content: bytes = SPARE) -> DuplicatePlan:
    """Create a folder with a film and a copy, and a plan that removes the copy."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "best.mp4").write_bytes(b"the best" * 9)
    (folder / name).write_bytes(content)
    members = (
        DuplicateMember(str(folder / each), 0.9, 8, 8, 10.0, (folder / each).stat().st_size, each == "best.mp4")
        for each in ("best.mp4", name)
    )
    return plan_removal([proven_group(tuple(members))])


@pytest.fixture
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trash folder used only by this test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "Trash"


def contents(trash: Path) -> dict[str, bytes]:
    """Files in the trash by their original paths; checks that files and info files match one to one."""
    found = {}
    names = {path.name for path in (trash / "files").iterdir()}
    assert {path.name.removesuffix(".trashinfo") for path in (trash / "info").iterdir()} == names
    for name in names:
        note = (trash / "info" / f"{name}.trashinfo").read_text(encoding="ascii")
        match = re.fullmatch(r"\[Trash Info\]\nPath=(.+)\nDeletionDate=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\n", note)
        assert match is not None, note
        found[unquote(match[1], errors="surrogateescape")] = (trash / "files" / name).read_bytes()
    return found


def delete_by_another_program(trash: Path, path: Path, name: str, date: str) -> None:
    """Move a file to the trash as other programs do."""
    path.rename(trash / "files" / name)
    note = f"[Trash Info]\nPath={quote(os.fsencode(path))}\nDeletionDate={date}\n"
    (trash / "info" / f"{name}.trashinfo").write_text(note, encoding="ascii")


@pytest.mark.parametrize("name", ["00000.mp4", os.fsdecode(b"caf\xe9 50%\n.mp4"), "ä" * 125 + ".mp4"])
def test_file_in_the_trash_has_an_info_file_and_is_restored(trash: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("films")
    (tmp_path / "films").mkdir()
    journal = Journal(tmp_path / "log")
    (action,) = carry_out(plan_of(tmp_path / "link", name), journal)
    assert action.outcome == "removed", action.cause
    assert contents(trash) == {str(tmp_path / "films" / name): SPARE}
    assert stat.S_IMODE((trash / "files").stat().st_mode) == 0o700
    (step,) = journal.steps()
    status = Path(step.place).stat()
    assert (step.place, step.inode) == (action.place, status.st_ino)
    assert [back.outcome for back in undo_plan(journal)] == ["restored"]
    assert (tmp_path / "films" / name).read_bytes() == SPARE
    assert contents(trash) == {}


def test_later_deletion_of_the_same_path_does_not_mislead_undo(trash: Path, tmp_path: Path) -> None:
    source, journal = tmp_path / "films" / "00000.mp4", Journal(tmp_path / "log")
    carry_out(plan_of(tmp_path / "films"), journal)
    source.write_bytes(b"another film")
    delete_by_another_program(trash, source, "00000.2.mp4", "2099-01-01T00:00:00")
    assert [back.outcome for back in undo_plan(journal)] == ["restored"]
    assert source.read_bytes() == SPARE
    assert contents(trash) == {str(source): b"another film"}


def test_file_that_was_renamed_in_the_trash_is_found(trash: Path, tmp_path: Path) -> None:
    """It was restored and deleted again by hand, or it comes from a backup of the trash, where inode numbers differ."""
    source, journal = tmp_path / "films" / "00000.mp4", Journal(tmp_path / "log")
    plan = plan_of(tmp_path / "films")
    for is_copied in (False, True):
        (action,) = carry_out(plan, journal)
        Path(action.place).rename(source)
        (trash / "info" / f"{Path(action.place).name}.trashinfo").unlink()
        if is_copied:
            content, times = source.read_bytes(), source.stat()
            source.rename(tmp_path / "keeps its number")
            source.write_bytes(content)
            os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
        delete_by_another_program(trash, source, "00000.2.mp4", "2020-01-01T00:00:00")
        (trash / "files" / "00000.mp4").write_bytes(b"somebody else's" * 3)
        (trash / "files" / "alike").write_bytes(SPARE)  # same content, but from another path
        assert [back.outcome for back in undo_plan(journal)] == ["restored"]
        assert source.read_bytes() == SPARE
        assert {path.name for path in (trash / "files").iterdir()} == {"00000.mp4", "alike"}
        assert list((trash / "info").iterdir()) == []
        for left in ("00000.mp4", "alike"):
            (trash / "files" / left).unlink()


def test_permanently_deleted_file_is_reported(trash: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log")
    (action,) = carry_out(plan_of(tmp_path / "films"), journal)
    Path(action.place).unlink()
    (back,) = undo_plan(journal)
    assert (back.outcome, back.cause) == ("skipped", f"it is no longer in {action.place}")


@pytest.mark.parametrize("taken", ["files", "info"])
def test_names_taken_in_the_trash_are_not_used(trash: Path, tmp_path: Path, taken: str) -> None:
    """Other programs may leave a file without an info file behind, or an info file without a file."""
    plan = plan_of(tmp_path / "films")
    there = trash / taken / ("00000.mp4" if taken == "files" else "00000.mp4.trashinfo")
    there.parent.mkdir(parents=True)
    there.write_bytes(b"somebody else's")
    (action,) = carry_out(plan, Journal(tmp_path / "log"))
    assert re.fullmatch(r"00000\.[0-9a-f]{16}\.mp4", Path(action.place).name)
    assert [back.outcome for back in undo_plan(Journal(tmp_path / "log"))] == ["restored"]
    assert there.read_bytes() == b"somebody else's"
    assert len(list((trash / taken).iterdir())) == 1


@pytest.mark.parametrize("operation", ["create", "rename"])
def test_name_taken_by_another_program_at_the_last_moment_is_not_used(
    trash: Path, tmp_path: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other program takes it before the info file is written, or later without writing one first."""
    plan = plan_of(tmp_path / "films")
    other, names = tmp_path / "other.mp4", list[str]()
    other.write_bytes(b"another film")

    def before(name: str, path: str, target: str = "") -> None:
        if name == operation and other.exists():
            names.append(Path(target or path).name.removesuffix(".trashinfo"))
            delete_by_another_program(trash, other, names[0], "2026-01-01T00:00:00")

    monkeypatch.setattr(disk, "before", before)
    (action,) = carry_out(plan, Journal(tmp_path / "log"))
    assert action.outcome == "skipped"
    assert "File exists" in action.cause or "already exists" in action.cause
    assert (tmp_path / "films" / "00000.mp4").read_bytes() == SPARE
    assert undo_plan(Journal(tmp_path / "log")) == []
    assert contents(trash) == {str(other): b"another film"}


def test_trash_is_not_listed_if_the_file_is_where_the_log_says(
    trash: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a large trash would slow down undo."""

    def list_nothing(*_: object) -> None:
        raise AssertionError("the trash was listed")

    plan, journal = plan_of(tmp_path / "films"), Journal(tmp_path / "log")
    monkeypatch.setattr(os, "listdir", list_nothing)
    monkeypatch.setattr(os, "scandir", list_nothing)
    assert [action.outcome for action in carry_out(plan, journal)] == ["removed"]
    assert [action.outcome for action in undo_plan(journal)] == ["restored"]


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk other than that of the home trash."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second disk to write to")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        monkeypatch.setattr(trash_module, "volume_of", lambda path: folder)
        yield Path(folder)


@pytest.mark.parametrize("shared", ["none", "sticky", "not sticky", "a link"])
def test_file_on_another_disk_goes_to_the_trash_of_that_disk(
    trash: Path, tmp_path: Path, volume: Path, shared: str
) -> None:
    if shared == "a link":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere").chmod(0o1777)
        (volume / ".Trash").symlink_to(tmp_path / "elsewhere")
    elif shared != "none":
        (volume / ".Trash").mkdir()
        (volume / ".Trash").chmod(0o1777 if shared == "sticky" else 0o777)
    own = volume / ".Trash" / str(os.getuid()) if shared == "sticky" else volume / f".Trash-{os.getuid()}"
    journal = Journal(tmp_path / "log")
    (action,) = carry_out(plan_of(volume / "films é"), journal)
    assert (action.outcome, Path(action.place).parent) == ("removed", own / "files")
    assert contents(own) == {"films é/00000.mp4": SPARE}
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert not trash.exists()
    assert [back.outcome for back in undo_plan(journal)] == ["restored"]
    assert contents(own) == {}
    if shared == "a link":
        assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("way", ["a file", "a link"])
def test_file_on_a_disk_without_a_trash_stays(trash: Path, tmp_path: Path, volume: Path, way: str) -> None:
    own = volume / f".Trash-{os.getuid()}"
    if way == "a file":
        own.write_bytes(b"")
    else:
        (tmp_path / "elsewhere").mkdir()
        own.symlink_to(tmp_path / "elsewhere")
    journal = Journal(tmp_path / "log")
    (action,) = carry_out(plan_of(volume / "films"), journal)
    cause = os.strerror(errno.EEXIST) if way == "a file" else f"{own} is a symbolic link or belongs to another user"
    assert action.cause == (
        f"it cannot be moved: there is no trash on its disk, {volume}: {cause}; use --move-to FOLDER"
    )
    assert (volume / "films" / "00000.mp4").read_bytes() == SPARE
    assert not journal.path.exists()
    assert not [*tmp_path.glob("elsewhere/*")]


def test_file_is_copied_if_it_seems_to_be_on_the_disk_of_the_home_trash_but_renaming_fails(
    trash: Path, tmp_path: Path, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulates a folder that is mounted twice."""
    monkeypatch.setattr(trash_module, "_device_number", lambda path: volume.stat().st_dev)
    journal = Journal(tmp_path / "log")
    carry_out(plan_of(volume / "films"), journal)
    assert contents(trash) == {str(volume / "films" / "00000.mp4"): SPARE}
    assert [back.outcome for back in undo_plan(journal)] == ["restored"]
    assert contents(trash) == {}


def test_file_of_another_program_stays_in_the_trash_after_a_crash(trash: Path, tmp_path: Path) -> None:
    """The log has a name in the trash that another program took first, for an identical file."""
    plan, journal = plan_of(tmp_path / "films"), Journal(tmp_path / "log")
    (action,) = carry_out(plan, journal)
    undo_plan(journal)
    begun = journal.path.read_text(encoding="ascii").splitlines(keepends=True)[0]
    (tmp_path / "alike.mp4").write_bytes(SPARE)
    delete_by_another_program(trash, tmp_path / "alike.mp4", Path(action.place).name, "2026-01-01T00:00:00")
    for finish in (lambda: undo_plan(journal, plan=plan), lambda: carry_out(plan, journal)):
        journal.path.write_text(begun, encoding="ascii")
        finish()
        assert Path(action.place).read_bytes() == SPARE
    assert len(contents(trash)) == 2


TWO = """
import sys
from vidkin._base import disk
from tests.support.plans import carry_out
from vidkin.files import Journal, read_plan

folders, has_signal, is_first = sys.argv[2:], sys.argv[1] == "signal", True

def before(operation, path, target=""):
    global is_first
    if has_signal and is_first and path.endswith(".trashinfo"):
        is_first = False
        print("about to reserve", flush=True)
        sys.stdin.readline()

disk.before = before
print("ready", flush=True)
sys.stdin.readline()
for folder in folders:
    is_first = True
    (action,) = carry_out(read_plan(folder + "/plan.json"), Journal(folder + "/plan.json.log"))
    assert action.outcome == "removed", action.cause
"""


@pytest.mark.process
@pytest.mark.parametrize("way", ["signal", "free"])
def test_concurrent_plans_lose_nothing_in_the_trash(trash: Path, tmp_path: Path, way: str) -> None:
    """Independent processes remove files with equal camera names, as on two machines that share a home folder.

    With signals, both processes see in every round that the name is free before either reserves it.
    """
    from vidkin.files import read_plan, write_plan

    rounds, films = 20, {}
    for card in ("A", "B"):
        for turn in range(rounds):
            folder, content = tmp_path / card / str(turn), f"{card}{turn}".encode() * 20
            write_plan(plan_of(folder, content=content), folder / "plan.json")
            films[str(folder / "00000.mp4")] = content
    running = [
        subprocess.Popen(
            [sys.executable, "-c", TWO, way, *(str(tmp_path / card / str(turn)) for turn in range(rounds))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / f"state of {card}")},
        )
        for card in ("A", "B")
    ]
    for _ in range(rounds + 1 if way == "signal" else 1):
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() in ("ready\n", "about to reserve\n")
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
    assert [process.communicate()[1] for process in running] == ["", ""]
    assert contents(trash) == films
    for path in films:
        folder = Path(path).parent
        (back,) = undo_plan(Journal(folder / "plan.json.log"), plan=read_plan(folder / "plan.json"))
        assert back.outcome == "restored"
    assert {path: Path(path).read_bytes() for path in films} == films
    assert contents(trash) == {}

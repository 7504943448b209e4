"""Power failure before each file operation in turn: no content is lost, and running the command again completes it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.plans import carry_out, proven_group
from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from vidkin._base import disk
from vidkin.errors import MediaError
from vidkin.files import DuplicatePlan, FileAction, Journal, trash, undo_plan
from vidkin.index import DuplicateMember, plan_removal

# Each test creates and removes files up to a hundred times.
pytestmark = pytest.mark.kill

CONTENTS = {
    "best.mp4": b"the best" * 900,
    "spare.mp4": b"a copy" * 700,
    "spare.en.srt": b"its subtitles" * 90,
    "other.mp4": b"another" * 500,
}
VIDEOS = [name for name in CONTENTS if name.endswith(".mp4")]
LINKS = ["", "hard", "symbolic"]


def member(path: Path, *, best: bool = False) -> DuplicateMember:
    return DuplicateMember(str(path), 0.9, 8, 8, 10.0, path.stat().st_size, best)


class World:
    """Three copies in a folder, subtitles of one of them, a plan that removes two copies, and the target folder.

    Args:
        root: An empty folder.
        away: Target folder on the same disk or another one, or the files folder of the trash.
        link: Kind of link that replaces the removed files.
    """

    def __init__(self, root: Path, away: Path, link: str) -> None:
        self.root, self.away, self.link = root, away, link
        self.is_trash = away.parent.name == "Trash"
        self.folder = root / "films"
        self.folder.mkdir(parents=True)
        for name, content in CONTENTS.items():
            (self.folder / name).write_bytes(content)
        best, *others = (member(self.folder / name, best=name == "best.mp4") for name in VIDEOS)
        self.plan: DuplicatePlan = plan_removal([proven_group((best, *others))])

    def apply(self) -> list[FileAction]:
        folder = None if self.is_trash else self.away
        return carry_out(self.plan, Journal(self.root / "log"), folder=folder, link=self.link)  # type: ignore[arg-type]

    def undo(self) -> list[FileAction]:
        return undo_plan(Journal(self.root / "log"), plan=self.plan)

    def place(self, source: Path) -> Path:
        """The path to which a file was moved."""
        if not self.is_trash:
            return self.away / str(source).lstrip("/")
        return next(path for path in self.away.iterdir() if path.read_bytes() == CONTENTS[source.name])

    def whole(self) -> set[bytes]:
        """The contents of all regular files."""
        places = (*self.root.rglob("*"), *self.away.rglob("*"))
        return {path.read_bytes() for path in places if path.is_file() and not path.is_symlink()}

    def check_nothing_is_lost(self) -> None:
        assert set(CONTENTS.values()) <= self.whole()

    def check_applied(self) -> None:
        best = self.folder / "best.mp4"
        assert best.read_bytes() == CONTENTS["best.mp4"]
        for name in ("spare.mp4", "other.mp4"):
            source = self.folder / name
            assert os.path.lexists(source) == bool(self.link)
            assert source.is_symlink() == (self.link == "symbolic")
            if self.link:
                assert source.samefile(best)
            assert self.place(source).read_bytes() == CONTENTS[name]
        # If a link keeps the name of the video, its subtitles stay.
        subtitles = self.folder / "spare.en.srt"
        where = subtitles if self.link else self.place(subtitles)
        assert where.read_bytes() == CONTENTS["spare.en.srt"]
        assert subtitles.exists() == bool(self.link)
        if self.is_trash:
            gone = {"spare.mp4", "other.mp4"} if self.link else set(CONTENTS) - {"best.mp4"}
            assert {path.read_bytes() for path in self.away.iterdir()} == {CONTENTS[name] for name in gone}
            assert {path.stem for path in self.notes()} == {path.name for path in self.away.iterdir()}
            assert len(self.notes()) == len(gone)
        self.check_no_remains()

    def check_undone(self) -> None:
        assert {path.name: path.read_bytes() for path in self.folder.iterdir()} == CONTENTS
        assert not any(path.is_symlink() for path in self.folder.iterdir())
        assert not [path for path in self.away.rglob("*") if path.is_file()]
        assert self.notes() == []
        self.check_no_remains()

    def notes(self) -> list[Path]:
        return list(self.away.parent.glob("info/*")) if self.is_trash else []

    def check_no_remains(self) -> None:
        remains = [*self.root.rglob(".vidkin-*"), *self.away.rglob(".vidkin-*")]
        assert remains == []

    def remove(self) -> None:
        shutil.rmtree(self.root)
        shutil.rmtree(self.away.parent if self.is_trash else self.away, ignore_errors=True)


SLOW_TARGETS = [pytest.param(name, marks=pytest.mark.kill) for name in ("no exclusive rename", "trash on another disk")]
TARGETS = ["same disk", "another disk", "trash", *SLOW_TARGETS]


@pytest.fixture(params=TARGETS)
def worlds(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], World]]:
    """Factory of worlds; each call removes the previous world."""
    made: list[World] = []
    memory = Path("/dev/shm")
    far = request.param.endswith("another disk")
    in_trash = request.param.startswith("trash")
    if in_trash and not trash.is_written_here():
        pytest.skip("the system writes its trash itself")
    if request.param == "no exclusive rename":
        monkeypatch.setattr(disk, "_load_rename", lambda: None)
    if far and (not os.access(memory, os.W_OK) or memory.stat().st_dev == tmp_path.stat().st_dev):
        pytest.skip("this machine has no second disk to write to")
    with tempfile.TemporaryDirectory(dir=memory if far else tmp_path) as elsewhere:
        away = Path(elsewhere) / ("Trash/files" if in_trash else "away")
        monkeypatch.setenv("XDG_DATA_HOME", elsewhere)
        # Simulates a folder that is mounted twice: the device number is the same, but renaming fails.
        monkeypatch.setattr(trash, "_device_number", lambda path: tmp_path.stat().st_dev)

        def make(link: str) -> World:
            if made:
                made.pop().remove()
            made.append(World(tmp_path / "world", away, link))
            return made[0]

        yield make


def cut(monkeypatch: pytest.MonkeyPatch, power: PowerCut, action: Callable[[], object]) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(disk, "before", power)
        with pytest.raises(PowerCutError):
            action()
    power.lose()


@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
@pytest.mark.parametrize("link", LINKS)
def test_apply_recovers_from_a_power_failure_at_any_operation(
    worlds: Callable[[str], World], link: str, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = count_operations(monkeypatch, worlds(link).apply)
    assert {"write", "sync", "rename"} <= set(operations) or "link" in operations
    for turn in range(len(operations)):
        world = worlds(link)
        cut(monkeypatch, PowerCut(turn, names), world.apply)
        world.check_nothing_is_lost()
        world.apply()
        world.check_applied()
        world.undo()
        world.check_undone()


@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
@pytest.mark.parametrize("link", LINKS)
def test_undo_recovers_from_a_power_failure_at_any_operation(
    worlds: Callable[[str], World], link: str, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worlds(link)
    world.apply()
    operations = count_operations(monkeypatch, world.undo)
    world.check_undone()
    for turn in range(len(operations)):
        world = worlds(link)
        world.apply()
        cut(monkeypatch, PowerCut(turn, names), world.undo)
        world.check_nothing_is_lost()
        assert all(action.outcome == "restored" for action in world.undo())
        world.check_undone()


@pytest.mark.parametrize("link", LINKS)
def test_apply_interrupted_at_any_operation_can_be_undone(
    worlds: Callable[[str], World], link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = count_operations(monkeypatch, worlds(link).apply)
    for turn in range(len(operations)):
        world = worlds(link)
        cut(monkeypatch, PowerCut(turn), world.apply)
        if (world.root / "log").exists():
            world.undo()
        world.check_undone()


@pytest.mark.kill
@pytest.mark.parametrize("link", LINKS)
def test_disk_error_at_any_operation_loses_no_content(
    worlds: Callable[[str], World], link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(turn: int, action: Callable[[], object]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            with suppress(MediaError):
                action()

    for turn in range(len(count_operations(monkeypatch, worlds(link).apply))):
        world = worlds(link)
        refuse(turn, world.apply)
        world.check_nothing_is_lost()
        world.apply()
        world.check_applied()
    operations = count_operations(monkeypatch, world.undo)
    for turn in range(len(operations)):
        world = worlds(link)
        world.apply()
        refuse(turn, world.undo)
        world.check_nothing_is_lost()
        world.undo()
        world.check_undone()

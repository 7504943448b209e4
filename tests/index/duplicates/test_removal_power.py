"""The power fails before each file operation in turn: no content is lost, and the same command ends right."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from vidkin._base import disk
from vidkin.errors import MediaError
from vidkin.index import (
    DuplicateGroup,
    DuplicateMember,
    DuplicatePlan,
    FileAction,
    Journal,
    apply_plan,
    plan_removal,
    undo,
)

CONTENTS = {
    "best.mp4": b"the best" * 900,
    "spare.mp4": b"a copy" * 700,
    "spare.en.srt": b"its subtitles" * 90,
    "other.mp4": b"another" * 500,
}
VIDEOS = [name for name in CONTENTS if name.endswith(".mp4")]
# Seconds since the epoch: the kept file gets the oldest date, in two steps.
TIMES = {
    "best.mp4": 1_600_000_000,
    "spare.mp4": 1_500_000_000,
    "spare.en.srt": 1_400_000_000,
    "other.mp4": 1_300_000_000,
}
TAGS = "user.xdg.tags"
LINKS = ["", "hard", "symbolic"]


def member(path: Path, *, best: bool = False) -> DuplicateMember:
    return DuplicateMember(str(path), 0.9, 8, 8, 10.0, path.stat().st_size, best)


class World:
    """Three copies in a folder, subtitles of one, a plan that removes two, and where they go.

    The kept file gets dates and, where the disk has them, tags of the others.

    Args:
        root: An empty folder.
        away: Where the files go, on the same disk or another one.
        link: What replaces them.
    """

    def __init__(self, root: Path, away: Path, link: str) -> None:
        self.root, self.away, self.link = root, away, link
        self.folder = root / "films"
        self.folder.mkdir(parents=True)
        for name, content in CONTENTS.items():
            (self.folder / name).write_bytes(content)
            os.utime(self.folder / name, (TIMES[name], TIMES[name]))
        self.has_tags = self.tag("best.mp4", b"mine") and self.tag("spare.mp4", b"holiday")
        best, *others = (member(self.folder / name, best=name == "best.mp4") for name in VIDEOS)
        self.plan: DuplicatePlan = plan_removal([DuplicateGroup((best, *others))])

    def apply(self) -> list[FileAction]:
        return apply_plan(self.plan, Journal(self.root / "log"), folder=self.away, link=self.link, carry=True)  # type: ignore[arg-type]

    def undo(self) -> list[FileAction]:
        return undo(Journal(self.root / "log"), plan=self.plan)

    def tag(self, name: str, tags: bytes) -> bool:
        """Write tags to a file, where the disk has them."""
        try:
            os.setxattr(self.folder / name, TAGS, tags)
        except (AttributeError, OSError):
            return False
        return True

    def check_carried(self, name: str, time: int, tags: bytes) -> None:
        assert (self.folder / name).stat().st_mtime == time
        if self.has_tags:
            assert os.getxattr(self.folder / name, TAGS) == tags

    def whole(self) -> set[bytes]:
        """Content of every regular file."""
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
            place = self.away / str(source).lstrip("/")
            assert place.read_bytes() == CONTENTS[name]
        # With a link the name of the video stays, and so do its subtitles.
        subtitles = self.folder / "spare.en.srt"
        where = subtitles if self.link else self.away / str(subtitles).lstrip("/")
        assert where.read_bytes() == CONTENTS["spare.en.srt"]
        assert subtitles.exists() == bool(self.link)
        self.check_carried("best.mp4", TIMES["other.mp4"], b"mine,holiday")
        self.check_no_remains()

    def check_undone(self) -> None:
        assert {path.name: path.read_bytes() for path in self.folder.iterdir()} == CONTENTS
        assert not any(path.is_symlink() for path in self.folder.iterdir())
        self.check_carried("best.mp4", TIMES["best.mp4"], b"mine")
        self.check_carried("spare.mp4", TIMES["spare.mp4"], b"holiday")
        assert not [path for path in self.away.rglob("*") if path.is_file()]
        self.check_no_remains()

    def check_no_remains(self) -> None:
        remains = [*self.root.rglob(".vidkin-*"), *self.away.rglob(".vidkin-*")]
        assert remains == []

    def remove(self) -> None:
        shutil.rmtree(self.root)
        shutil.rmtree(self.away, ignore_errors=True)


@pytest.fixture(params=["same disk", "another disk"])
def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], World]]:
    """Makes a new world at each call; the one before is removed."""
    made: list[World] = []
    memory = Path("/dev/shm")
    far = request.param == "another disk"
    if far and (not os.access(memory, os.W_OK) or memory.stat().st_dev == tmp_path.stat().st_dev):
        pytest.skip("this machine has no second disk to write to")
    with tempfile.TemporaryDirectory(dir=memory if far else tmp_path) as elsewhere:

        def make(link: str) -> World:
            if made:
                made.pop().remove()
            made.append(World(tmp_path / "world", Path(elsewhere) / "away", link))
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
def test_apply_ends_right_after_a_power_cut_at_any_operation(
    worlds: Callable[[str], World], link: str, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = count_operations(monkeypatch, worlds(link).apply)
    assert {"write", "sync", "rename"} <= set(operations)
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
def test_undo_ends_right_after_a_power_cut_at_any_operation(
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
def test_an_apply_that_was_cut_off_can_be_undone_at_any_operation(
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
def test_a_disk_that_refuses_any_operation_costs_no_content(
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

"""Plans are applied to real files and undone: every file is restored."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.plans import carry_out, proven_group
from vidkin._base import disk
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.files import DuplicatePlan, FileState, Journal, read_plan, undo_plan, write_plan
from vidkin.index import DuplicateMember, plan_removal


def member(path: Path, **facts: object) -> DuplicateMember:
    given = {
        "score": 0.9,
        "width": 8,
        "height": 8,
        "duration": 10.0,
        "size": path.stat().st_size,
        "best": False,
    }
    return DuplicateMember(str(path), **{**given, **facts})  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "vidéos [1]"
    folder.mkdir()
    for name, content in (
        ("best.mp4", b"the best" * 9),
        ("spare.mp4", b"a copy" * 7),
        ("other.mp4", b"other" * 5),
    ):
        (folder / name).write_bytes(content)
        os.utime(folder / name, ns=(1_600_000_000_123_456_789, 1_600_000_000_123_456_789))
    return folder


@pytest.fixture
def plan(folder: Path) -> DuplicatePlan:
    best = member(folder / "best.mp4", best=True)
    return plan_removal([proven_group((best, member(folder / "spare.mp4")), "most detail")])


def state(folder: Path) -> dict[str, tuple[bytes, int, bool]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.is_symlink()) for path in sorted(folder.iterdir())
    }


def move_files(folder: Path, plan: DuplicatePlan, tmp_path: Path, **options: object) -> Journal:
    journal = Journal(tmp_path / "log")
    actions = carry_out(plan, journal, folder=tmp_path / "away", **options)  # type: ignore[arg-type]
    assert [action.outcome for action in actions] == ["removed"]
    assert Path(actions[0].place).read_bytes() == b"a copy" * 7
    return journal


@pytest.mark.parametrize("link", ["", "hard", "symbolic"])
def test_files_are_moved_and_restored(folder: Path, plan: DuplicatePlan, tmp_path: Path, link: str) -> None:
    before = state(folder)
    journal = move_files(folder, plan, tmp_path, link=link)
    spare = folder / "spare.mp4"
    if link:
        assert spare.read_bytes() == b"the best" * 9
        assert spare.is_symlink() == (link == "symbolic")
    else:
        assert not spare.exists()
    assert [action.outcome for action in undo_plan(journal)] == ["restored"]
    assert state(folder) == before
    assert undo_plan(journal) == []  # everything is restored


def test_file_is_not_moved_to_a_path_too_long_for_windows(
    folder: Path, plan: DuplicatePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(folder)
    monkeypatch.setattr("vidkin._base.files._MAX_PATH", 259)
    (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / ("deep" * 40))
    assert action.outcome == "skipped"
    assert "characters, and Windows opens at most 259; choose a folder with a shorter path" in action.cause
    assert state(folder) == before


def test_dry_run_changes_nothing(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    before = state(folder)
    actions = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away", dry_run=True)
    assert [(Path(action.path).name, action.outcome) for action in actions] == [("spare.mp4", "planned")]
    assert state(folder) == before
    assert not (tmp_path / "log").exists()
    assert not (tmp_path / "away").exists()


def touch(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"!")


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (lambda folder: touch(folder / "spare.mp4"), "it has changed since the plan was made, or cannot be read"),
        (
            lambda folder: touch(folder / "best.mp4"),
            "the file to keep, .*best.mp4, has changed since the plan was made",
        ),
        (
            lambda folder: (folder / "best.mp4").unlink(),
            "the file to keep, .*best.mp4, is gone",
        ),
        (lambda folder: (folder / "spare.mp4").unlink(), "it is gone"),
    ],
)
def test_changed_and_missing_files_are_skipped(
    folder: Path, plan: DuplicatePlan, tmp_path: Path, spoil: Callable[[Path], None], cause: str
) -> None:
    spoil(folder)
    before = state(folder)
    (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert action.outcome == "skipped"

    assert re.match(cause, action.cause), action.cause
    assert state(folder) == before


def test_other_names_of_the_kept_file_are_never_removed(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    best, spare = folder / "best.mp4", folder / "spare.mp4"
    spare.unlink()
    os.link(best, spare)
    (group,) = plan.groups
    same = replace(group, remove=(replace(group.keep, path=str(spare)),))
    (action,) = carry_out(DuplicatePlan((same,)), Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert action.cause == "it is the file to keep under another name"
    itself = replace(group, remove=(group.keep,))
    (action,) = carry_out(DuplicatePlan((itself,)), Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert action.cause == "the plan also keeps it"
    assert best.read_bytes() == b"the best" * 9


def test_files_in_protected_folders_are_skipped(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away", protected=[folder])
    assert action.cause == f"it is in {folder}, which is protected"
    with pytest.raises(InvalidArgumentError, match="the folder for removed files must contain none of them, got"):
        carry_out(plan, Journal(tmp_path / "log"), folder=folder)


def test_only_redundant_files_are_planned(folder: Path) -> None:
    best, spare, other = (folder / f"{name}.mp4" for name in ("best", "spare", "other"))
    members = (
        member(best, best=True),
        member(spare, lacking=3.5),
        member(other, doubt="little detail"),
    )
    assert plan_removal([proven_group(members)]).groups == ()
    members = (member(best, best=True), member(spare, links=("/videos/name.mp4",)), member(other))
    (group,) = plan_removal([proven_group(members)]).groups
    assert [Path(file.path).name for file in group.remove] == ["other.mp4"]
    assert [(Path(file.path).name, file.why) for file in group.stay] == [
        ("spare.mp4", "it has other names, such as /videos/name.mp4")
    ]
    assert plan_removal([proven_group(members)], protected=[folder]).groups == ()


def test_plan_file_can_be_edited_by_hand(plan: DuplicatePlan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(plan, path)
    assert read_plan(path) == plan
    table = json.loads(path.read_text())
    table["groups"][0]["remove"] = []
    path.write_text(json.dumps(table))
    assert read_plan(path).groups[0].remove == ()
    for text in (
        "{",
        "[]",
        "{}",
        '{"vidkin_plan": 2}',
        '{"vidkin_plan": 2, "groups": [{"keep": {"path": "a.mp4"}}]}',
    ):
        path.write_text(text)
        with pytest.raises(InvalidArgumentError, match=r"must be a plan from `vidkin duplicates --plan`"):
            read_plan(path)
    with pytest.raises(MediaError, match="cannot be read: No such file"):
        read_plan(tmp_path / "none.json")


def test_truncated_log_is_read_up_to_the_truncated_line(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    before = state(folder)
    journal = move_files(folder, plan, tmp_path)
    lines = journal.path.read_text().splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["begun", "done"]
    # The power failed after the move, while the second line was being written.
    journal.path.write_text(lines[0] + "\n" + lines[1][:20])
    assert [action.outcome for action in undo_plan(journal)] == ["restored"]
    assert state(folder) == before
    journal.path.write_text("no log\n" + lines[0] + "\n")
    with pytest.raises(InvalidArgumentError, match="must be a log of `vidkin apply`: line 1"):
        undo_plan(journal)


def test_undo_does_not_overwrite_a_new_file_at_the_old_path(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    journal = move_files(folder, plan, tmp_path)
    (folder / "spare.mp4").write_bytes(b"new")
    (action,) = undo_plan(journal)
    assert (action.outcome, action.cause) == ("skipped", "there is another file in its place")
    assert (folder / "spare.mp4").read_bytes() == b"new"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second disk to write to")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_hard_link_to_another_disk_is_refused(
    folder: Path, plan: DuplicatePlan, tmp_path: Path, elsewhere: Path
) -> None:
    spare = shutil.copy2(folder / "spare.mp4", elsewhere / "spare.mp4")
    (group,) = plan.groups
    far = DuplicatePlan((replace(group, remove=(FileState.of(str(spare)),)),))
    for dry_run in (True, False):
        (action,) = carry_out(far, Journal(tmp_path / "log"), link="hard", dry_run=dry_run)
        assert (action.outcome, action.cause) == (
            "skipped",
            f"a hard link cannot point to {folder / 'best.mp4'}, which is on another disk; use --link symbolic",
        )
    assert state(elsewhere) == {"spare.mp4": state(folder)["spare.mp4"]}


def test_file_is_copied_to_another_disk_and_restored(
    folder: Path, plan: DuplicatePlan, tmp_path: Path, elsewhere: Path
) -> None:
    before = state(folder)
    journal = Journal(tmp_path / "log")
    (action,) = carry_out(plan, journal, folder=elsewhere)
    assert Path(action.place).read_bytes() == b"a copy" * 7
    assert not (folder / "spare.mp4").exists()
    assert [action.outcome for action in undo_plan(journal)] == ["restored"]
    assert state(folder) == before


def test_ctrl_c_leaves_no_partial_copy_on_another_disk(
    folder: Path, plan: DuplicatePlan, tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = disk.write

    def interrupt(descriptor: int, content: bytes, path: str) -> None:
        if path.startswith(str(elsewhere)):
            os.write(descriptor, content[:3])
            raise KeyboardInterrupt
        write(descriptor, content, path)

    before = state(folder)
    monkeypatch.setattr(disk, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        carry_out(plan, Journal(tmp_path / "log"), folder=elsewhere)
    assert state(folder) == before
    assert not [path for path in elsewhere.rglob("*") if path.is_file()]


def test_failure_to_create_a_link_keeps_the_file(
    folder: Path, plan: DuplicatePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")  # like a FAT file system

    monkeypatch.setattr(os, "link", refuse)
    before = state(folder)
    journal = Journal(tmp_path / "log")
    (action,) = carry_out(plan, journal, folder=tmp_path / "away", link="hard")
    assert action.outcome == "skipped"
    assert action.cause == f"a link to {folder / 'best.mp4'} cannot be created: Operation not permitted"
    assert state(folder) == before
    assert undo_plan(journal) == []


def test_file_that_cannot_be_moved_does_not_stop_the_others(folder: Path, tmp_path: Path) -> None:
    """A folder with the name of the first file is in the way."""
    copies = [member(folder / name) for name in ("other.mp4", "spare.mp4")]
    plan = plan_removal([proven_group((member(folder / "best.mp4", best=True), *copies), "")])
    before = state(folder)
    away = tmp_path / "away"
    in_the_way = away / str(folder / "other.mp4").lstrip("/")
    in_the_way.mkdir(parents=True)
    journal = Journal(tmp_path / "log")
    first, second = carry_out(plan, journal, folder=away)
    assert (first.outcome, second.outcome) == ("skipped", "removed")
    assert first.cause == f"it cannot be moved: {in_the_way} already exists; choose another folder"
    assert [(Path(action.path).name, action.outcome) for action in undo_plan(journal)] == [("spare.mp4", "restored")]
    assert state(folder) == before


def test_file_in_the_way_is_kept_even_if_its_content_is_the_same(
    folder: Path, plan: DuplicatePlan, tmp_path: Path
) -> None:
    before = state(folder)
    in_the_way = tmp_path / "away" / str(folder / "spare.mp4").lstrip("/")
    in_the_way.parent.mkdir(parents=True)
    shutil.copy2(folder / "spare.mp4", in_the_way)
    (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert action.cause == f"it cannot be moved: {in_the_way} already exists; choose another folder"
    assert in_the_way.read_bytes() == b"a copy" * 7
    assert not (tmp_path / "log").exists()
    assert state(folder) == before
    assert in_the_way.exists()


def test_file_that_cannot_be_restored_stays_in_its_new_folder(
    folder: Path, plan: DuplicatePlan, tmp_path: Path
) -> None:
    journal = move_files(folder, plan, tmp_path)
    folder.rename(tmp_path / "renamed")
    folder.write_bytes(b"a file where the folder was")
    (action,) = undo_plan(journal)
    assert (action.outcome, action.cause) == ("skipped", "it cannot be moved: File exists")
    assert Path(action.place).read_bytes() == b"a copy" * 7

"""A forged log, a swapped file or a concurrent process cannot make apply or undo destroy files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.support.plans import carry_out, proven_group
from vidkin.errors import MediaError
from vidkin.files import DuplicatePlan, FileState, Journal, RemovalStep, read_plan, undo_plan, write_plan
from vidkin.index import DuplicateMember, plan_removal

BEST, SPARE = b"the best" * 9, b"a copy" * 7


def member(path: Path, *, best: bool = False) -> DuplicateMember:
    return DuplicateMember(str(path), 0.9, 8, 8, 10.0, path.stat().st_size, best)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "best.mp4").write_bytes(BEST)
    (folder / "spare.mp4").write_bytes(SPARE)
    return folder


@pytest.fixture
def plan(folder: Path) -> DuplicatePlan:
    best = member(folder / "best.mp4", best=True)
    return plan_removal([proven_group((best, member(folder / "spare.mp4")))])


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "log")


def contents(*folders: Path) -> set[bytes]:
    paths = (path for folder in folders for path in folder.rglob("*"))
    return {path.read_bytes() for path in paths if path.is_file() and not path.is_symlink()}


def test_undo_never_removes_the_last_name_of_an_edited_file(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    """The kept file is edited in place, which changes its hard link as well, and then replaced by a symbolic link."""
    carry_out(plan, journal, folder=tmp_path / "away", link="hard")
    best, spare = folder / "best.mp4", folder / "spare.mp4"
    best.write_bytes(b"edited for days")
    best.unlink()
    best.symlink_to(spare)
    for dry_run in (True, False):
        (action,) = undo_plan(journal, dry_run=dry_run)
        assert action.outcome == "skipped"
        assert "there is another file in its place, not a link to" in action.cause
    assert spare.read_bytes() == b"edited for days"
    assert sorted(os.listdir(folder)) == ["best.mp4", "spare.mp4"]


def test_undo_keeps_a_link_whose_content_was_edited(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    carry_out(plan, journal, folder=tmp_path / "away", link="hard")
    (folder / "best.mp4").write_bytes(b"edited" * 12)
    (action,) = undo_plan(journal)
    assert action.cause == "the file in its place has changed since the link was made"
    assert (folder / "spare.mp4").samefile(folder / "best.mp4")
    assert SPARE in contents(tmp_path)


def test_undo_keeps_a_file_that_the_log_calls_a_link_to_itself(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    """The log names the same file, by two paths, as the link and as its target."""
    os.link(folder / "best.mp4", tmp_path / "second name")
    (tmp_path / "door").symlink_to(folder)
    place = tmp_path / "place.mp4"
    place.write_bytes(SPARE)
    size, content = plan.groups[0].remove[0].size, plan.groups[0].remove[0].content
    forged = RemovalStep(
        str(folder / "best.mp4"),
        str(place),
        "hard",
        str(tmp_path / "door" / "best.mp4"),
        "done",
        size,
        content,
        plan.groups[0].keep.content,
        "",
        place.stat().st_ino,
        False,
    )
    journal.write(forged)
    (action,) = undo_plan(journal)
    assert action.cause == "the file in its place has no other name"
    assert (folder / "best.mp4").read_bytes() == BEST
    assert place.read_bytes() == SPARE


def test_forged_log_moves_no_file_that_is_not_in_the_plan(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_bytes(b"mine")
    os.link(secret, tmp_path / "other name")
    held = FileState.of(str(secret))
    forged = RemovalStep(
        *(str(secret), str(folder / "spare.mp4"), "hard", str(tmp_path / "other name"), "done", held.size),
        *(held.content, held.content, "", 1, False),
    )
    journal.write(forged)
    (action,) = undo_plan(journal, plan=plan)
    assert action.cause == "the plan does not list it with this file to keep"
    (action,) = undo_plan(journal)
    assert action.cause == f"{folder / 'spare.mp4'} is not the file that was moved there"
    assert secret.read_bytes() == b"mine"
    assert (folder / "spare.mp4").read_bytes() == SPARE


def test_undo_skips_a_file_whose_content_differs_between_log_and_plan(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    carry_out(plan, journal, folder=tmp_path / "away")
    (step,) = journal.steps()
    journal.write(replace(step, content="0" * 32))
    (action,) = undo_plan(journal, plan=plan)
    assert action.cause == "the plan and the log record different contents"
    assert not (folder / "spare.mp4").exists()


def test_file_that_changed_after_it_was_moved_is_not_restored(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    (action,) = carry_out(plan, journal, folder=tmp_path / "away")
    place = Path(action.place)
    for spoil in (
        lambda: place.write_bytes(SPARE[::-1]),
        lambda: (place.unlink(), place.symlink_to(folder / "best.mp4")),
    ):
        spoil()
        (action,) = undo_plan(journal)
        assert (action.outcome, action.cause) == ("skipped", f"{place} is not the file that was moved there")
    assert sorted(os.listdir(folder)) == ["best.mp4"]


def test_spare_file_replaced_by_a_symbolic_link_is_refused(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    spare = folder / "spare.mp4"
    spare.rename(tmp_path / "elsewhere.mp4")
    spare.symlink_to(tmp_path / "elsewhere.mp4")
    (action,) = carry_out(plan, journal, folder=tmp_path / "away")
    assert action.cause == "it is now a symbolic link, but was a file when the plan was made"
    assert spare.is_symlink()


def swap_for_a_link(folder: Path, elsewhere: Path) -> None:
    """Move the folder elsewhere and leave a symbolic link to it."""
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


def swap_for_a_copy(folder: Path, elsewhere: Path) -> None:
    """Replace the folder by a copy, as if another disk with the same files were mounted there."""
    folder.rename(elsewhere)
    shutil.copytree(elsewhere, folder)


@pytest.mark.parametrize("which", ["spare", "kept"])
@pytest.mark.parametrize("swap", [swap_for_a_link, swap_for_a_copy])
@pytest.mark.parametrize("depth", [0, 1])
def test_replaced_folder_is_refused(
    folder: Path, tmp_path: Path, which: str, swap: Callable[[Path, Path], None], depth: int
) -> None:
    """The folder of the file, or its parent, is replaced after the plan was read."""
    for name in ("spare", "kept"):
        (folder / name / "videos").mkdir(parents=True)
    best, spare = folder / "kept" / "videos" / "best.mp4", folder / "spare" / "videos" / "spare.mp4"
    (folder / "best.mp4").rename(best)
    (folder / "spare.mp4").rename(spare)
    write_plan(plan_removal([proven_group((member(best, best=True), member(spare)))]), tmp_path / "plan.json")
    plan = read_plan(tmp_path / "plan.json")
    swap((folder / which / "videos", folder / which)[depth], tmp_path / "elsewhere")
    (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
    words = "its folder" if which == "spare" else "the folder of the file to keep"
    real = folder / which / "videos"
    if swap is swap_for_a_link:
        now = os.path.realpath(real)
        assert action.cause == f"{words} was {real} when the plan was made and is now {now}; create the plan again"
    else:
        assert action.cause == f"{words}, {real}, was replaced after the plan was made; create the plan again"
    assert (best.read_bytes(), spare.read_bytes()) == (BEST, SPARE)
    assert not (tmp_path / "away").exists()


def test_folder_reached_through_a_symlink_from_the_start_is_accepted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "door").symlink_to(folder)
    names = (tmp_path / "door" / name for name in ("best.mp4", "spare.mp4"))
    plan = plan_removal([proven_group(tuple(member(path, best=path.stem == "best") for path in names))])
    (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert action.outcome == "removed"


def test_unfinished_step_onto_another_path_of_the_same_file_loses_nothing(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    """In a forged log, source and target are two paths of one file, so removing the source would delete it."""
    (tmp_path / "door").symlink_to(folder)
    (group,) = plan.groups
    file, status = group.remove[0], (folder / "spare.mp4").stat()
    place = str(tmp_path / "door" / "spare.mp4")
    for state in ("begun", "undoing"):
        journal.write(
            RemovalStep(
                *(file.path, place, "", group.keep.path, state, file.size, file.content, group.keep.content, ""),
                status.st_ino,
                False,
            )
        )
        undo_plan(journal, plan=plan)
        assert SPARE in contents(tmp_path)
    journal.path.write_text(journal.path.read_text().splitlines(keepends=True)[0])
    carry_out(plan, journal, folder=tmp_path / "away")
    assert SPARE in contents(tmp_path)
    undo_plan(journal, plan=plan)
    assert (folder / "spare.mp4").read_bytes() == SPARE


def test_spare_file_stays_if_the_kept_file_was_replaced_by_a_symbolic_link(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    best = folder / "best.mp4"
    best.rename(tmp_path / "elsewhere.mp4")
    best.symlink_to(tmp_path / "elsewhere.mp4")
    (action,) = carry_out(plan, journal, folder=tmp_path / "away")
    assert action.cause.startswith(f"the file to keep, {best}, is now a symbolic link")
    assert (folder / "spare.mp4").read_bytes() == SPARE


def test_group_whose_best_file_is_a_symbolic_link_is_not_planned(folder: Path, tmp_path: Path) -> None:
    (folder / "link.mp4").symlink_to(folder / "spare.mp4")
    best = member(folder / "link.mp4", best=True)
    assert plan_removal([proven_group((best, member(folder / "spare.mp4")))]).groups == ()


def test_spare_file_stays_if_the_middle_of_a_large_kept_file_is_damaged(folder: Path, tmp_path: Path) -> None:
    """The parts that the index hashes, at both ends and in the middle, do not contain the damage."""
    best = folder / "large.mp4"
    best.write_bytes(b"\0\0\0\x20ftypisom" + b"avc1" + bytes(6 << 20))
    plan = plan_removal([proven_group((member(best, best=True), member(folder / "spare.mp4")))])
    status = best.stat()
    with best.open("r+b") as file:
        file.seek(3 << 19)
        file.write(b"damage")
    os.utime(best, ns=(status.st_atime_ns, status.st_mtime_ns))
    (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert action.cause == f"the file to keep, {best}, has changed since the plan was made, or cannot be read"
    assert (folder / "spare.mp4").read_bytes() == SPARE


def test_log_that_is_a_symbolic_link_is_not_followed(
    folder: Path, plan: DuplicatePlan, journal: Journal, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("")
    journal.path.symlink_to(victim)
    with pytest.raises(MediaError, match="the log cannot be written"):
        carry_out(plan, journal, folder=tmp_path / "away")
    assert victim.read_text() == ""
    assert (folder / "spare.mp4").read_bytes() == SPARE


MANY = """
import sys
from vidkin.errors import CollectionLockedError
from tests.support.plans import carry_out
from vidkin.files import Journal, read_plan, undo_plan
plan, journal = read_plan(sys.argv[1]), Journal(sys.argv[2])
sys.stdin.readline()
for _ in range(20):
    for turn in (True, False):
        try:
            carry_out(plan, journal, folder=sys.argv[3], link="hard") if turn else undo_plan(journal, plan=plan)
        except CollectionLockedError:
            pass
"""


@pytest.mark.large
def test_concurrent_applies_and_undos_lose_nothing_and_keep_the_log_consistent(
    folder: Path, journal: Journal, tmp_path: Path
) -> None:
    copies = {f"copy {number}.mp4": f"copy {number}".encode() * 20 for number in range(6)}
    for name, content in copies.items():
        (folder / name).write_bytes(content)
    members = (member(folder / "best.mp4", best=True), *(member(folder / name) for name in copies))
    plan = plan_removal([proven_group(members)])
    write_plan(plan, tmp_path / "plan.json")
    words = [
        sys.executable,
        "-c",
        MANY,
        str(tmp_path / "plan.json"),
        str(journal.path),
        str(tmp_path / "away"),
    ]
    running = [subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in running] == [""] * 3
    before: dict[str, str] = {}
    follows = {
        "begun": {"", "undone"},
        "done": {"begun", "undoing"},
        "undoing": {"done"},
        "undone": {"undoing", "begun"},
    }
    for line in journal.path.read_text().splitlines():
        step = json.loads(line)
        assert before.get(step["source"], "") in follows[step["state"]], line
        before[step["source"]] = step["state"]
    undo_plan(journal, plan=plan)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name in copies} == copies
    assert not any((folder / name).samefile(folder / "best.mp4") for name in copies)


@pytest.mark.parametrize("name", ["source", "place", "kept"])
@pytest.mark.parametrize("path", ["/films/a\0b.mp4", "/films/\ud800.mp4", "films/a.mp4"])
def test_invalid_path_in_a_log_is_refused(journal: Journal, name: str, path: str) -> None:
    step = RemovalStep("/films/a.mp4", "/away/a.mp4", "", "/films/best.mp4", "begun", 5, "ab", "cd", "", 2, False)
    journal.path.write_text((json.dumps({**asdict(step), name: path}) + "\n") * 2)
    with pytest.raises(ValueError, match=rf"must be a log of `vidkin apply`: line 1: {name} must be "):
        journal.steps()

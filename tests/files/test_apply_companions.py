"""Companion files are moved and restored with their video."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.plans import carry_out, proven_group
from vidkin._base import disk
from vidkin.errors import InvalidArgumentError
from vidkin.files import DuplicatePlan, FileAction, Journal, read_plan, undo_plan, write_plan
from vidkin.index import DuplicateMember, plan_removal

NAMES = ("best.mp4", "spare.mp4", "spare.en.srt", "spare.nfo", "spare-poster.jpg", "other.webm", "other.webm.xmp")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "films é"
    folder.mkdir()
    for place, name in enumerate(NAMES):
        (folder / name).write_bytes(name.encode() * 9)
        os.utime(folder / name, (2_000_000_000 - place, 2_000_000_000 - place))
    return folder


@pytest.fixture
def plan(folder: Path) -> DuplicatePlan:
    members = [
        DuplicateMember(str(folder / name), 0.9, 8, 8, 20.0, 9 * len(name), name == "best.mp4")
        for name in ("best.mp4", "spare.mp4", "other.webm")
    ]
    return plan_removal([proven_group(tuple(members))])


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())}


def outcomes(actions: list[FileAction]) -> dict[str, str]:
    return {Path(action.path).name: action.cause or action.outcome for action in actions}


def test_companions_are_moved_and_restored_with_their_video(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    before = state(folder)
    journal = Journal(tmp_path / "log")
    write_plan(plan, tmp_path / "plan.json")
    read = read_plan(tmp_path / "plan.json")
    assert read == plan
    companions = [[item.path for item in file.companions] for group in read.groups for file in group.remove]
    assert companions == [[item.path for item in file.companions] for group in plan.groups for file in group.remove]
    dry = carry_out(read, journal, folder=tmp_path / "away", dry_run=True)
    assert {action.outcome for action in dry} == {"planned"}
    assert state(folder) == before
    actions = carry_out(read, journal, folder=tmp_path / "away")
    assert outcomes(actions) == dict.fromkeys(NAMES[1:], "removed")
    videos = {Path(action.path).name: Path(action.video).name for action in actions if action.video}
    assert videos == {
        **dict.fromkeys(NAMES[2:5], "spare.mp4"),
        "other.webm.xmp": "other.webm",
    }
    assert list(state(folder)) == ["best.mp4"]
    assert outcomes(undo_plan(journal, plan=read)) == dict.fromkeys(NAMES[1:], "restored")
    assert state(folder) == before


@pytest.mark.parametrize("link", ["hard", "symbolic"])
def test_companions_stay_if_a_link_replaces_the_video(
    folder: Path, plan: DuplicatePlan, tmp_path: Path, link: str
) -> None:
    before = state(folder)
    actions = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away", link=link)  # type: ignore[arg-type]
    refused = "its extension (.webm) differs from that of the file to keep (.mp4); use --link symbolic"
    assert outcomes(actions) == {"spare.mp4": "removed", "other.webm": refused if link == "hard" else "removed"}
    assert set(state(folder)) == set(NAMES)
    assert all(state(folder)[name] == before[name] for name in NAMES if not name.endswith((".mp4", ".webm")))
    undo_plan(Journal(tmp_path / "log"), plan=plan)
    assert state(folder) == before


def test_changed_shared_and_blocked_companions_stay_with_a_reason(
    folder: Path, plan: DuplicatePlan, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    (folder / "spare.nfo").write_bytes(b"edited")
    (folder / "other.mkv").write_bytes(b"a video that came later")
    (folder / "spare.mkv.txt").write_bytes(b"no video")
    os.rename(folder / "other.webm.xmp", folder / "other.xmp")
    renamed = replace(plan.groups[0].remove[1].companions[0], path=str(folder / "other.xmp"))
    group = plan.groups[0]
    group = replace(group, remove=(group.remove[0], replace(group.remove[1], companions=(renamed,))))
    target = away / str(folder / "spare.en.srt").lstrip("/")
    target.parent.mkdir(parents=True)
    target.write_bytes(b"mine")
    actions = carry_out(replace(plan, groups=(group,)), Journal(tmp_path / "log"), folder=away)
    assert outcomes(actions) == {
        **dict.fromkeys(("spare.mp4", "spare-poster.jpg", "other.webm"), "removed"),
        "spare.nfo": "it has changed since the plan was made, or cannot be read",
        "spare.en.srt": f"it cannot be moved: {target} already exists; choose another folder",
        "other.xmp": "it also belongs to other.mkv, which is next to it",
    }
    assert target.read_bytes() == b"mine"
    assert (folder / "spare.nfo").read_bytes() == b"edited"


def test_video_that_stays_keeps_its_companions(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    (folder / "spare.mp4").write_bytes(b"edited since")
    before = state(folder)
    actions = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert outcomes(actions)["spare.mp4"] == "it has changed since the plan was made, or cannot be read"
    assert {name: state(folder)[name] for name in NAMES[:5]} == {name: before[name] for name in NAMES[:5]}


def test_companions_left_by_an_interrupted_run_are_moved(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    """The video was moved before the crash; running the command again moves its companions."""
    whole = plan.groups[0].remove[0]
    alone = replace(plan, groups=(replace(plan.groups[0], remove=(replace(whole, companions=()),)),))
    journal = Journal(tmp_path / "log")
    carry_out(alone, journal, folder=tmp_path / "away")
    actions = outcomes(carry_out(plan, journal, folder=tmp_path / "away"))
    assert actions.pop("spare.mp4").startswith("it was already moved to ")
    assert set(actions.values()) == {"removed"}


def test_companions_deleted_from_a_plan_are_not_moved(folder: Path, plan: DuplicatePlan, tmp_path: Path) -> None:
    write_plan(plan, tmp_path / "plan.json")
    table = json.loads((tmp_path / "plan.json").read_text())
    del table["groups"][0]["remove"][0]["companions"][0]
    (tmp_path / "plan.json").write_text(json.dumps(table))
    changed = read_plan(tmp_path / "plan.json")
    actions = outcomes(carry_out(changed, Journal(tmp_path / "log"), folder=tmp_path / "away"))
    assert set(actions.values()) == {"removed"}
    assert "spare-poster.jpg" not in actions
    assert (folder / "spare-poster.jpg").exists()
    assert set(outcomes(undo_plan(Journal(tmp_path / "log"), plan=changed)).values()) == {"restored"}


@pytest.mark.parametrize("path", ["elsewhere/spare.srt", "films é/best.srt", "films é/spare.mkv"])
def test_plan_cannot_name_a_companion_of_another_file(
    folder: Path, plan: DuplicatePlan, tmp_path: Path, path: str
) -> None:
    write_plan(plan, tmp_path / "plan.json")
    table = json.loads((tmp_path / "plan.json").read_text())
    table["groups"][0]["remove"][0]["companions"][0]["path"] = str(tmp_path / path)
    (tmp_path / "plan.json").write_text(json.dumps(table))
    with pytest.raises(InvalidArgumentError, match="a companion must be next to its file and share its name"):
        read_plan(tmp_path / "plan.json")


def make_plan(folder: Path, *others: str) -> DuplicatePlan:
    members = [
        DuplicateMember(str(folder / name), 0.9, 8, 8, 20.0, 9, name == "best.mp4") for name in ("best.mp4", *others)
    ]
    return plan_removal([proven_group(tuple(members))])


def test_concurrent_plans_cannot_move_files_that_the_other_plan_keeps(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two users: while one process has read both files of a pair, the other process moves neither."""
    one = make_plan(folder, "spare.mp4")
    members = [DuplicateMember(str(folder / name), 0.9, 8, 8, 20.0, 9, name[0] == "s") for name in NAMES[:2]]
    other = plan_removal([proven_group(tuple(members))])
    seen: list[list[FileAction]] = []
    rename = disk.rename_new

    def meanwhile(source: str, target: str) -> None:
        monkeypatch.setattr(disk, "rename_new", rename)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of another user"))
        seen.append(carry_out(other, Journal(tmp_path / "other log"), folder=tmp_path / "other"))
        rename(source, target)

    monkeypatch.setattr(disk, "rename_new", meanwhile)
    first = carry_out(one, Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert first[0].outcome == "removed"
    ((action,),) = seen
    assert (action.outcome, action.cause[:38]) == ("skipped", "another process moves or keeps " + str(folder)[:7])
    (later, *_) = carry_out(other, Journal(tmp_path / "other log"), folder=tmp_path / "other")
    assert later.cause.startswith("the file to keep, ")
    assert (folder / "best.mp4").exists()

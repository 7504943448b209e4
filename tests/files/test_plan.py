"""Which copies a plan removes, which ones stay and why, and files that are not plans."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.plans import carry_out, proven_group
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.files import (
    DuplicatePlan,
    Journal,
    check_plan_is_settled,
    plan_text,
    read_plan,
    undo_plan,
    write_plan,
)
from vidkin.index import DuplicateMember, plan_removal


def member(folder: Path, name: str, **facts: object) -> DuplicateMember:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_bytes(os.fsencode(name) * 10)
    given = {"score": 0.9, "width": 8, "height": 8, "duration": 10.0, "size": 10 * len(name), "best": False}
    return DuplicateMember(str(path), **{**given, **facts})  # type: ignore[arg-type]


def test_each_reason_to_keep_a_copy_is_reported(tmp_path: Path) -> None:
    (tmp_path / "link.mp4").symlink_to(tmp_path / "best.mp4")
    members = (
        member(tmp_path, "best.mp4", best=True),
        member(tmp_path, "spare.mp4"),
        member(tmp_path, "longer.mp4", relation="contains", lacking=2.46),
        member(tmp_path, "doubt.mp4", doubt="little detail"),
        member(tmp_path, "link.mp4"),
        member(tmp_path, "names.mp4", links=("/other/name.mp4",)),
        member(tmp_path, "safe/kept.mp4"),
    )
    plan = plan_removal([proven_group(members, "most detail")], protected=[tmp_path / "safe"])
    (group,) = plan.groups
    assert [Path(file.path).name for file in group.remove] == ["spare.mp4"]
    assert {Path(file.path).name: file.why for file in group.stay} == {
        "longer.mp4": "the kept file is not proven to contain everything in it",
        "doubt.mp4": "doubtful: little detail",
        "link.mp4": "it is a symbolic link",
        "names.mp4": "it has other names, such as /other/name.mp4",
        "kept.mp4": f"it is in {tmp_path / 'safe'}, which is protected",
    }
    assert (group.keep.size, group.reason, plan.savings) == (80, "most detail", 90)


def test_group_with_nothing_to_remove_is_not_in_the_plan(tmp_path: Path) -> None:
    group = proven_group((member(tmp_path, "a.mp4", best=True), member(tmp_path, "b.mp4", doubt="dark")))
    assert plan_removal([group]).groups == ()


def test_plan_with_undecodable_names_round_trips(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.mp4")
    group = proven_group((member(tmp_path, "a.mp4", best=True), member(tmp_path, odd)))
    plan = plan_removal([group])
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    assert plan.groups[0].remove[0].path == str(tmp_path / odd)


def test_integers_in_a_plan_fit_into_a_double(tmp_path: Path) -> None:
    group = proven_group((member(tmp_path, "a.mp4", best=True), member(tmp_path, "b.mp4")))
    numbers = list[float]()
    json.loads(plan_text(plan_removal([group])), parse_int=lambda text: numbers.append(int(text)))
    assert numbers
    assert max(numbers) < 2**53


def test_entries_deleted_from_the_plan_file_are_not_carried_out(tmp_path: Path) -> None:
    group = proven_group((member(tmp_path, "a.mp4", best=True), member(tmp_path, "b.mp4")))
    write_plan(plan_removal([group]), tmp_path / "plan.json")
    table = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    table["groups"][0]["remove"] = []
    del table["groups"][0]["stay"], table["groups"][0]["reason"]
    (tmp_path / "plan.json").write_text(json.dumps(table), encoding="utf-8")
    plan = read_plan(tmp_path / "plan.json")
    assert (plan.savings, plan.groups[0].stay, plan.groups[0].reason) == (0, (), "")


def folders(plan: DuplicatePlan) -> list[object]:
    return [(file.folder, file.folder_number) for group in plan.groups for file in (group.keep, *group.remove)]


def test_plan_stores_the_folders_of_its_files(tmp_path: Path) -> None:
    group = proven_group((member(tmp_path, "a.mp4", best=True), member(tmp_path, "b.mp4")))
    plan = plan_removal([group])
    write_plan(plan, tmp_path / "plan.json")
    status = tmp_path.stat()
    assert folders(plan) == folders(read_plan(tmp_path / "plan.json"))
    assert folders(plan) == [(str(tmp_path), f"{status.st_dev}:{status.st_ino}")] * 2


def test_plan_whose_files_were_moved_is_not_overwritten(tmp_path: Path) -> None:
    """A plan is not overwritten, even through a link, until its files are restored or its log is deleted."""
    group = proven_group((member(tmp_path, "a.mp4", best=True), member(tmp_path, "b.mp4"), member(tmp_path, "c.mp4")))
    plan, path, log = plan_removal([group]), tmp_path / "plan.json", tmp_path / "plan.json.log"
    write_plan(plan, path, source="plan")
    write_plan(plan, path, source="plan")  # not applied yet
    (tmp_path / "link.json").symlink_to(path)
    journal = Journal.of_plan(tmp_path / "link.json")
    assert journal.path == log
    carry_out(plan, journal, folder=tmp_path / "away")
    before = path.read_bytes()
    other = replace(plan, groups=())
    for name in (path, tmp_path / "link.json"):
        with pytest.raises(InvalidArgumentError) as caught:
            write_plan(other, name, source="plan")
        assert str(caught.value) == (
            f"{name} is a plan that moved 2 files, and `vidkin apply --undo` needs it to restore them; "
            f"choose another name, undo this plan first, or delete {log} if you do not want them back"
        )
    assert path.read_bytes() == before
    undo_plan(journal, plan=replace(plan, groups=(replace(plan.groups[0], remove=plan.groups[0].remove[:1]),)))
    with pytest.raises(InvalidArgumentError, match="is a plan that moved 1 file, and `vidkin apply"):
        check_plan_is_settled(path)
    undo_plan(journal, plan=read_plan(path))
    write_plan(other, path, source="plan")
    assert read_plan(path).groups == ()
    log.write_text("another file\nof somebody\n")
    with pytest.raises(InvalidArgumentError, match=r"plan\.json\.log must be a log of `vidkin apply`: line 1"):
        write_plan(plan, path, source="plan")
    log.unlink()
    write_plan(plan, path, source="plan")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "Expecting value"),
        ("[]", "vidkin_plan must be 2, got None"),
        ("{}", "vidkin_plan must be 2, got None"),
        ('{"vidkin_plan": 1, "groups": []}', "vidkin_plan must be 2, got 1"),
        ('{"vidkin_plan": 2, "groups": [{"keep": {"path": "a.mp4"}}]}', "FileState must have the key 'size'"),
        ('{"vidkin_plan": 2, "groups": {}}', "DuplicatePlan.groups must be a list, got {}"),
    ],
)
def test_file_that_is_not_a_plan_is_refused(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgumentError) as caught:
        read_plan(tmp_path / "plan.json")
    assert f"must be a plan from `vidkin duplicates --plan`: {cause}" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ('"size": 1e999', "FileState.size must be integer, got inf"),
        ('"size": NaN', "FileState.size must be integer, got nan"),
        ('"size": true', "FileState.size must be integer, got True"),
        ('"size": "8"', "FileState.size must be integer, got '8'"),
        ('"size": -1', "size must be a nonnegative number of at most 63 bits, got -1"),
        ('"size": ' + "9" * 30, "size must be a nonnegative number of at most 63 bits, got 9999"),
        ('"modified": 1', "FileState.modified must be string, got 1"),
        ('"size": ' + "9" * 5001, "a number must have at most 100 digits, got more"),
        (r'"path": "/films/\u0000.mp4"', r"path must be a valid file name, got '/films/\x00.mp4'"),
        (r'"path": "/films/\ud800.mp4"', r"path must be a valid file name, got '/films/\ud800.mp4'"),
        ('"path": "a.mp4"', "path must be absolute, got 'a.mp4'"),
        ('"folder": null', "FileState.folder must be string, got None"),
        ('"folder": "films"', "folder must be absolute, got 'films'"),
    ],
)
def test_invalid_file_properties_are_refused_in_one_line(tmp_path: Path, change: str, cause: str) -> None:
    facts = '"size": 8, "modified": "1", "content": "", "folder": "/films", "folder_number": "1:2"'
    file = f'{{"path": "/films/a.mp4", {facts}, {change}}}'
    plan = tmp_path / "plan.json"
    plan.write_text(f'{{"vidkin_plan": 2, "groups": [{{"keep": {file}, "remove": []}}]}}', encoding="ascii")
    with pytest.raises(InvalidArgumentError) as caught:
        read_plan(plan)
    assert f"must be a plan from `vidkin duplicates --plan`: {cause}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_too_large_to_be_a_plan_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "plan.json").open("wb") as file:
        file.truncate(64_000_001)
    with pytest.raises(InvalidArgumentError, match="size must be at most 64,000,000 bytes, got more"):
        read_plan(tmp_path / "plan.json")


def test_missing_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="cannot be read: No such file or directory"):
        read_plan(tmp_path / "plan.json")
    spare = member(tmp_path, "b.mp4")
    group = proven_group((member(tmp_path, "a.mp4", best=True), spare))
    Path(spare.path).unlink()
    with pytest.raises(MediaError, match=r"b\.mp4.*cannot be read: No such file or directory"):
        plan_removal([group])

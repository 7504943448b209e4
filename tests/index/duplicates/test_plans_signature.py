"""Signed plans: an edited or forged entry is not carried out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import proven_group, with_proof
from vidkin.errors import InvalidArgumentError
from vidkin.index import (
    DuplicateMember,
    DuplicatePlan,
    Journal,
    PlanKey,
    apply_plan,
    key_of_plan,
    open_place,
    place_of_plan,
    plan_removal,
    read_plan,
    sign_plan,
    undo,
    write_plan,
)
from vidkin.index.duplicates.plans import FolderState


def member(path: Path, *, best: bool = False) -> DuplicateMember:
    return DuplicateMember(str(path), 0.9, 8, 8, 10.0, path.stat().st_size, best)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "c.vidkin").mkdir()
    return tmp_path / "c.vidkin"


@pytest.fixture
def plan(tmp_path: Path, index: Path) -> DuplicatePlan:
    groups = []
    for group in ("one", "two"):
        (tmp_path / group).mkdir()
        for name in ("best.mp4", "spare.mp4"):
            (tmp_path / group / name).write_bytes(f"{group} {name}".encode() * 9)
        paths = tmp_path / group / "best.mp4", tmp_path / group / "spare.mp4"
        groups.append(proven_group((member(paths[0], best=True), member(paths[1]))))
    return sign_plan(plan_removal(groups), open_place(index))


def outcomes(plan: DuplicatePlan, tmp_path: Path) -> list[str]:
    key = key_of_plan(place_of_plan(plan))
    return [a.outcome for a in apply_plan(plan, Journal(tmp_path / "log"), folder=tmp_path / "away", key=key)]


def test_a_signed_plan_is_carried_out_and_undone_from_its_file(plan: DuplicatePlan, tmp_path: Path) -> None:
    write_plan(plan, tmp_path / "plan.json")
    read = read_plan(tmp_path / "plan.json")
    assert outcomes(read, tmp_path) == ["removed", "removed"]
    actions = undo(Journal(tmp_path / "log"), plan=read, key=key_of_plan(place_of_plan(read)))
    assert [action.outcome for action in actions] == ["restored", "restored"]


def test_an_entry_that_a_person_deleted_leaves_the_others_signed(plan: DuplicatePlan, tmp_path: Path) -> None:
    assert outcomes(replace(plan, groups=plan.groups[1:]), tmp_path) == ["removed"]


def test_a_file_that_the_index_did_not_plan_is_refused(plan: DuplicatePlan, tmp_path: Path) -> None:
    first, second = plan.groups
    swapped = replace(second, keep=first.keep, remove=(with_proof(second.remove[0], first.keep),))
    mine = tmp_path / "mine.txt"
    mine.write_text("not a video")
    own = plan_removal([proven_group((member(Path(first.keep.path), best=True), member(mine)))]).groups[0]
    copied = replace(own.remove[0], signature=first.remove[0].signature)
    forged = replace(plan, groups=(first, swapped, own, replace(own, remove=(copied,))))
    assert outcomes(forged, tmp_path) == ["removed", "skipped", "skipped", "skipped"]
    assert mine.read_text() == "not a video"
    actions = apply_plan(forged, Journal(tmp_path / "other log"), folder=tmp_path / "away")
    assert [action.outcome for action in actions] == ["skipped", "removed", "removed", "skipped"]


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/films/other.mp4"},
        {"size": 1},
        {"mtime_ns": 1},
        {"content": "0" * 32},
        {"folder": None},
        {"folder": FolderState("/films", 1, 2)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_a_plan_says_about_a_file_is_signed(
    plan: DuplicatePlan, index: Path, change: dict[str, Any]
) -> None:
    key = PlanKey.read(open_place(index))
    assert key is not None
    group = plan.groups[0]
    (file,) = group.remove
    assert key.has_signed(group.keep, file)
    assert not key.has_signed(group.keep, replace(file, **change))
    assert not key.has_signed(replace(group.keep, **change), file)


def test_undo_leaves_what_the_index_did_not_plan(plan: DuplicatePlan, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log")
    apply_plan(plan, journal, folder=tmp_path / "away")
    unsigned = replace(
        plan,
        groups=tuple(
            replace(group, remove=tuple(replace(file, signature="é") for file in group.remove)) for group in plan.groups
        ),
    )
    actions = undo(journal, plan=unsigned, key=key_of_plan(place_of_plan(plan)))
    assert {action.cause.partition(":")[0] for action in actions} == {"its index did not plan this"}
    assert not (tmp_path / "one" / "spare.mp4").exists()


def test_the_key_is_for_its_owner_alone_and_made_once(plan: DuplicatePlan, index: Path) -> None:
    assert os.listdir(index) == ["plan.key"]
    assert (index / "plan.key").stat().st_mode & 0o777 == 0o600
    before = (index / "plan.key").read_bytes()
    assert sign_plan(plan, open_place(index)) == plan
    assert (index / "plan.key").read_bytes() == before


def test_a_key_that_a_crash_cut_off_is_made_again(index: Path) -> None:
    (index / "plan.key").write_bytes(b"12")
    assert PlanKey.read(open_place(index)) is None
    assert PlanKey.read_or_create(open_place(index)) is not None
    assert len((index / "plan.key").read_bytes()) == 64


def test_a_key_behind_a_link_is_not_read(plan: DuplicatePlan, index: Path, tmp_path: Path) -> None:
    (index / "plan.key").rename(tmp_path / "key")
    (index / "plan.key").symlink_to(tmp_path / "key")
    with pytest.raises(InvalidArgumentError, match=r"a plan must be signed by its index, but .* has no plan\.key"):
        key_of_plan(place_of_plan(plan))


def test_an_index_that_only_shows_makes_no_key(plan: DuplicatePlan, tmp_path: Path) -> None:
    (tmp_path / "other.vidkin").mkdir()
    unsigned = replace(plan, index="")
    assert sign_plan(unsigned, open_place(tmp_path / "other.vidkin"), create=False) == unsigned
    assert os.listdir(tmp_path / "other.vidkin") == []


def test_a_plan_without_a_signature_says_what_to_do(plan: DuplicatePlan, index: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"a plan must be signed by its index, got one without .* --any-file"
    ):
        place_of_plan(replace(plan, index=""))
    index.rename(tmp_path / "moved.vidkin")
    with pytest.raises(InvalidArgumentError, match="name the index with --made-from, or pass --any-file"):
        key_of_plan(place_of_plan(plan))
    assert key_of_plan(open_place(tmp_path / "moved.vidkin")).has_signed(plan.groups[0].keep, plan.groups[0].remove[0])


@pytest.mark.parametrize("address", ["s3://bucket/index", "\ud800", "/a\0b", "relative"])
def test_a_plan_reaches_out_to_no_address(plan: DuplicatePlan, address: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match="the index of a plan must be a folder or be named with --made-from, got"
    ):
        place_of_plan(replace(plan, index=address))

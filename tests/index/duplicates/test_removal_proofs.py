"""A plan moves only what is proven: proofs in the plan, proofs that are missing, of other files, or forged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import proof_of, proven_group
from vidkin.errors import InvalidArgumentError
from vidkin.files import Finding, Proof
from vidkin.index import (
    DuplicateGroup,
    DuplicateMember,
    DuplicatePlan,
    FileAction,
    Journal,
    apply_plan,
    key_of_plan,
    open_place,
    place_of_plan,
    plan_removal,
    read_plan,
    sign_plan,
    write_plan,
)

NO_PROOF = "the plan has no proof that the file to keep holds everything in it; make the plan again"


def member(path: Path, *, best: bool = False) -> DuplicateMember:
    return DuplicateMember(str(path), 0.9, 8, 8, 10.0, path.stat().st_size, best)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    for name in ("best", "spare", "other"):
        (folder / f"{name}.mp4").write_bytes(name.encode() * 9)
    return folder


@pytest.fixture
def members(folder: Path) -> tuple[DuplicateMember, ...]:
    best, spare, other = (member(folder / f"{name}.mp4", best=name == "best") for name in ("best", "spare", "other"))
    return best, spare, other


@pytest.fixture
def plan(members: tuple[DuplicateMember, ...]) -> DuplicatePlan:
    return plan_removal([proven_group(members[:2], "best frames")])


def applied(plan: DuplicatePlan, folder: Path, **options: Any) -> FileAction:
    (action,) = apply_plan(plan, Journal(folder.parent / "log"), folder=folder.parent / "away", **options)
    assert (folder / "spare.mp4").exists() == (action.outcome != "removed")
    return action


def without_proof(plan: DuplicatePlan) -> DuplicatePlan:
    (group,) = plan.groups
    return replace(plan, groups=(replace(group, remove=(replace(group.remove[0], proof=None),)),))


def test_nothing_is_planned_that_is_not_proven(members: tuple[DuplicateMember, ...]) -> None:
    """Whatever the score: without proofs, with findings, and for a file that is held by nothing."""
    finding = Finding("picture", "0:09.0-0:14.0 shows something else", 9.0, 14.0)
    best, spare, other = members
    found = replace(spare, findings=(finding,), doubt=finding.text, proof=proof_of(best.path, spare.path))
    assert plan_removal([DuplicateGroup(members)]).groups == ()
    assert plan_removal([DuplicateGroup((best, found, other))]).groups == ()
    (group,) = plan_removal([proven_group((best, found, other))]).groups
    assert [Path(file.path).name for file in group.remove] == ["other.mp4"]
    assert [file.why for file in group.stay] == ["doubtful: 0:09.0-0:14.0 shows something else"]


def test_each_file_goes_for_the_one_that_is_proven_to_hold_it(members: tuple[DuplicateMember, ...]) -> None:
    best, spare, other = members
    last = replace(other, kept_by=spare.path, proof=proof_of(spare.path, other.path))
    (group,) = plan_removal([DuplicateGroup((best, spare, last), "most sound")]).groups
    assert (group.keep.path, group.reason) == (spare.path, "holds all of the others of it")
    assert [file.path for file in group.remove] == [other.path]
    assert [(file.path, file.why) for file in group.stay] == [
        (spare.path, "nothing proves that the kept file holds everything in it")
    ]


@pytest.mark.parametrize("name", ["best.mp4", "spare.mp4"])
def test_a_file_that_changed_since_it_was_decoded_is_not_planned(
    members: tuple[DuplicateMember, ...], folder: Path, name: str
) -> None:
    group = proven_group(members)
    (folder / name).write_bytes(b"another video")
    planned = plan_removal([group]).groups
    assert [Path(file.path).name for each in planned for file in each.remove] == (
        [] if name == "best.mp4" else ["other.mp4"]
    )
    stay = [file.why for each in planned for file in each.stay]
    assert set(stay) <= {"it or the file to keep changed since they were decoded"}
    assert len(stay) == len(planned)


def test_a_proof_is_part_of_the_file_of_a_plan(plan: DuplicatePlan, tmp_path: Path, folder: Path) -> None:
    accepted = (Finding("frame-rate", "50 frames a second, the kept file has 25"),)
    proof = replace(proof_of(folder / "best.mp4", folder / "spare.mp4"), findings=accepted)
    members = replace(member(folder / "spare.mp4"), kept_by=str(folder / "best.mp4"), proof=proof)
    plan = plan_removal([DuplicateGroup((member(folder / "best.mp4", best=True), members))])
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    (file,) = json.loads((tmp_path / "plan.json").read_text())["groups"][0]["remove"]
    (kept, removed) = proof.kept_content, proof.removed_content
    assert file["proof"] == {
        "kept_content": kept,
        "removed_content": removed,
        "revision": proof.revision,
        "accepted": ["50 frames a second, the kept file has 25"],
    }
    assert (plan.groups[0].keep.content, file["content"]) == (kept, removed)
    assert applied(read_plan(tmp_path / "plan.json"), folder).outcome == "removed"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"revision": "1"}, "ValueError: revision of a proof must be a whole number, got 1"),
        ({"accepted": None}, "TypeError"),
        ({"kept_content": ...}, "KeyError: 'kept_content'"),
    ],
)
def test_a_proof_that_is_none_makes_no_plan(
    plan: DuplicatePlan, tmp_path: Path, change: dict[str, Any], cause: str
) -> None:
    path = tmp_path / "plan.json"
    write_plan(plan, path)
    table = json.loads(path.read_text())
    proof = table["groups"][0]["remove"][0]["proof"]
    proof |= change
    for name in [name for name, value in proof.items() if value is ...]:
        del proof[name]
    path.write_text(json.dumps(table))
    with pytest.raises(InvalidArgumentError) as caught:
        read_plan(path)
    assert f"must be a plan from `vidkin duplicates --plan`: {cause}" in str(caught.value)


def test_a_plan_without_a_proof_moves_nothing(plan: DuplicatePlan, folder: Path) -> None:
    action = applied(without_proof(plan), folder)
    assert (action.outcome, action.cause) == ("skipped", NO_PROOF)


@pytest.mark.parametrize("change", [{"kept_content": "0" * 32}, {"removed_content": "0" * 32}, {"revision": 0}])
def test_a_proof_of_other_files_or_of_an_earlier_method_moves_nothing(
    plan: DuplicatePlan, folder: Path, change: dict[str, Any]
) -> None:
    (group,) = plan.groups
    (file,) = group.remove
    assert file.proof is not None
    other = replace(file, proof=replace(file.proof, **change))
    action = applied(replace(plan, groups=(replace(group, remove=(other,)),)), folder)
    assert (action.outcome, action.cause) == ("skipped", NO_PROOF)


def test_a_forged_proof_is_not_what_the_index_signed(plan: DuplicatePlan, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "c.vidkin").mkdir()
    place = open_place(tmp_path / "c.vidkin")
    proven = plan.groups[0].remove[0].proof
    signed = sign_plan(without_proof(plan), place)
    (group,) = signed.groups
    forged = replace(signed, groups=(replace(group, remove=(replace(group.remove[0], proof=proven),)),))
    key = key_of_plan(place_of_plan(forged))
    assert applied(forged, folder, key=key).cause.startswith("its index did not plan this")
    assert applied(signed, folder, key=key).cause == NO_PROOF
    assert applied(sign_plan(plan, place), folder, key=key).outcome == "removed"


def test_what_the_plan_has_no_proof_of_is_proven_before_it_moves(plan: DuplicatePlan, folder: Path) -> None:
    asked: list[tuple[str, str]] = []

    def prove(kept: str, removed: str) -> Proof:
        asked.append((kept, removed))
        return proof_of(kept, removed)

    assert applied(without_proof(plan), folder, prove=prove).outcome == "removed"
    assert asked == [(str(folder / "best.mp4"), str(folder / "spare.mp4"))]


def test_what_the_plan_has_a_proof_of_is_not_proven_again(plan: DuplicatePlan, folder: Path) -> None:
    def refuse(kept: str, removed: str) -> Proof:
        raise AssertionError(f"{removed} is proven again")

    assert applied(plan, folder, prove=refuse).outcome == "removed"


@pytest.mark.parametrize(
    ("prove", "cause"),
    [
        (
            lambda kept, removed: replace(
                proof_of(kept, removed),
                findings=(Finding("sound", "its sound is missing"), Finding("ends", "it begins earlier")),
            ),
            "its sound is missing; it begins earlier",
        ),
        (
            lambda kept, removed: replace(proof_of(kept, removed), kept_content="0" * 32),
            "it or the file to keep changed while they were decoded",
        ),
    ],
)
def test_what_the_proof_does_not_hold_for_stays(
    plan: DuplicatePlan, folder: Path, prove: Callable[[str, str], Proof], cause: str
) -> None:
    action = applied(without_proof(plan), folder, prove=prove)
    assert (action.outcome, action.cause) == ("skipped", cause)

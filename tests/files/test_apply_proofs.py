"""A plan moves only files with a proof: missing, outdated, forged and failed proofs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import carry_out, proof_of, proven_group
from vidkin.files import (
    PROOF_REVISION,
    DuplicatePlan,
    FileAction,
    FileState,
    Finding,
    Journal,
    PlannedGroup,
    Proof,
    read_plan,
    write_plan,
)
from vidkin.index import DuplicateGroup, DuplicateMember, plan_removal


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


def apply_plan(plan: DuplicatePlan, folder: Path, **options: Any) -> FileAction:
    (action,) = carry_out(plan, Journal(folder.parent / "log"), folder=folder.parent / "away", **options)
    assert (folder / "spare.mp4").exists() == (action.outcome != "removed")
    return action


def test_files_without_a_proof_are_not_planned(members: tuple[DuplicateMember, ...]) -> None:
    """This holds whatever the score: without proofs, with findings, and for a file that no other file contains."""
    finding = Finding("picture", "0:09.0-0:14.0 shows something else", 9.0, 14.0)
    best, spare, other = members
    found = replace(spare, findings=(finding,), doubt=finding.text, proof=proof_of(best.path, spare.path))
    assert plan_removal([DuplicateGroup(members)]).groups == ()
    assert plan_removal([DuplicateGroup((best, found, other))]).groups == ()
    (group,) = plan_removal([proven_group((best, found, other))]).groups
    assert [Path(file.path).name for file in group.remove] == ["other.mp4"]
    assert [file.why for file in group.stay] == ["doubtful: 0:09.0-0:14.0 shows something else"]


def test_each_file_is_removed_only_for_the_file_that_contains_it(members: tuple[DuplicateMember, ...]) -> None:
    best, spare, other = members
    last = replace(other, kept_by=spare.path, proof=proof_of(spare.path, other.path))
    (group,) = plan_removal([DuplicateGroup((best, spare, last), "most sound")]).groups
    assert (group.keep.path, group.reason) == (spare.path, "contains everything in the removed files")
    assert [file.path for file in group.remove] == [other.path]
    assert [(file.path, file.why) for file in group.stay] == [
        (spare.path, "the kept file is not proven to contain everything in it")
    ]


@pytest.mark.parametrize("name", ["best.mp4", "spare.mp4"])
def test_file_that_changed_after_decoding_is_not_planned(
    members: tuple[DuplicateMember, ...], folder: Path, name: str
) -> None:
    group = proven_group(members)
    (folder / name).write_bytes(b"another video")
    planned = plan_removal([group]).groups
    assert [Path(file.path).name for each in planned for file in each.remove] == (
        [] if name == "best.mp4" else ["other.mp4"]
    )
    stay = [file.why for each in planned for file in each.stay]
    assert set(stay) <= {"it or the file to keep has changed since they were decoded"}
    assert len(stay) == len(planned)


def test_outdated_proof_does_not_count(members: tuple[DuplicateMember, ...]) -> None:
    best, spare, _ = members
    earlier = replace(proof_of(best.path, spare.path), revision=PROOF_REVISION - 1)
    assert plan_removal([DuplicateGroup((best, replace(spare, kept_by=best.path, proof=earlier)))]).groups == ()


def test_accepted_findings_are_stored_in_the_plan_file(tmp_path: Path, folder: Path) -> None:
    accepted = (Finding("frame-rate", "50 frames a second, the kept file has 25"),)
    proof = replace(proof_of(folder / "best.mp4", folder / "spare.mp4"), findings=accepted)
    spare = replace(member(folder / "spare.mp4"), kept_by=str(folder / "best.mp4"), proof=proof)
    plan = plan_removal([DuplicateGroup((member(folder / "best.mp4", best=True), spare))])
    write_plan(plan, tmp_path / "plan.json")
    read = read_plan(tmp_path / "plan.json")
    assert read == plan
    assert read.groups[0].remove[0].accepted == ("50 frames a second, the kept file has 25",)
    assert apply_plan(read, folder, prove=lambda kept, removed: proof).outcome == "removed"


def test_apply_repeats_the_proof_of_each_file_in_a_plan_file(plan: DuplicatePlan, folder: Path) -> None:
    finding = Finding("picture", "0:09.0-0:14.0 shows something else", 9.0, 14.0)

    def prove(kept: str, removed: str) -> Proof:
        return replace(proof_of(kept, removed), findings=(finding,))

    action = apply_plan(plan, folder, prove=prove)
    assert (action.outcome, action.cause) == ("skipped", finding.text)


@pytest.mark.parametrize("kind", ["frame-rate", "picture", "ends", "enlargement"])
def test_plan_can_accept_a_property_but_not_lost_frames(plan: DuplicatePlan, folder: Path, kind: Any) -> None:
    finding = Finding(kind, "what the kept file lacks")
    (group,) = plan.groups
    (file,) = group.remove
    listed = replace(file, accepted=(finding.text,))

    def prove(kept: str, removed: str) -> Proof:
        return replace(proof_of(kept, removed), findings=(finding,))

    action = apply_plan(replace(plan, groups=(replace(group, remove=(listed,)),)), folder, prove=prove)
    assert action.outcome == ("removed" if kind == "frame-rate" else "skipped")


def test_identical_files_are_not_decoded(plan: DuplicatePlan, folder: Path) -> None:
    def refuse(kept: str, removed: str) -> Proof:
        raise AssertionError(f"{removed} is proven")

    (folder / "spare.mp4").write_bytes((folder / "best.mp4").read_bytes())
    keep, same = (FileState.of(str(folder / f"{name}.mp4")) for name in ("best", "spare"))
    same_plan = DuplicatePlan((PlannedGroup(keep, "", (same,)),))
    assert apply_plan(same_plan, folder, prove=refuse).outcome == "removed"


def test_each_pair_is_proven_before_its_file_is_moved(plan: DuplicatePlan, folder: Path) -> None:
    asked: list[tuple[str, str]] = []

    def prove(kept: str, removed: str) -> Proof:
        asked.append((kept, removed))
        return proof_of(kept, removed)

    assert apply_plan(plan, folder, prove=prove).outcome == "removed"
    assert asked == [(str(folder / "best.mp4"), str(folder / "spare.mp4"))]


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
def test_file_stays_if_its_proof_fails(
    plan: DuplicatePlan, folder: Path, prove: Callable[[str, str], Proof], cause: str
) -> None:
    action = apply_plan(plan, folder, prove=prove)
    assert (action.outcome, action.cause) == ("skipped", cause)

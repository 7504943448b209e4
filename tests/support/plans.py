"""Duplicate groups and plans with simulated proofs, for tests of what plans do with files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vidkin._base.files import hash_file
from vidkin.files import DuplicatePlan, FileAction, Journal, Proof, apply_plan
from vidkin.index import DuplicateGroup, DuplicateMember


def proof_of(kept: str | Path, removed: str | Path) -> Proof:
    """A proof without findings for the current content of two files, whatever it is."""
    return Proof(str(kept), str(removed), hash_file(str(kept)), hash_file(str(removed)))


def carry_out(plan: DuplicatePlan, journal: Journal, **options: Any) -> list[FileAction]:
    """Apply a plan to files that need not be videos, with simulated proofs."""
    return apply_plan(plan, journal, **{"prove": proof_of, **options})


def proven_group(members: Sequence[DuplicateMember], reason: str = "") -> DuplicateGroup:
    """A group in which every spare member is proven to be contained in the best file."""
    best = next(member for member in members if member.best)
    proven = [
        replace(member, kept_by=best.path, proof=proof_of(best.path, member.path)) if member.is_spare else member
        for member in members
    ]
    return DuplicateGroup(tuple(proven), reason)

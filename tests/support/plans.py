"""Groups of copies as if decoding had proven which of them can be removed: for tests of what plans do with files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vidkin._base.files import hash_file
from vidkin.files import PROOF_REVISION, Proof
from vidkin.index import DuplicateGroup, DuplicateMember, FileState, PlannedProof


def proof_of(kept: str | Path, removed: str | Path) -> Proof:
    """A proof without findings of two files as they are now, whatever they hold."""
    return Proof(str(kept), str(removed), hash_file(str(kept)), hash_file(str(removed)))


def with_proof(file: FileState, keep: FileState) -> FileState:
    """A file to remove with a proof that the file to keep holds everything in it, as both were read."""
    return replace(file, proof=PlannedProof(keep.content, file.content, PROOF_REVISION))


def proven_group(members: Sequence[DuplicateMember], reason: str = "") -> DuplicateGroup:
    """A group in which the best file is proven to hold everything of each other one that nothing speaks against."""
    best = next(member for member in members if member.best)
    proven = [
        replace(member, kept_by=best.path, proof=proof_of(best.path, member.path)) if member.is_spare else member
        for member in members
    ]
    return DuplicateGroup(tuple(proven), reason)

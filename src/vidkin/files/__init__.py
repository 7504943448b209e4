"""Prove that one video file contains everything in another, and plan to move such files away or restore them."""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.files.apply import apply_plan
    from vidkin.files.findings import Finding
    from vidkin.files.journal import Journal, RemovalStep
    from vidkin.files.locks import hold_removals
    from vidkin.files.plan import (
        DuplicatePlan,
        FileAction,
        FileState,
        PlannedGroup,
        StayingFile,
        check_plan_is_settled,
        plan_text,
        read_plan,
        write_plan,
    )
    from vidkin.files.proof import Prover, prove
    from vidkin.files.proof_record import PROOF_REVISION, Proof
    from vidkin.files.stretches import TimeStretch
    from vidkin.files.undo import undo_plan
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "PROOF_REVISION",
    "DuplicatePlan",
    "FileAction",
    "FileState",
    "Finding",
    "Journal",
    "PlannedGroup",
    "Proof",
    "Prover",
    "RemovalStep",
    "StayingFile",
    "TimeStretch",
    "apply_plan",
    "check_plan_is_settled",
    "hold_removals",
    "plan_text",
    "prove",
    "read_plan",
    "undo_plan",
    "write_plan",
]

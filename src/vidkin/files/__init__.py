"""Proofs that one video file contains everything in another, so that the other can be removed without loss."""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.files.findings import Finding
    from vidkin.files.proof import Prover, prove
    from vidkin.files.proof_record import PROOF_REVISION, Proof
    from vidkin.files.stretches import TimeStretch
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "PROOF_REVISION",
    "Finding",
    "Proof",
    "Prover",
    "TimeStretch",
    "prove",
]

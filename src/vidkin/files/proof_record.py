"""Result of a proof, as it is stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from vidkin._base.values import Result
from vidkin.files.findings import Finding, FindingKind
from vidkin.files.stretches import TimeStretch

PROOF_REVISION = 3
"""Incremented when the findings for the same files can change; stored proofs of other revisions are redone."""


@dataclass(frozen=True, slots=True)
class Proof(Result):
    """Result of comparing a removed file with a kept file, after decoding both in full.

    Attributes:
        kept, removed: Paths of the file that stays and the file that may be removed.
        kept_content, removed_content: Hashes of their contents when they were read.
        findings: Content of the removed file that the kept file lacks; empty if nothing is lost.
        stretches: Times of the removed file in the kept file.
        revision: Revision of the method.
    """

    kept: str
    removed: str
    kept_content: str
    removed_content: str
    findings: tuple[Finding, ...] = ()
    stretches: tuple[TimeStretch, ...] = ()
    revision: int = PROOF_REVISION

    @property
    def holds(self) -> bool:
        """Whether everything in the removed file is in the kept one."""
        return not self.findings

    def missing(self, accepted: Collection[FindingKind] = ()) -> tuple[Finding, ...]:
        """Findings whose kind is not accepted."""
        return tuple(finding for finding in self.findings if finding.kind not in accepted)

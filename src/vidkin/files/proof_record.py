"""Result of a proof, in the form in which it is stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from vidkin._base.values import Result
from vidkin.files.findings import Finding, FindingKind
from vidkin.files.stretches import TimeStretch

PROOF_REVISION = 3
"""Increment this when the findings for the same files can change; stored proofs of other revisions are then redone."""


@dataclass(frozen=True, slots=True)
class Proof(Result):
    """Result of comparing a removed file with a kept file, after decoding both completely.

    Attributes:
        kept, removed: Paths of the file that stays and the file that may be removed.
        kept_content, removed_content: Hashes of their contents when the files were read.
        findings: Content of the removed file that the kept file lacks; empty if nothing is lost.
        stretches: Map from times in the removed file to times in the kept file.
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
        """Whether everything in the removed file is in the kept file."""
        return not self.findings

    def missing(self, accepted: Collection[FindingKind] = ()) -> tuple[Finding, ...]:
        """Return the findings whose kind is not accepted."""
        return tuple(finding for finding in self.findings if finding.kind not in accepted)

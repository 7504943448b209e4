"""What was proven of two files, as it is stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from vidkin._base.values import Result
from vidkin.files.findings import Finding, FindingKind
from vidkin.files.stretches import TimeStretch

PROOF_REVISION = 3
"""Raised when the same two files would get other findings: a stored proof of another revision is made again."""


@dataclass(frozen=True, slots=True)
class Proof(Result):
    """What is known of two files after all of both was decoded.

    Attributes:
        kept, removed: Paths of the file that stays and of the one that may be removed.
        kept_content, removed_content: Hashes of all their bytes when they were read.
        findings: What the removed file has that the kept one lacks; empty if everything in it stays.
        stretches: The moments of the removed file in the kept one.
        revision: Of the method.
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
        """The findings of kinds that were not accepted."""
        return tuple(finding for finding in self.findings if finding.kind not in accepted)

"""Facts about the pairs of files in a group, known or computed on demand."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.files.findings import NEVER_ACCEPTED, Finding, FindingKind
from vidkin.files.proof import Prover
from vidkin.files.proof_record import Proof
from vidkin.index.duplicates.comparisons import FileRecord, PairResult, content_of
from vidkin.index.duplicates.differences import Difference, find_differences
from vidkin.index.duplicates.heard import HeardPairs
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.duplicates.scope import Scope
from vidkin.index.duplicates.traits import Traits
from vidkin.index.query.sound import By
from vidkin.index.storage.decisions import Decisions
from vidkin.similarity import SURE

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GroupRules:
    """The caller's settings for groups.

    Attributes:
        decisions: Decisions stored in the index.
        order: Columns and folders that define which file is preferred.
        threshold: Minimum score of two videos in one group.
        parts: Whether excerpts count as copies.
        prove: Whether files are decoded to prove which can be removed.
        accepted: Kinds of findings that do not matter.
        scope: Which pairs are compared.
        by: Evidence used for the score of a pair.
        chosen: Paths of the files that may be removed; None for all.
    """

    decisions: Decisions
    order: Sequence[str]
    threshold: float = SURE
    parts: bool = False
    prove: bool = False
    accepted: frozenset[FindingKind] = frozenset()
    scope: Scope = field(default_factory=Scope)
    by: By = "picture"
    chosen: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class GroupPairs:
    """Results, differences and proofs for the pairs of files in a group.

    Several groups may use it in parallel: access to the results, the index and the extractor is serialized, decoding is
    not.

    Attributes:
        search, heard: Compare pairs by picture and by sound, and remember the results.
        rules: The caller's settings.
        read_files: Open files to determine unknown values.
        is_known_only: Use known results only, and compare nothing.
        threads: Threads that decode a file for a proof; 0 for one for each processor.
    """

    search: PairSearch
    heard: HeardPairs
    rules: GroupRules
    read_files: bool = True
    is_known_only: bool = False
    threads: int = 0

    def is_confirmed(self, first: FileRecord, second: FileRecord) -> bool:
        """Whether the user confirmed that two files are copies."""
        return self.rules.decisions.verdict(content_of(first.record), content_of(second.record)) == "match"

    def seen(self, first: FileRecord, second: FileRecord, *, finely: bool = False) -> PairResult:
        """The result by picture; with ``finely`` from frames sampled as densely as those of queries."""
        one, other = content_of(first.record), content_of(second.record)
        if one == other:
            return PairResult(1.0, True, (1.0, 1.0))
        if self.is_known_only:
            result = self.search.known.get(one, other) or PairResult(0.0)
        else:
            with self.heard.lock:
                compare = self.search.refine if finely and self.read_files else self.search.compare
                result = compare(first.record, second.record)
        return PairResult(1.0, True, (1.0, 1.0), result.segments) if self.is_confirmed(first, second) else result

    def ruled(self, first: FileRecord, second: FileRecord) -> PairResult:
        """The result by the evidence that groups use: the picture, unless sound was requested."""
        seen = self.seen(first, second)
        if self.rules.by == "picture" or self.is_confirmed(first, second):
            return seen
        lengths = first.record.duration, second.record.duration
        return self.heard.result(content_of(first.record), content_of(second.record), seen, lengths)

    def sound(self, first: FileRecord, second: FileRecord) -> float | None:
        """The sound score of two files; None if it is unknown, or if nothing may be compared."""
        return None if self.is_known_only else self.heard.score(content_of(first.record), content_of(second.record))

    def different_sound(self, first: FileRecord, second: FileRecord) -> str:
        """A doubt if the sound of two files has nothing in common, unless the user confirmed that they are copies."""
        is_sure = self.is_known_only or self.is_confirmed(first, second)
        return "" if is_sure else self.heard.difference(content_of(first.record), content_of(second.record))

    def differences(self, first: FileRecord, second: FileRecord) -> tuple[Difference, ...]:
        """How the first file differs from the second; determined once per pair, and only if files may be read."""
        known, key = self.search.known, f"{content_of(first.record)} {content_of(second.record)}"
        try:
            if key in known.differences:
                return tuple(Difference(**fields) for fields in known.differences[key])
        except (TypeError, InvalidArgumentError) as error:
            _logger.debug("%s; the kind of a copy is looked at again", error)
        if self.search.readings is None or not self.read_files:
            return ()
        try:
            differences = find_differences(first, second, self.seen(first, second))
        except MediaError as error:
            _logger.info("%s; what kind of copy it is was not looked at", error)
            return ()
        with self.heard.lock:
            known.differences[key] = [difference.to_dict() for difference in differences]
            known.save_now_and_then()
        return differences

    def traits(self, file: FileRecord, prover: Prover) -> Traits | None:
        """Frame rate, sound tracks, date and the like; None if the file was not opened and must not be."""
        known, content = self.search.known, content_of(file.record)
        if content in known.traits or not self.read_files:
            return known.traits.get(content)
        try:
            traits = Traits.of(prover.facts(file.record.path))
        except MediaError as error:
            _logger.info("%s; its tracks and tags are not known", error)
            return None
        with self.heard.lock:
            known.traits[content] = traits
        return traits

    def proof(
        self,
        kept: FileRecord,
        removed: FileRecord,
        prover: Prover,
        on_progress: Callable[[float], None] | None = None,
    ) -> Proof | None:
        """The proof that everything in one file is in another; None if it is unknown and nothing may be decoded."""
        contents, known = (content_of(kept.record), content_of(removed.record)), self.search.known
        paths = kept.record.path, removed.record.path
        proof = known.proof(*contents)
        if proof is None and self.rules.prove:
            result = self.seen(removed, kept)
            if result.score < self.rules.threshold or not result.segments:
                result = self.seen(removed, kept, finely=True)
            proof = prover.prove(*paths, result.segments, on_progress=on_progress)
            # A proof is stored only if both files still have the contents that were indexed.
            if not (has_other_state(kept) or has_other_state(removed)):
                with self.heard.lock:
                    known.put_proof(*contents, proof)
                    known.save_now_and_then()
        return None if proof is None else replace(proof, kept=paths[0], removed=paths[1])

    def findings(self, kept: FileRecord, removed: FileRecord, proof: Proof) -> tuple[Finding, ...]:
        """The findings that matter: those of kinds that were not accepted. For two files that the user confirmed as
        copies, findings that cannot be accepted do not matter either."""
        confirmed = NEVER_ACCEPTED - {"unreadable"} if self.is_confirmed(kept, removed) else frozenset[FindingKind]()
        return proof.missing(self.rules.accepted | confirmed)


def has_other_state(file: FileRecord) -> bool:
    """Whether the size or the date of a file has changed since it was indexed."""
    try:
        state = os.stat(file.record.path)
    except OSError:
        return True
    return (state.st_size, state.st_mtime_ns) != (file.record.size, file.record.mtime_ns)

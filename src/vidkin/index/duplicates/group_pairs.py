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
    """What a caller asks of groups.

    Attributes:
        decisions: Decisions stored in the index.
        order: Columns and folders that say which file is preferred.
        threshold: Score from which on two videos belong together.
        parts: Excerpts are copies, too.
        prove: Decode files to prove what can be removed.
        accepted: Kinds of findings that do not matter.
        scope: Which pairs are compared.
        by: What the score of a pair is made of.
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
    """Results, differences and proofs for pairs of files of a group.

    Several groups may ask at a time: what is known and what reads the index or the extractor is used by one at a time,
    decoding is not.

    Attributes:
        search, heard: Compare pairs by picture and by sound, and remember the results.
        rules: What was asked for.
        read_files: Open files for what is not known of them.
        is_known_only: Compare nothing that is not known.
        threads: Threads that decode a file for a proof; 0 for one for each processor.
    """

    search: PairSearch
    heard: HeardPairs
    rules: GroupRules
    read_files: bool = True
    is_known_only: bool = False
    threads: int = 0

    def is_confirmed(self, first: FileRecord, second: FileRecord) -> bool:
        """Whether the user said that two files are copies."""
        return self.rules.decisions.verdict(content_of(first.record), content_of(second.record)) == "match"

    def seen(self, first: FileRecord, second: FileRecord, *, finely: bool = False) -> PairResult:
        """The result of the picture; with ``finely`` from a reading as fine as that of queries."""
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
        """The result by the rule that groups follow: of the picture, unless the sound is asked."""
        seen = self.seen(first, second)
        if self.rules.by == "picture" or self.is_confirmed(first, second):
            return seen
        lengths = first.record.duration, second.record.duration
        return self.heard.result(content_of(first.record), content_of(second.record), seen, lengths)

    def sound(self, first: FileRecord, second: FileRecord) -> float | None:
        """What the sound says of two files; None where it is not known, or not asked meanwhile."""
        return None if self.is_known_only else self.heard.score(content_of(first.record), content_of(second.record))

    def different_sound(self, first: FileRecord, second: FileRecord) -> str:
        """A doubt where the sound of two files has nothing in common, unless the user said that they are copies."""
        is_sure = self.is_known_only or self.is_confirmed(first, second)
        return "" if is_sure else self.heard.difference(content_of(first.record), content_of(second.record))

    def differences(self, first: FileRecord, second: FileRecord) -> tuple[Difference, ...]:
        """How the first file differs from the second; looked at once per pair, if files are read at all."""
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
        """Frame rate, sound tracks, date and the like; None where the file was not opened and is not to be."""
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
        """Whether everything in one file is in another; None where it is not known and nothing is to be decoded."""
        contents, known = (content_of(kept.record), content_of(removed.record)), self.search.known
        paths = kept.record.path, removed.record.path
        proof = known.proof(*contents)
        if proof is None and self.rules.prove:
            result = self.seen(removed, kept)
            if result.score < self.rules.threshold or not result.segments:
                result = self.seen(removed, kept, finely=True)
            proof = prover.prove(*paths, result.segments, on_progress=on_progress)
            # Of other contents than those that the index knows, nothing is to be remembered.
            if not (has_other_state(kept) or has_other_state(removed)):
                with self.heard.lock:
                    known.put_proof(*contents, proof)
                    known.save_now_and_then()
        return None if proof is None else replace(proof, kept=paths[0], removed=paths[1])

    def findings(self, kept: FileRecord, removed: FileRecord, proof: Proof) -> tuple[Finding, ...]:
        """The findings that matter: those of no accepted kind, and of two files that somebody confirmed as copies what
        cannot be accepted otherwise does not matter either."""
        confirmed = NEVER_ACCEPTED - {"unreadable"} if self.is_confirmed(kept, removed) else frozenset[FindingKind]()
        return proof.missing(self.rules.accepted | confirmed)


def has_other_state(file: FileRecord) -> bool:
    """Whether a file has another size or date than when the index read it."""
    try:
        state = os.stat(file.record.path)
    except OSError:
        return True
    return (state.st_size, state.st_mtime_ns) != (file.record.size, file.record.mtime_ns)

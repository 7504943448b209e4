"""Results for the pairs of files in a group, cached or computed on demand."""

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
        decisions: User decisions saved in the index.
        order: Columns and folders that determine which file is preferred.
        threshold: Minimum score of two videos in a group.
        parts: Whether to group excerpts as well.
        prove: Whether to decode files to prove which can be removed.
        accepted: Kinds of findings to ignore.
        scope: Which pairs to compare.
        by: Basis of the scores.
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

    Groups may be processed in parallel: access to the results, the index and the extractor is serialized, decoding is
    not.

    Attributes:
        search, heard: Compare pairs by picture and by sound, and cache the results.
        rules: The caller's settings.
        read_files: Whether to open files to determine unknown values.
        is_known_only: Whether to use cached results only, without comparing further pairs.
        threads: Number of decoder threads for proofs; 0 for one per processor.
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
        """Return the result by picture; with ``finely``, from frames sampled as densely as those of queries."""
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
        """Return the result on the basis requested for groups (``rules.by``)."""
        seen = self.seen(first, second)
        if self.rules.by == "picture" or self.is_confirmed(first, second):
            return seen
        lengths = first.record.duration, second.record.duration
        return self.heard.result(content_of(first.record), content_of(second.record), seen, lengths)

    def sound(self, first: FileRecord, second: FileRecord) -> float | None:
        """Return the sound score of two files; None if it is unknown, or if only cached results may be used."""
        return None if self.is_known_only else self.heard.score(content_of(first.record), content_of(second.record))

    def different_sound(self, first: FileRecord, second: FileRecord) -> str:
        """Return a doubt if two files have unrelated sound; empty otherwise, or if the user confirmed that they are
        copies."""
        is_sure = self.is_known_only or self.is_confirmed(first, second)
        return "" if is_sure else self.heard.difference(content_of(first.record), content_of(second.record))

    def differences(self, first: FileRecord, second: FileRecord) -> tuple[Difference, ...]:
        """Return the differences of the first file from the second, cached per pair; empty if they are unknown and
        files must not be read."""
        known, key = self.search.known, f"{content_of(first.record)} {content_of(second.record)}"
        try:
            if key in known.differences:
                return tuple(Difference(**fields) for fields in known.differences[key])
        except (TypeError, InvalidArgumentError) as error:
            _logger.debug("%s; determining the kind of copy again", error)
        if self.search.readings is None or not self.read_files:
            return ()
        try:
            differences = find_differences(first, second, self.seen(first, second))
        except MediaError as error:
            _logger.info("%s; the kind of copy was not determined", error)
            return ()
        with self.heard.lock:
            known.differences[key] = [difference.to_dict() for difference in differences]
            known.save_if_due()
        return differences

    def traits(self, file: FileRecord, prover: Prover) -> Traits | None:
        """Return frame rate, audio tracks, date and similar properties; None if they are unknown and the file cannot or
        must not be read."""
        known, content = self.search.known, content_of(file.record)
        if content in known.traits or not self.read_files:
            return known.traits.get(content)
        try:
            traits = Traits.of(prover.facts(file.record.path))
        except MediaError as error:
            _logger.info("%s; its tracks and tags are unknown", error)
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
        """Return the proof that one file contains everything in another; None if it is unknown and files must not be
        decoded."""
        contents, known = (content_of(kept.record), content_of(removed.record)), self.search.known
        paths = kept.record.path, removed.record.path
        proof = known.proof(*contents)
        if proof is None and self.rules.prove:
            result = self.seen(removed, kept)
            if result.score < self.rules.threshold or not result.segments:
                result = self.seen(removed, kept, finely=True)
            proof = prover.prove(*paths, result.segments, on_progress=on_progress)
            # Cache the proof only if both files still have the contents that were indexed.
            if not (has_changed(kept) or has_changed(removed)):
                with self.heard.lock:
                    known.put_proof(*contents, proof)
                    known.save_if_due()
        return None if proof is None else replace(proof, kept=paths[0], removed=paths[1])

    def findings(self, kept: FileRecord, removed: FileRecord, proof: Proof) -> tuple[Finding, ...]:
        """Return the findings whose kinds were not accepted.

        If the user confirmed the files as copies, kinds that cannot normally be accepted are ignored as well, except
        unreadable files.
        """
        confirmed = NEVER_ACCEPTED - {"unreadable"} if self.is_confirmed(kept, removed) else frozenset[FindingKind]()
        return proof.missing(self.rules.accepted | confirmed)


def has_changed(file: FileRecord) -> bool:
    """Whether the size or modification time of a file has changed since it was indexed."""
    try:
        state = os.stat(file.record.path)
    except OSError:
        return True
    return (state.st_size, state.st_mtime_ns) != (file.record.size, file.record.mtime_ns)

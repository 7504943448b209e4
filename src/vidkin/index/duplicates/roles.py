"""The role of each file of a group: which ones stay, what kind of copy the others are, and what is proven of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.files.companions import find_photograph
from vidkin.files.facts import compare_facts
from vidkin.files.findings import NEVER_ACCEPTED, Finding, FindingKind
from vidkin.files.proof import Prover
from vidkin.files.proof_record import Proof
from vidkin.index.duplicates.comparisons import WHOLE, FileRecord, PairResult, content_of, relation_of, stretch_of
from vidkin.index.duplicates.differences import INVERSE, Difference, find_differences
from vidkin.index.duplicates.heard import ONLY_SOUND, HeardPairs
from vidkin.index.duplicates.keeper import (
    Candidate,
    Choice,
    choose_staying,
    put_in_order,
    rank_by_folders,
)
from vidkin.index.duplicates.members import DuplicateGroup, DuplicateMember
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.duplicates.scope import Scope
from vidkin.index.duplicates.traits import Traits
from vidkin.index.storage.decisions import Decisions
from vidkin.similarity import Segment

_logger = logging.getLogger(__name__)

# Seconds of a copy that the best one may lack: a twentieth of its length, but between one and ten.
_LACKING_SHARE = 0.05
_LEAST_LACKING, _MOST_LACKING = 1.0, 10.0
NOT_WHOLE = "not a whole copy"
"""Doubt about an excerpt where only whole copies are looked for: it is not removed."""
# Seconds by which a file may be longer than the one that holds all of it, at any speed of a copy.
_LONGER, _FASTEST = 0.6, 1.1


@dataclass(frozen=True, slots=True)
class GroupPairs:
    """Results, differences and proofs for pairs of files of a group.

    Several groups may ask at a time: what is known and what reads the index or the extractor is used by one at a time,
    decoding is not. With ``is_known_only``, nothing is compared or listened to that is not known.

    Attributes:
        prove: Decode files to prove what can be removed.
        accepted: Kinds of findings that do not matter.
        threads: Threads that decode a file for a proof; 0 for one for each processor.
        chosen: Paths of the files that may be removed; None for all.
    """

    search: PairSearch
    decisions: Decisions
    threshold: float
    scope: Scope
    parts: bool
    heard: HeardPairs
    read_files: bool = True
    is_known_only: bool = False
    prove: bool = False
    accepted: frozenset[FindingKind] = frozenset()
    threads: int = 0
    chosen: frozenset[str] | None = None

    def __call__(self, first: FileRecord, second: FileRecord) -> PairResult:
        one, other = content_of(first.record), content_of(second.record)
        if one == other:
            return PairResult(1.0, True, (1.0, 1.0))
        result = self.plain(first, second)
        if self.decisions.verdict(one, other) == "match":
            return PairResult(1.0, True, (1.0, 1.0), result.segments)
        return result

    def finest(self, first: FileRecord, second: FileRecord) -> PairResult:
        """The same from a reading as fine as that of queries."""
        one, other = content_of(first.record), content_of(second.record)
        if self.read_files and one != other and self.decisions.verdict(one, other) != "match":
            with self.heard.lock:
                self.search.refine(first.record, second.record)
        return self(first, second)

    def plain(self, first: FileRecord, second: FileRecord) -> PairResult:
        """The result of two contents, whatever was decided about them."""
        if self.is_known_only:
            known = self.search.known.get(content_of(first.record), content_of(second.record))
            return known or PairResult(0.0)
        with self.heard.lock:
            return self.search.compare(first.record, second.record)

    def ruled(self, first: FileRecord, second: FileRecord) -> PairResult:
        """The result by the rule that groups follow: of the picture, unless the sound is asked."""
        result, contents = self(first, second), (content_of(first.record), content_of(second.record))
        if self.heard.by == "picture" or self.decisions.verdict(*contents) == "match":
            return result
        return self.heard.result(*contents, result, (first.record.duration, second.record.duration))

    def different_sound(self, first: FileRecord, second: FileRecord) -> str:
        """A doubt where the sound of two files has nothing in common, unless the user said that they are copies."""
        one, other = content_of(first.record), content_of(second.record)
        is_sure = self.is_known_only or self.decisions.verdict(one, other) == "match"
        return "" if is_sure else self.heard.difference(one, other)

    def sound(self, first: FileRecord, second: FileRecord) -> float | None:
        """What the sound says of two files; None where it is not known, or not asked meanwhile."""
        return None if self.is_known_only else self.heard.score(content_of(first.record), content_of(second.record))

    def differences(self, first: FileRecord, second: FileRecord) -> tuple[Difference, ...]:
        """How the first file differs from the second; looked at once per pair, if files are read at all."""
        one, other = content_of(first.record), content_of(second.record)
        known, key = self.search.known, f"{one} {other}"
        try:
            if key in known.differences:
                return tuple(Difference(**fields) for fields in known.differences[key])
        except (TypeError, InvalidArgumentError):
            pass  # the table of a stranger has other kinds: look again
        if self.search.readings is None or not self.read_files:
            return ()
        try:
            differences = find_differences(first, second, self.plain(first, second))
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
        if content in known.traits:
            return known.traits[content]
        if not self.read_files:
            return None
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
        contents = content_of(kept.record), content_of(removed.record)
        paths = kept.record.path, removed.record.path
        known = self.search.known
        proof = known.proof(*contents)
        if proof is None and self.prove:
            proof = prover.prove(*paths, self._segments(removed, kept), on_progress=on_progress)
            # Of other contents than those that the index knows, nothing is to be remembered.
            if not any(_has_other_state(file) for file in (kept, removed)):
                with self.heard.lock:
                    known.put_proof(*contents, proof)
                    known.save_now_and_then()
        return None if proof is None else replace(proof, kept=paths[0], removed=paths[1])

    def findings(self, kept: FileRecord, removed: FileRecord, proof: Proof) -> tuple[Finding, ...]:
        """The findings that matter: those of no accepted kind, and of two files that somebody confirmed as copies what
        cannot be accepted otherwise does not matter either."""
        accepted = self.accepted
        if self.decisions.verdict(content_of(kept.record), content_of(removed.record)) == "match":
            accepted = accepted | (NEVER_ACCEPTED - {"unreadable"})
        return proof.missing(accepted)

    def _segments(self, first: FileRecord, second: FileRecord) -> tuple[Segment, ...]:
        """Where two files match."""
        result = self.plain(first, second)
        if result.score >= self.threshold and result.segments:
            return result.segments
        return self.finest(first, second).segments or result.segments


def describe_group(
    files: Sequence[FileRecord],
    pairs: GroupPairs,
    order: Sequence[str],
    on_progress: Callable[[float], None] | None = None,
) -> DuplicateGroup:
    """The role of each file of a group.

    Args:
        files: Two or more.
        pairs: What is known of them.
        order: Columns and folders that say which file is preferred.
        on_progress: Receives the share of the work that is done, 0 to 1.
    """
    prover = Prover(pairs.threads)
    try:
        return _Roles(files, pairs, order, prover).describe(on_progress or (lambda share: None))
    finally:
        prover.close()


class _Roles:
    """The files of a group in the order in which they are preferred."""

    def __init__(self, files: Sequence[FileRecord], pairs: GroupPairs, order: Sequence[str], prover: Prover) -> None:
        self.pairs, self.prover = pairs, prover
        self.traits = {file.record.id: pairs.traits(file, prover) for file in files}
        ranked = put_in_order(self._candidates(files), order)
        # Whole files come before excerpts of them, and a person's choice before everything.
        longest = max(file.record.duration for file in files)
        ranked.sort(key=lambda item: item[0].file.record.duration < WHOLE * longest)
        if pairs.scope.incoming:
            ranked.sort(key=lambda item: not pairs.scope.is_library(item[0].file))
        ranked.sort(
            key=lambda item: (
                not pairs.decisions.prefers(item[0].file.record),
                pairs.decisions.prefers(item[0].file.record) and not pairs.decisions.names(item[0].file.record),
            )
        )
        self.files = [candidate.file for candidate, _ in ranked]
        self.reasons = [reason for _, reason in ranked]
        self.ranks = [rank_by_folders(file, order) for file in self.files]
        self.stays = [self._why_stays(file) for file in self.files]
        self.is_first_choice = pairs.decisions.prefers(self.files[0].record)

    def describe(self, on_progress: Callable[[float], None]) -> DuplicateGroup:
        """The group, the file to keep first."""
        choice = self._choose(on_progress)
        best = self.files[choice.best]
        members = [
            self._member(position, best, choice.removable.get(position))
            for position in range(len(self.files))
            if position != choice.best
        ]
        members.sort(key=lambda member: (-member.score, member.path))
        said = {
            name: max((value for member in members if (value := getattr(member, name)) is not None), default=None)
            for name in ("picture", "sound")
        }
        first = DuplicateMember.of(
            best,
            max(member.score for member in members),
            best=True,
            stays=self.stays[choice.best],
            traits=self.traits[best.record.id],
            **said,
        )
        return DuplicateGroup((first, *members), self._reason(choice))

    def _reason(self, choice: Choice) -> str:
        if self.is_first_choice and choice.best == 0:
            return "your choice"
        if self.pairs.scope.incoming and sum(map(self.pairs.scope.is_library, self.files)) == 1:
            return "in the library"
        if choice.best != 0:
            return "holds the most of the others"
        longest = max(file.record.duration for file in self.files)
        wholes = sum(file.record.duration >= WHOLE * longest for file in self.files)
        return "longest" if wholes == 1 else self.reasons[choice.best]

    def _why_stays(self, file: FileRecord) -> str:
        """Why a file is not removed whatever the others hold; empty if it may be."""
        if self.pairs.scope.incoming and self.pairs.scope.is_library(file):
            return "it is in the library"
        if self.pairs.scope.incoming and self.pairs.decisions.prefers(file.record):
            return "your choice"
        if find_photograph(file.record.path, file.record.duration):
            return "the movie of a photograph of the same name"
        if self.pairs.chosen is not None and file.record.path not in self.pairs.chosen:
            return "it was not chosen"
        return ""

    def _candidates(self, files: Sequence[FileRecord]) -> list[Candidate]:
        """The files with what they are ordered by: how each differs from the one with the most pixels."""
        most = max(files, key=lambda file: (file.record.width * file.record.height, file.record.size))
        found = {
            file.record.id: self.pairs.differences(file, most)
            for file in files
            if file is not most and self.pairs(file, most).segments
        }
        others = {
            INVERSE[difference.kind]: difference
            for differences in found.values()
            for difference in differences
            if difference.kind in INVERSE
        }
        found[most.record.id] = tuple(Difference(kind, other.amount) for kind, other in others.items())
        return [
            Candidate(file, self.traits[file.record.id] or Traits(), found.get(file.record.id, ())) for file in files
        ]

    def _choose(self, on_progress: Callable[[float], None]) -> Choice:
        """Which files stay. Without proofs, the first one; with some, as few as hold everything."""
        known = self.pairs.search.known
        contents = [content_of(file.record) for file in self.files]
        if not self.pairs.prove and all(known.proof(one, two) is None for one in contents for two in contents):
            return Choice(0, {})
        count, asked = len(self.files), 0

        def holds(kept: int, removed: int) -> bool:
            nonlocal asked

            def report(share: float) -> None:
                on_progress(min((asked + share) / (count - 1), 0.99))

            proof = self.pairs.proof(self.files[kept], self.files[removed], self.prover, report)
            asked += 1
            report(0.0)
            return proof is not None and not self.pairs.findings(self.files[kept], self.files[removed], proof)

        fixed = {position for position, why in enumerate(self.stays) if why}
        if self.is_first_choice:
            fixed.add(0)
        choice = choose_staying(count, holds, self._could_hold, fixed=fixed, ranks=self.ranks)
        # A person's choice stays, and is the one to keep even if another file holds more of the others.
        return Choice(0, choice.removable) if self.is_first_choice else choice

    def _could_hold(self, kept: int, removed: int) -> bool:
        """Whether a file could hold everything of another one, by what is known of both without decoding."""
        one, other = self.files[kept], self.files[removed]
        if not self.pairs.scope.has_pair(other, one) or (
            self.pairs.scope.incoming and not self.pairs.scope.is_library(one)
        ):
            return False
        if content_of(one.record) == content_of(other.record):
            return True
        if other.record.duration > one.record.duration * _FASTEST + _LONGER:
            return False
        if (
            not self.pairs.parts
            and relation_of(self.pairs(other, one), (other.record.duration, one.record.duration)) == "excerpt"
        ):
            return False
        try:
            findings = compare_facts(self.prover.facts(one.record.path), self.prover.facts(other.record.path))
        except MediaError:
            return False
        # More pixels may be borders, and frames a second a matter of speed: a proof tells.
        return all(
            finding.kind in ("resolution", "frame-rate") or finding.kind in self.pairs.accepted for finding in findings
        )

    def _member(self, position: int, best: FileRecord, keeper: int | None) -> DuplicateMember:
        file, pairs = self.files[position], self.pairs
        wanted = best if keeper is None else self.files[keeper]
        is_pair = pairs.scope.has_pair(file, wanted)
        record, reference, result = file.record, wanted, pairs.ruled(file, wanted) if is_pair else PairResult(0.0)
        if result.score < pairs.threshold:
            others = [other for other in self.files if other is not file and pairs.scope.has_pair(file, other)]
            reference = max(others, key=lambda other: pairs.ruled(file, other).score)
            result = pairs.ruled(file, reference)
        seen = pairs(file, reference)
        is_seen = pairs.heard.by == "picture" or seen.score >= pairs.threshold
        if is_seen and pairs.heard.by != "picture":
            result = seen
        lengths = record.duration, reference.record.duration
        if is_seen and (relation_of(result, lengths) != "whole" or _unseen(result, record.duration)):
            # Stored features may miss ends that a finer reading shows.
            result = pairs.finest(file, reference)
        relation = relation_of(result, lengths)
        start, end = stretch_of(relation, result)
        stays = self.stays[position] or ("" if is_pair else "the kept file is on the same side")
        differences = pairs.differences(file, reference) if is_seen else ()
        trimmed = next((difference for difference in differences if difference.kind == "trimmed"), None)
        if trimmed is not None and relation in ("whole", "excerpt"):
            start, end = trimmed.start, trimmed.end  # to a frame, where the pictures tell
        proof = None if stays or not is_seen else self._proof(position, best, keeper)
        findings = () if proof is None or keeper is not None else pairs.findings(wanted, file, proof)
        unseen = _unseen(result, record.duration)
        if reference is not wanted:
            unseen = 0.0 if stays else record.duration
        doubt = ""
        if not stays and not is_seen:
            doubt = ONLY_SOUND
        elif not stays and keeper is None:
            doubt = "; ".join(finding.text for finding in findings) or pairs.different_sound(file, reference)
            # It may be in the group because it is a copy of a copy, or because the user said so.
            doubt = doubt or (NOT_WHOLE if relation == "excerpt" and not pairs.parts else "")
            if not doubt and pairs.prove:
                doubt = "no file that stays is proven to hold everything of it"
                if _has_other_state(file) or _has_other_state(wanted):
                    doubt = "it or the file to keep changed since it was indexed; run `vidkin index` again"
        return DuplicateMember.of(
            file,
            pairs.ruled(file, reference).score,
            best=False,
            relation=relation,
            compared_with=reference.record.path,
            start=start,
            end=end,
            mirrored=result.mirrored,
            turned=result.turned,
            lacking=0.0 if keeper is not None else unseen,
            doubt=doubt,
            stays=stays,
            differences=differences,
            segments=result.segments,
            picture=pairs(file, reference).score,
            sound=pairs.sound(file, reference),
            traits=self.traits[record.id],
            proof=proof,
            kept_by=None if keeper is None else self.files[keeper].record.path,
            findings=findings,
        )

    def _proof(self, position: int, best: FileRecord, keeper: int | None) -> Proof | None:
        """The proof of a file against the one that holds it, else against the best one, unless that costs a decoding
        which facts have made needless."""
        file = self.files[position]
        if keeper is not None:
            return self.pairs.proof(self.files[keeper], file, self.prover)
        kept = self.files.index(best)
        proof = self.pairs.search.known.proof(content_of(best.record), content_of(file.record))
        if proof is not None or not self.pairs.prove:
            return proof
        if self._could_hold(kept, position):
            return None  # it stays for another reason, such as a folder that comes first
        try:
            findings = compare_facts(self.prover.facts(best.record.path), self.prover.facts(file.record.path))
        except MediaError as error:
            findings = (Finding("unreadable", f"{error.path}: {error.cause}"),)
        findings = tuple(one for one in findings if one.kind not in ("resolution", "frame-rate"))
        longer = file.record.duration - best.record.duration
        if longer > _LONGER:
            findings = (Finding("ends", f"it is {longer:.1f} s longer than the kept file", certainty=0.9), *findings)
        return Proof(best.record.path, file.record.path, "", "", findings)


def _has_other_state(file: FileRecord) -> bool:
    """Whether a file has another size or date than when the index read it."""
    try:
        state = os.stat(file.record.path)
    except OSError:
        return True
    return (state.st_size, state.st_mtime_ns) != (file.record.size, file.record.mtime_ns)


def _unseen(result: PairResult, duration: float) -> float:
    """Seconds of the first video that the second one does not show; 0 if that is a matter of its ends."""
    unseen = (1.0 - result.covered[0]) * duration
    return unseen if unseen > max(_LEAST_LACKING, min(_MOST_LACKING, _LACKING_SHARE * duration)) else 0.0

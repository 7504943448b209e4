"""The role of each file in a group: which files to keep, what kind of copies the others are, and their proofs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vidkin.errors import MediaError
from vidkin.files.companions import find_photograph
from vidkin.files.facts import compare_facts
from vidkin.files.findings import Finding
from vidkin.files.proof import Prover
from vidkin.files.proof_record import Proof
from vidkin.index.duplicates.comparisons import (
    WHOLE,
    FileRecord,
    PairResult,
    content_of,
    matched_span,
    min_missing_seconds,
    relation_of,
)
from vidkin.index.duplicates.differences import INVERSE, Difference
from vidkin.index.duplicates.group_pairs import GroupPairs, has_changed
from vidkin.index.duplicates.heard import ONLY_SOUND
from vidkin.index.duplicates.keeper import Candidate, Choice, choose_kept, rank_by_folders, sort_by_preference
from vidkin.index.duplicates.members import DuplicateGroup, DuplicateMember
from vidkin.index.duplicates.traits import Traits

NOT_WHOLE = "not a whole copy"
"""Doubt about an excerpt found in a search for whole copies."""
NO_ENDS = "its ends were not compared"
"""Doubt about a file that was compared without its ends, unless it is byte-identical."""
# A file can only contain another if the other is at most this many seconds longer, after a change of speed by at most
# this factor.
_LONGER, _FASTEST = 0.6, 1.1


def describe_group(
    files: Sequence[FileRecord], pairs: GroupPairs, on_progress: Callable[[float], None] | None = None
) -> DuplicateGroup:
    """Determine the role of each file in a group.

    Args:
        files: Two or more files.
        pairs: Results, differences and proofs of pairs of files.
        on_progress: Callback that receives the fraction done, in [0, 1].
    """
    prover = Prover(pairs.threads)
    try:
        return _Roles(files, pairs, prover).describe(on_progress or (lambda fraction: None))
    finally:
        prover.close()


class _Roles:
    """Ranks the files of a group and determines their roles."""

    def __init__(self, files: Sequence[FileRecord], pairs: GroupPairs, prover: Prover) -> None:
        self.pairs, self.rules, self.prover = pairs, pairs.rules, prover
        self.traits = {file.record.id: pairs.traits(file, prover) for file in files}
        ranked = sort_by_preference(self._candidates(files), self.rules.order)
        decisions, longest = self.rules.decisions, max(file.record.duration for file in files)
        # Rank the user's choice first, library files before new files, and whole files before their excerpts.
        ranked.sort(
            key=lambda item: (
                not decisions.prefers(item[0].file.record),
                decisions.prefers(item[0].file.record) and not decisions.names(item[0].file.record),
                bool(self.rules.scope.incoming) and not self.rules.scope.is_library(item[0].file),
                item[0].file.record.duration < WHOLE * longest,
            )
        )
        self.files = [candidate.file for candidate, _ in ranked]
        self.reasons = [reason for _, reason in ranked]
        self.stays = [self._reason_to_keep(file) for file in self.files]
        self.is_first_choice = decisions.prefers(self.files[0].record)

    def describe(self, on_progress: Callable[[float], None]) -> DuplicateGroup:
        """Return the group, with the file to keep first."""
        choice = self._choose(on_progress)
        positions = [position for position in range(len(self.files)) if position != choice.best]
        members = [self._member(position, choice) for position in positions]
        members.sort(key=lambda member: (-member.score, member.path))
        best = self.files[choice.best]
        first = DuplicateMember.of(
            best,
            max(member.score for member in members),
            best=True,
            stays=self.stays[choice.best],
            traits=self.traits[best.record.id],
            picture=max((member.picture for member in members if member.picture is not None), default=None),
            sound=max((member.sound for member in members if member.sound is not None), default=None),
        )
        return DuplicateGroup((first, *members), self._reason(choice))

    def _reason(self, choice: Choice) -> str:
        if self.is_first_choice and choice.best == 0:
            return "your choice"
        if self.rules.scope.incoming and sum(map(self.rules.scope.is_library, self.files)) == 1:
            return "in the library"
        if choice.best != 0:
            return "contains the most other files"
        longest = max(file.record.duration for file in self.files)
        wholes = sum(file.record.duration >= WHOLE * longest for file in self.files)
        return "longest" if wholes == 1 else self.reasons[choice.best]

    def _reason_to_keep(self, file: FileRecord) -> str:
        """Return why a file is never removed, regardless of the others; empty if it may be removed."""
        if self.rules.scope.is_library(file):
            return "it is in the library"
        if self.rules.scope.incoming and self.rules.decisions.prefers(file.record):
            return "your choice"
        if find_photograph(file.record.path, file.record.duration):
            return "it is the video part of a photograph"
        if self.rules.chosen is not None and file.record.path not in self.rules.chosen:
            return "it was not chosen"
        return ""

    def _candidates(self, files: Sequence[FileRecord]) -> list[Candidate]:
        """Return the files with the properties they are ranked by, including their differences from the file with the
        most pixels."""
        most = max(files, key=lambda file: (file.record.width * file.record.height, file.record.size))
        found = {
            file.record.id: self.pairs.differences(file, most)
            for file in files
            if file is not most and self.pairs.seen(file, most).segments
        }
        others = [each for differences in found.values() for each in differences if each.kind in INVERSE]
        inverse = {INVERSE[each.kind]: each.amount for each in others}
        found[most.record.id] = tuple(Difference(kind, amount) for kind, amount in inverse.items())
        return [
            Candidate(file, self.traits[file.record.id] or Traits(), found.get(file.record.id, ())) for file in files
        ]

    def _choose(self, on_progress: Callable[[float], None]) -> Choice:
        """Choose the files to keep: without proofs, the first file; with proofs, as few files as contain everything."""
        known, asked = self.pairs.search.known, 0
        contents = [content_of(file.record) for file in self.files]
        if not self.rules.prove and all(known.proof(one, two) is None for one in contents for two in contents):
            return Choice(0, {})

        def contains(kept: int, removed: int) -> bool:
            nonlocal asked

            def report(fraction: float) -> None:
                on_progress(min((asked + fraction) / (len(self.files) - 1), 0.99))

            proof = self.pairs.proof(self.files[kept], self.files[removed], self.prover, report)
            asked += 1
            report(0.0)
            return proof is not None and not self.pairs.findings(self.files[kept], self.files[removed], proof)

        fixed = {position for position, why in enumerate(self.stays) if why}
        ranks = [rank_by_folders(file, self.rules.order) for file in self.files]
        # The user's choice is kept, and is the best file even if another contains more of the files.
        fixed |= {0} if self.is_first_choice else set()
        choice = choose_kept(len(self.files), contains, self._may_contain, fixed=fixed, ranks=ranks)
        return Choice(0, choice.removable) if self.is_first_choice else choice

    def _may_contain(self, kept: int, removed: int) -> bool:
        """Whether a file could contain everything in another, judging by what is known without decoding."""
        one, other = self.files[kept], self.files[removed]
        scope = self.rules.scope
        if not scope.has_pair(other, one) or (scope.incoming and not scope.is_library(one)):
            return False
        if content_of(one.record) == content_of(other.record):
            return True
        lengths = other.record.duration, one.record.duration
        if lengths[0] > lengths[1] * _FASTEST + _LONGER:
            return False
        if not self.rules.parts and relation_of(self.pairs.seen(other, one), lengths) == "excerpt":
            return False
        accepted = self.rules.accepted
        return all(finding.kind in accepted for finding in self._compare_metadata(one, other))

    def _compare_metadata(self, kept: FileRecord, removed: FileRecord) -> list[Finding]:
        """Return findings from metadata about what ``removed`` has and ``kept`` lacks.

        Resolution and frame rate are left to the proof, because additional pixels may be borders, and a higher frame
        rate may result from a higher speed.
        """
        try:
            findings = compare_facts(self.prover.facts(kept.record.path), self.prover.facts(removed.record.path))
        except MediaError as error:
            return [Finding("unreadable", f"{error.path}: {error.cause}")]
        return [finding for finding in findings if finding.kind not in ("resolution", "frame-rate")]

    def _member(self, position: int, choice: Choice) -> DuplicateMember:
        file, pairs = self.files[position], self.pairs
        keeper = choice.removable.get(position)
        wanted = self.files[choice.best if keeper is None else keeper]
        is_pair = self.rules.scope.has_pair(file, wanted)
        reference = wanted
        # The file may be in the group only as a copy of a copy, or because the user confirmed it.
        if not is_pair or pairs.ruled(file, wanted).score < self.rules.threshold:
            others = [other for other in self.files if other is not file and self.rules.scope.has_pair(file, other)]
            reference = max(others, key=lambda other: pairs.ruled(file, other).score)
        seen = result = pairs.seen(file, reference)
        is_seen = self.rules.by == "picture" or seen.score >= self.rules.threshold
        lengths = file.record.duration, reference.record.duration
        if not is_seen:
            result = pairs.ruled(file, reference)
        elif relation_of(seen, lengths) != "whole" or _uncovered_seconds(seen, lengths[0]):
            # Stored features may miss matching ends that denser sampling finds.
            seen = result = pairs.seen(file, reference, finely=True)
        relation = relation_of(result, lengths)
        start, end = matched_span(relation, result)
        differences = pairs.differences(file, reference) if is_seen else ()
        trimmed = next((difference for difference in differences if difference.kind == "trimmed"), None)
        if trimmed is not None and relation in ("whole", "excerpt"):
            start, end = trimmed.start, trimmed.end  # frame-accurate if the frames could be aligned
        stays = self.stays[position] or ("" if is_pair else "the kept file is on the same side")
        proof = None if stays or not is_seen else self._proof(wanted, file, is_removable=keeper is not None)
        findings = () if proof is None or keeper is not None else pairs.findings(wanted, file, proof)
        doubt = ""
        if not stays and not is_seen:
            doubt = ONLY_SOUND
        elif not stays and keeper is None:
            doubt = _describe_findings(findings) or pairs.different_sound(file, reference)
            doubt = doubt or (NOT_WHOLE if relation == "excerpt" and not self.rules.parts else "")
            is_cut = bool(pairs.search.scores.ignored) and content_of(file.record) != content_of(reference.record)
            doubt = doubt or (NO_ENDS if is_cut else "")
            doubt = doubt or (_why_unproven(file, wanted) if self.rules.prove else "")
        lacking = _uncovered_seconds(result, lengths[0])
        if reference is not wanted:
            lacking = 0.0 if stays else lengths[0]
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
            lacking=0.0 if keeper is not None else lacking,
            doubt=doubt,
            stays=stays,
            differences=differences,
            segments=result.segments,
            picture=seen.score,
            sound=pairs.sound(file, reference),
            traits=self.traits[file.record.id],
            proof=proof,
            kept_by=None if keeper is None else wanted.record.path,
            findings=findings,
        )

    def _proof(self, kept: FileRecord, file: FileRecord, *, is_removable: bool) -> Proof | None:
        """Return the proof of a file against ``kept``; if metadata rules it out, its findings are returned without
        decoding."""
        known = self.pairs.search.known.proof(content_of(kept.record), content_of(file.record))
        if is_removable or known is not None or not self.rules.prove:
            return self.pairs.proof(kept, file, self.prover)
        if self._may_contain(self.files.index(kept), self.files.index(file)):
            return None  # it is kept for another reason, such as a preferred folder
        findings = self._compare_metadata(kept, file)
        longer = file.record.duration - kept.record.duration
        if longer > _LONGER:
            findings.insert(0, Finding("ends", f"it is {longer:.1f} s longer than the kept file", certainty=0.9))
        return Proof(kept.record.path, file.record.path, "", "", tuple(findings))


def _describe_findings(findings: Sequence[Finding]) -> str:
    """Format what the kept file lacks as a doubt; if a picture finding applies to the whole video, those about single
    parts are redundant."""
    is_all_along = any(finding.kind == "picture" and finding.start is None for finding in findings)
    return "; ".join(
        finding.text
        for finding in findings
        if not (is_all_along and finding.kind == "picture" and finding.start is not None)
    )


def _why_unproven(file: FileRecord, kept: FileRecord) -> str:
    if has_changed(file) or has_changed(kept):
        return "it or the file to keep has changed since it was indexed; run `vidkin index` again"
    return "no kept file is proven to contain everything in it"


def _uncovered_seconds(result: PairResult, duration: float) -> float:
    """Seconds of the first video that the second does not show; 0 if they are too few to matter."""
    unseen = (1.0 - result.covered[0]) * duration
    return unseen if unseen > min_missing_seconds(duration) else 0.0

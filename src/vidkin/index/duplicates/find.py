"""Groups of copies over a whole index, without comparing all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index.decisions import Decisions
from vidkin.index.duplicates.comparisons import PairResult
from vidkin.index.duplicates.doubts import find_doubt
from vidkin.index.duplicates.extent import find_missing_picture
from vidkin.index.duplicates.files import FileRecord, content_of
from vidkin.index.duplicates.grouping import WHOLE, Grouping, relation_of
from vidkin.index.duplicates.groups import DuplicateGroup, DuplicateMember
from vidkin.index.duplicates.keeper import check_keep_rule, choose_keeper
from vidkin.index.duplicates.pairing import PairSearch

__all__ = ["find_duplicates"]

# Seconds of a copy that the best one may lack: a twentieth of its length, but between one and ten.
_LACKING_SHARE = 0.05
_LEAST_LACKING, _MOST_LACKING = 1.0, 10.0


def find_duplicates(
    files: Sequence[FileRecord],
    search: PairSearch,
    decisions: Decisions,
    *,
    threshold: float = 0.7,
    parts: bool = False,
    keep: str = "best",
    on_progress: Callable[[int, int], None] | None = None,
) -> list[DuplicateGroup]:
    """Find groups of copies.

    Each video is compared with those nearest to it in the first stage; pairs in doubt are read again, as finely as by
    :func:`vidkin.compare`, and get its score. A pair that was rejected is never in one group; a confirmed one is.

    Args:
        files: Files of the index.
        search: Compares pairs, and remembers the results.
        decisions: Decisions stored in the index.
        threshold: Score from which on two videos belong together, in (0, 1].
        parts: Also group excerpts with the video that they are from.
        keep: Which member is the best, see :func:`vidkin.index.duplicates.keeper.choose_keeper`.
        on_progress: Called with (steps done, steps in all).

    Returns:
        Groups sorted by the path of their best copy.

    Raises:
        InvalidArgumentError: The threshold is out of range, or the rule is unknown.
    """
    if not 0.0 < threshold <= 1.0:
        raise InvalidArgumentError(f"threshold must be above 0 and at most 1, got {threshold}")
    rule = check_keep_rule(keep)
    by_content: dict[str, list[FileRecord]] = {}
    for file in files:
        by_content.setdefault(content_of(file.record), []).append(file)
    first_files = {content: twins[0] for content, twins in by_content.items()}
    compared = 0

    def progress(done: int, total: int) -> None:
        nonlocal compared
        compared = total
        if on_progress is not None:
            on_progress(done, total)

    search.run([file.record for file in first_files.values()], threshold=threshold, on_progress=progress)

    def compare(first: str, second: str) -> PairResult:
        return search.compare(first_files[first].record, first_files[second].record)

    results = {
        (first, second): result
        for first, second, result in search.known.pairs()
        if first in by_content and second in by_content
    }
    grouping = Grouping(results, compare, decisions, threshold)
    pairs = _Pairs(search, decisions, threshold)
    groups = []
    try:
        contents = grouping.groups(
            sorted(by_content, key=lambda content: by_content[content][0].record.path), parts=parts
        )
        copies = [[file for content in group for file in by_content[content]] for group in contents]
        copies = [group for group in copies if len(group) > 1]
        for group in copies:
            groups.append(_group(group, pairs, rule))
            if on_progress is not None:
                on_progress(compared + len(groups), compared + len(copies))
    finally:
        search.known.save()
    return sorted(groups, key=lambda group: group.best.path)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Results and doubts for pairs of files of a group."""

    search: PairSearch
    decisions: Decisions
    threshold: float

    def __call__(self, first: FileRecord, second: FileRecord) -> PairResult:
        one, other = content_of(first.record), content_of(second.record)
        if one == other:
            return PairResult(1.0, True, (1.0, 1.0), doubt="")
        result = self.search.compare(first.record, second.record)
        if self.decisions.verdict(one, other) == "match":
            return PairResult(1.0, True, (1.0, 1.0), result.segments, "")
        return result

    def doubt(self, first: FileRecord, second: FileRecord) -> str:
        """Why two files may not be copies; checked once per pair, if files are read at all."""
        result = self(first, second)
        if result.doubt is not None or self.search.readings is None:
            return result.doubt or ""
        try:
            doubt = find_doubt(first, second, result)
        except MediaError as error:
            return error.cause
        self._remember(first, second, replace(result, doubt=doubt))
        return doubt

    def missing(self, first: FileRecord, second: FileRecord) -> str:
        """What part of the picture would be lost without the first file; checked once per pair."""
        if content_of(first.record) == content_of(second.record):
            return ""
        result = self.search.compare(first.record, second.record)
        missing = result.missing
        if missing is None:
            try:
                missing = find_missing_picture(first, second, result)
            except MediaError as error:
                return error.cause
            self._remember(first, second, replace(result, missing=missing))
        return missing[0]

    def _remember(self, first: FileRecord, second: FileRecord, result: PairResult) -> None:
        self.search.known.put(content_of(first.record), content_of(second.record), result)
        self.search.known.save_now_and_then()


def _group(files: Sequence[FileRecord], pairs: _Pairs, rule: str) -> DuplicateGroup:
    # An excerpt is not the best copy of the whole, however good it looks.
    longest = max(file.record.duration for file in files)
    wholes = [file for file in files if file.record.duration >= WHOLE * longest]
    preferred = [file for file in files if pairs.decisions.prefers(file.record)]
    if preferred:
        best = next((file for file in preferred if pairs.decisions.names(file.record)), preferred[0])
        reason = "your choice"
    elif len(wholes) == 1:
        best, reason = wholes[0], "longest"
    else:
        best, reason = choose_keeper(wholes, rule, pairs, pairs.search.known.keepers)
    others = [file for file in files if file is not best]
    members = [_member(file, best, files, pairs) for file in others]
    members.sort(key=lambda member: (-member.score, member.path))
    record = best.record
    first = DuplicateMember(
        record.path,
        max(member.score for member in members),
        record.width,
        record.height,
        record.duration,
        record.size,
        best=True,
        links=best.links,
    )
    return DuplicateGroup((first, *members), reason)


def _member(
    file: FileRecord, best: FileRecord, files: Sequence[FileRecord], pairs: _Pairs
) -> DuplicateMember:
    record, reference, result = file.record, best, pairs(file, best)
    if result.score < pairs.threshold:
        others = [other for other in files if other is not file]
        reference = max(others, key=lambda other: pairs(file, other).score)
        result = pairs(file, reference)
    relation = relation_of(result)
    # The stretch of the longer file that the other one shows; none if both match as a whole.
    start = end = None
    if relation == "excerpt" and result.segments:
        start = min(segment.target_start for segment in result.segments)
        end = max(segment.target_end for segment in result.segments)
    elif relation != "whole" and result.segments:
        start = min(segment.query_start for segment in result.segments)
        end = max(segment.query_end for segment in result.segments)
    lacking = 0.0
    unseen = (1.0 - result.covered[0]) * record.duration
    if reference is not best:
        lacking = record.duration
    elif unseen > max(_LEAST_LACKING, min(_MOST_LACKING, _LACKING_SHARE * record.duration)):
        lacking = unseen
    return DuplicateMember(
        record.path,
        result.score,
        record.width,
        record.height,
        record.duration,
        record.size,
        best=False,
        relation=relation,
        compared_with=reference.record.path,
        start=start,
        end=end,
        mirrored=result.mirrored,
        lacking=lacking,
        links=file.links,
        doubt=pairs.doubt(file, reference) or pairs.missing(file, reference),
    )

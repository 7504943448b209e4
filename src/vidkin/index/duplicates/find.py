"""Find groups of copies in an index, and report them while the search runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from itertools import combinations, starmap
from threading import Lock
from typing import Any

from vidkin._base.blas import processor_count
from vidkin.errors import InvalidArgumentError
from vidkin.files.findings import FindingKind, check_accepted
from vidkin.index.duplicates.comparisons import Comparisons, FileRecord, PairResult, content_of
from vidkin.index.duplicates.grouping import GroupIds, Grouping
from vidkin.index.duplicates.heard import HeardPairs
from vidkin.index.duplicates.keeper import Preferences, check_preferences
from vidkin.index.duplicates.members import DuplicateGroup, FoundGroup
from vidkin.index.duplicates.pair_scores import GroupJob, PairJob, PairScorer, ScoresAhead
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.duplicates.roles import GroupPairs, describe_group
from vidkin.index.duplicates.scope import PairScope, Scope
from vidkin.index.query.sound import By
from vidkin.index.storage.decisions import Decisions
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import Mapper, Task
from vidkin.similarity import SURE
from vidkin.similarity.sound import SoundScore

_OfGroup = tuple[Comparisons, dict[tuple[str, str], SoundScore]]


# Steps that a group counts for while its files are described and proven.
_STEPS = 100


def find_duplicates(
    files: Sequence[FileRecord],
    search: PairSearch,
    decisions: Decisions,
    *,
    threshold: float = SURE,
    parts: bool = False,
    prefer: Preferences = (),
    prove: bool = False,
    accept: Collection[FindingKind] = (),
    scope: Scope | None = None,
    known_only: bool = False,
    read_files: bool = True,
    workers: int | None = None,
    by: By = "picture",
    on_progress: Callable[[int, int], None] | None = None,
    on_found: Callable[[FoundGroup], None] | None = None,
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
        prefer: Which of the files that could stay is the best, see
            :func:`vidkin.index.duplicates.keeper.check_preferences`.
        prove: Decode all files of the groups, to prove which of them can be removed; see
            :meth:`vidkin.files.proof.Prover.prove`. What was proven before is not proven again.
        accept: Kinds of findings that do not matter.
        scope: Which pairs are compared; None for all.
        known_only: Only group what earlier searches compared.
        read_files: Read files for their traits and for the kind of each copy. Otherwise what is not known is left out.
        workers: Number of groups whose files are read at the same time, at least 1; default one for each processor.
        by: What the score of a pair is made of. Whatever it is, only the picture makes a file removable.
        on_progress: Called with (steps done, steps in all).
        on_found: Called with groups while pairs are compared, for at most a twentieth of the time, and with each group
            when its members and their roles are known.

    Returns:
        Groups sorted by the path of their best copy.

    Raises:
        InvalidArgumentError: The threshold or the number of workers is out of range, a rule is unknown, or it asks for
            sound that the index does not have.
    """
    if not 0.0 < threshold <= 1.0:
        raise InvalidArgumentError(f"threshold must be above 0 and at most 1, got {threshold}")
    if workers is not None and workers < 1:
        raise InvalidArgumentError(f"workers must be at least 1, got {workers}")
    order, scope, accepted = check_preferences(prefer), scope or Scope(), check_accepted(accept)
    heard = HeardPairs(search.sound, search.known, by)
    files = scope.present(files)
    search.pairs, search.parts = PairScope.of(scope, files), parts
    by_content: dict[str, list[FileRecord]] = {}
    for file in files:
        by_content.setdefault(content_of(file.record), []).append(file)
    first_files = {content: twins[0] for content, twins in by_content.items()}
    lengths = {content: file.record.duration for content, file in first_files.items()}
    pairs = GroupPairs(search, decisions, threshold, scope, parts, heard, read_files, prove=prove, accepted=accepted)
    contents = sorted(by_content, key=lambda content: by_content[content][0].record.path)

    def compare(first: str, second: str) -> PairResult:
        result = search.compare(first_files[first].record, first_files[second].record)
        return heard.result(first, second, result, (lengths[first], lengths[second]))

    def group(compare: Callable[[str, str], PairResult | None]) -> list[list[FileRecord]]:
        """Files of each group, by what is known of pairs, and of others by this."""
        seen = {
            (first, second): result
            for first, second, result in search.known.pairs()
            if first in by_content and second in by_content and search.pairs.allows(first, second)
        }
        results = heard.results(seen, lengths, search.pairs.allows)
        grouping = Grouping(results, compare, decisions, threshold, lengths, search.pairs)
        found = ([file for one in each for file in by_content[one]] for each in grouping.groups(contents, parts=parts))
        return [files for files in found if any(starmap(scope.has_pair, combinations(files, 2)))]

    teller = _Teller(on_found, pairs, order, lambda: group(lambda first, second: None))
    compared = 0

    def progress(done: int, total: int) -> None:
        nonlocal compared
        compared = total
        teller.follow()
        if on_progress is not None:
            on_progress(done, total)

    if not known_only:
        search.run([file.record for file in first_files.values()], threshold=threshold, on_progress=progress)
    groups = []
    try:
        copies = group(compare)
        numbers = teller.number(copies)
        steps = _Steps(on_progress, compared, len(copies))
        # Closed before anything is saved, whatever ends it: no thread changes what is known meanwhile.
        with closing(_describe_groups(copies, pairs, order, workers or processor_count(), steps)) as described:
            for number, found in zip(numbers, described, strict=True):
                groups.append(found)
                teller.tell(number, found, is_final=True)
                steps.finish(len(groups))
    finally:
        search.known.save()
    return sorted(groups, key=lambda group: group.best.path)


def prove_groups(
    groups: Sequence[Sequence[FileRecord]],
    search: PairSearch,
    decisions: Decisions,
    *,
    chosen: Collection[str] | None = None,
    threshold: float = SURE,
    parts: bool = False,
    prefer: Preferences = (),
    accept: Collection[FindingKind] = (),
    workers: int | None = None,
    by: By = "picture",
    on_progress: Callable[[int, int], None] | None = None,
) -> list[DuplicateGroup]:
    """Prove what can be removed of groups that a search found.

    Args:
        groups: Files of each group.
        search: Knows what that search has compared, and remembers what is proven.
        decisions: Decisions stored in the index.
        chosen: Paths of the files that may be removed: all others stay. None for all files.
        threshold, parts, prefer, accept, workers, by: As for :func:`find_duplicates`.
        on_progress: Called with (steps done, steps in all). What it raises ends the work.

    Returns:
        The groups in their order.
    """
    files = [file for group in groups for file in group]
    search.pairs, search.parts = PairScope.of(Scope(), files), parts
    pairs = GroupPairs(
        *(search, decisions, threshold, Scope(), parts, HeardPairs(search.sound, search.known, by)),
        prove=True,
        accepted=check_accepted(accept),
        chosen=None if chosen is None else frozenset(chosen),
    )
    steps, proven = _Steps(on_progress, 0, len(groups)), []
    steps.report()
    try:
        described = _describe_groups(groups, pairs, check_preferences(prefer), workers or processor_count(), steps)
        with closing(described):
            for group in described:
                proven.append(group)
                steps.finish(len(proven))
    finally:
        search.known.save()
    return proven


# Seconds until the first look at what is known while pairs are compared, and share of the time that looks take at most.
_FIRST_LOOK, _SHARE_OF_LOOKS = 1.0, 0.05


class _Teller:
    """Tells groups while they are found, if anybody listens: those that changed since the last look.

    Args:
        on_found: Who is told; None is nobody.
        pairs: Results and doubts.
        order: Columns and folders that say which file of a group is preferred.
        group: The files of each group by what is known of pairs.
    """

    def __init__(
        self,
        on_found: Callable[[FoundGroup], None] | None,
        pairs: GroupPairs,
        order: Sequence[str],
        group: Callable[[], list[list[FileRecord]]],
    ) -> None:
        self._on_found, self._group, self._order = on_found, group, order
        # What is told meanwhile reads no file and compares nothing: the search goes on as without it.
        self._pairs = replace(pairs, read_files=False, is_known_only=True, prove=False)
        self._ids, self._told = GroupIds(), dict[int, frozenset[str]]()
        self._sequence = 0
        self._next = time.monotonic() + _FIRST_LOOK

    def follow(self) -> None:
        """Tell what is known by now, if the last look is long enough ago."""
        if self._on_found is None or time.monotonic() < self._next:
            return
        began = time.monotonic()
        copies = self._group()
        for number, files in zip(self.number(copies), copies, strict=True):
            members = frozenset(file.record.path for file in files)
            if self._told.get(number) != members:
                self._told[number] = members
                self.tell(number, describe_group(files, self._pairs, self._order))
        ended = time.monotonic()
        self._next = ended + (ended - began) / _SHARE_OF_LOOKS

    def tell(self, number: int, group: DuplicateGroup | None, *, is_final: bool = False) -> None:
        """Tell a group by its number; None takes it back."""
        self._sequence += 1
        if self._on_found is not None:
            self._on_found(FoundGroup(number, self._sequence, is_final, group))

    def number(self, copies: Sequence[Sequence[FileRecord]]) -> list[int]:
        """Numbers of the groups as they are now; those that are no more are taken back."""
        numbers, gone = self._ids.assign([frozenset(file.record.path for file in files) for files in copies])
        for number in gone:
            self._told.pop(number, None)
            self.tell(number, None, is_final=True)
        return numbers


class _Steps:
    """Progress of several groups at a time: each counts for some steps, of which a share is done."""

    def __init__(self, on_progress: Callable[[int, int], None] | None, before: int, groups: int) -> None:
        self._on_progress, self._before, self._groups = on_progress, before, groups
        self._done, self._shares, self._lock = 0, dict[int, float](), Lock()
        self._is_over = False

    def advance(self, group: int, share: float) -> None:
        """A group, by its number, is done to this share; called by several threads.

        Raises:
            CancelledError: Nobody waits for it any more.
        """
        if self._is_over:
            raise CancelledError
        with self._lock:
            self._shares[group] = share

    def report(self) -> None:
        """Say how far all are; called by the thread that asked for the groups."""
        if self._on_progress is not None:
            with self._lock:
                shares = sum(share for group, share in self._shares.items() if group >= self._done)
            done = self._before + int(_STEPS * (self._done + shares))
            self._on_progress(done, self._before + _STEPS * self._groups)

    def end(self) -> None:
        """Whatever is still at work on a group stops at its next report."""
        self._is_over = True

    def finish(self, groups: int) -> None:
        """So many groups are done, in their order."""
        self._done = groups
        self.report()


# Seconds between two reports while a group is proven.
_REPORT_EVERY = 0.5


def _describe_groups(
    copies: Sequence[Sequence[FileRecord]], pairs: GroupPairs, order: Sequence[str], workers: int, steps: _Steps
) -> Generator[DuplicateGroup, None, None]:
    """The groups in their order. Most of the time goes to decoders, which work side by side in threads."""
    # Reading a file again with the extractor is not divided: a preview, which reads none, needs no threads.
    if pairs.read_files and (scores := pairs.search.scores).mapper is not None and scores.job is not None:
        yield from _describe_elsewhere(copies, pairs, order, scores.job, scores.mapper)
        return
    if not pairs.read_files or not copies:
        yield from (describe_group(files, pairs, order) for files in copies)
        return
    if min(workers, len(copies)) > 1:
        pairs = replace(pairs, threads=1)

    def describe(number: int, files: Sequence[FileRecord]) -> DuplicateGroup:
        return describe_group(files, pairs, order, lambda share: steps.advance(number, share))

    with ThreadPoolExecutor(min(workers, len(copies)), thread_name_prefix="vidkin duplicates") as pool:
        tasks = [pool.submit(describe, number, files) for number, files in enumerate(copies)]
        try:
            for task in tasks:
                while not wait([task], timeout=_REPORT_EVERY).done:
                    steps.report()
                yield task.result()
        finally:
            steps.end()
            for task in tasks:
                task.cancel()


def _describe_elsewhere(
    copies: Sequence[Sequence[FileRecord]], pairs: GroupPairs, order: Sequence[str], scores: PairJob, mapper: Mapper
) -> Generator[DuplicateGroup, None, None]:
    """The groups in their order, each from wherever there is time to read its files; what that found is remembered."""
    known, heard = pairs.search.known, pairs.heard
    settings = order, heard.by, pairs.decisions, pairs.threshold, pairs.scope, pairs.parts, pairs.prove, pairs.accepted
    job, tasks = GroupJob(scores, heard.sound is not None, _describe_there, settings), []
    for files, contents in ((files, {content_of(file.record) for file in files}) for files in copies):
        words = files, (known.part(contents), heard.found_of(contents))
        tasks += [Task("describe", words, about=files[0].record.path)]
    for group, found in mapper.run(job, tasks):
        known.merge(found)
        known.save_now_and_then()
        yield group


def _describe_there(
    scores: PairScorer, sound: SoundSearch | None, given: tuple[Any, ...], files: Sequence[FileRecord], known: _OfGroup
) -> tuple[DuplicateGroup, Comparisons]:
    """A group of these files, and what is known of them then."""
    (order, by, decisions, threshold, scope, parts, prove, accepted), (compared, found) = given, known
    search = PairSearch(scores.store, scores.common, scores.scorer, compared, scores.readings, sound=sound)
    search.scores = ScoresAhead(scores)
    heard = HeardPairs(sound, compared, by, found=found)
    pairs = GroupPairs(search, decisions, threshold, scope, parts, heard, prove=prove, accepted=accepted, threads=1)
    return describe_group(files, pairs, order), compared

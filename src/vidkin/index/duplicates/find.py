"""Find groups of copies in an index, and report preliminary groups while the search runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, starmap

from vidkin._base.blas import processor_count
from vidkin.errors import InvalidArgumentError
from vidkin.files.findings import FindingKind, check_accepted
from vidkin.index.duplicates.comparisons import Comparisons, FileRecord, PairResult, content_of
from vidkin.index.duplicates.group_pairs import GroupPairs, GroupRules
from vidkin.index.duplicates.grouping import GroupIds, Grouping
from vidkin.index.duplicates.heard import ContentPair, HeardPairs
from vidkin.index.duplicates.keeper import Preferences, check_preferences
from vidkin.index.duplicates.members import DuplicateGroup, FoundGroup
from vidkin.index.duplicates.pair_scores import PairJob, PairScorer
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.duplicates.roles import describe_group
from vidkin.index.duplicates.scope import PairScope, Scope
from vidkin.index.query.sound import By
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.decisions import Decisions
from vidkin.index.storage.place import Place
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import Mapper, Task, check_files_here
from vidkin.similarity import SURE
from vidkin.similarity.sound import SoundScore

_Groups = Sequence[Sequence[FileRecord]]

# Number of progress steps per group while its files are read and proven.
_STEPS = 100
# Seconds between progress reports while a group is processed.
_REPORT_EVERY = 0.5
# Seconds until the first preview while pairs are compared, and maximum fraction of the time spent on previews.
_FIRST_PREVIEW, _MAX_PREVIEW_RATIO = 1.0, 0.05


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

    Each video is compared with its nearest videos from the first search stage. Pairs with an uncertain score are
    decoded again and scored as by :func:`vidkin.compare`. Rejected pairs are never in the same group; confirmed pairs
    always are.

    Args:
        files: Files of the index.
        search: Compares pairs and caches the results.
        decisions: User decisions saved in the index.
        threshold: Minimum score of two videos in a group, in (0, 1].
        parts: Also group excerpts with the video they were taken from.
        prefer: Order of preference for the file to keep, see
            :func:`vidkin.index.duplicates.keeper.check_preferences`.
        prove: Decode all files of the groups to prove which can be removed, see
            :meth:`vidkin.files.proof.Prover.prove`. Existing proofs are reused.
        accept: Kinds of findings to ignore.
        scope: Which pairs to compare; None for all.
        known_only: Only use results of earlier searches.
        read_files: Open files to determine their traits and the kind of each copy; otherwise unknown values are
            omitted.
        workers: Number of groups whose files are read in parallel, at least 1; default: one per processor.
        by: Basis of the scores. Files that match only by sound are never removable.
        on_progress: Callback that receives (steps done, total number of steps).
        on_found: Callback that receives preliminary groups while pairs are compared, at a cost of at most 5 % of the
            time, and each final group.

    Returns:
        Groups sorted by the path of their best copy.

    Raises:
        InvalidArgumentError: The threshold or the number of workers is out of range, or ``by`` is unknown or needs
            audio fingerprints that the index does not have.
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
    records = {content: twins[0].record for content, twins in by_content.items()}
    lengths = {content: record.duration for content, record in records.items()}
    pairs = GroupPairs(
        search, heard, GroupRules(decisions, order, threshold, parts, prove, accepted, scope, by), read_files
    )

    def compare(first: str, second: str) -> PairResult:
        result = search.compare(records[first], records[second])
        return heard.result(first, second, result, (lengths[first], lengths[second]))

    def group(compare: Callable[[str, str], PairResult | None]) -> list[list[FileRecord]]:
        """Return the files of each group, using known results and, for the other pairs, ``compare``."""
        seen = {
            (first, second): result
            for first, second, result in search.known.pairs()
            if first in by_content and second in by_content and search.pairs.allows(first, second)
        }
        results = heard.results(seen, lengths, search.pairs.allows)
        grouping = Grouping(results, compare, decisions, threshold, lengths, search.pairs)
        contents = sorted(by_content, key=lambda content: records[content].path)
        found = ([file for one in each for file in by_content[one]] for each in grouping.groups(contents, parts=parts))
        return [files for files in found if any(starmap(scope.has_pair, combinations(files, 2)))]

    preview = _GroupPreview(on_found, pairs, lambda: group(lambda first, second: None))
    compared = 0

    def progress(done: int, total: int) -> None:
        nonlocal compared
        compared = total
        preview.follow()
        if on_progress is not None:
            on_progress(done, total)

    if not known_only:
        search.run(list(records.values()), on_progress=progress)
    groups = []
    try:
        copies = group(compare)
        numbers = preview.number(copies)
        steps = _Steps(on_progress, compared, len(copies))
        # Close the generator before saving, even after an error, so that no thread changes the results while they are
        # saved.
        with closing(_describe_groups(copies, pairs, workers, steps)) as described:
            for number, found in zip(numbers, described, strict=True):
                groups.append(found)
                preview.report(number, found, is_final=True)
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
    """Prove which files can be removed from groups found by an earlier search.

    Args:
        groups: Files of each group.
        search: Contains the results of the earlier search, and receives the proofs.
        decisions: User decisions saved in the index.
        chosen: Paths of the files that may be removed; None for all files.
        threshold, parts, prefer, accept, workers, by: As for :func:`find_duplicates`.
        on_progress: Callback that receives (steps done, total number of steps). Raising an exception stops the work.

    Returns:
        The groups in the given order.
    """
    search.pairs, search.parts = PairScope.of(Scope(), [file for group in groups for file in group]), parts
    heard = HeardPairs(search.sound, search.known, by)
    stays = None if chosen is None else frozenset(chosen)
    rules = GroupRules(
        *(decisions, check_preferences(prefer), threshold, parts, True, check_accepted(accept), Scope(), by, stays)
    )
    steps, proven = _Steps(on_progress, 0, len(groups)), []
    steps.report()
    try:
        with closing(_describe_groups(groups, GroupPairs(search, heard, rules), workers, steps)) as described:
            for group in described:
                proven.append(group)
                steps.finish(len(proven))
    finally:
        search.known.save()
    return proven


class _GroupPreview:
    """Reports groups that have changed since the last preview.

    Args:
        on_found: Callback that receives the groups; None for no previews.
        pairs: Results for pairs of files.
        group: Function that groups the files by the results known so far.
    """

    def __init__(
        self, on_found: Callable[[FoundGroup], None] | None, pairs: GroupPairs, group: Callable[[], _Groups]
    ) -> None:
        self._on_found, self._group = on_found, group
        # Previews must not affect the search, so they neither read files nor compare pairs.
        rules = replace(pairs.rules, prove=False)
        self._pairs = replace(pairs, rules=rules, read_files=False, is_known_only=True)
        self._ids, self._members = GroupIds(), dict[int, frozenset[str]]()
        self._sequence, self._next = 0, time.monotonic() + _FIRST_PREVIEW

    def follow(self) -> None:
        """Report the current groups if the last preview was long enough ago."""
        if self._on_found is None or time.monotonic() < self._next:
            return
        began = time.monotonic()
        copies = self._group()
        for number, files in zip(self.number(copies), copies, strict=True):
            members = frozenset(file.record.path for file in files)
            if self._members.get(number) != members:
                self._members[number] = members
                self.report(number, describe_group(files, self._pairs))
        ended = time.monotonic()
        self._next = ended + (ended - began) / _MAX_PREVIEW_RATIO

    def report(self, number: int, group: DuplicateGroup | None, *, is_final: bool = False) -> None:
        """Report a group under its number; None withdraws it."""
        self._sequence += 1
        if self._on_found is not None:
            self._on_found(FoundGroup(number, self._sequence, is_final, group))

    def number(self, copies: _Groups) -> list[int]:
        """Return the numbers of the current groups, and withdraw groups that no longer exist."""
        numbers, gone = self._ids.assign([frozenset(file.record.path for file in files) for files in copies])
        for number in gone:
            self._members.pop(number, None)
            self.report(number, None, is_final=True)
        return numbers


class _Steps:
    """Progress of groups processed in parallel; each group counts as `_STEPS` steps."""

    def __init__(self, on_progress: Callable[[int, int], None] | None, before: int, groups: int) -> None:
        self._on_progress, self._before, self._fractions = on_progress, before, [0.0] * groups
        self.is_over = False

    def advance(self, group: int, fraction: float) -> None:
        """Record which fraction of a group is done; called from several threads.

        Raises:
            CancelledError: The caller no longer waits for the result.
        """
        if self.is_over:
            raise CancelledError
        self._fractions[group] = fraction

    def finish(self, groups: int) -> None:
        """Report that the first ``groups`` groups are done."""
        self._fractions[:groups] = [1.0] * groups
        self.report()

    def report(self) -> None:
        """Report the overall progress; must be called from the caller's thread."""
        if self._on_progress is not None:
            total = self._before + _STEPS * len(self._fractions)
            self._on_progress(self._before + int(_STEPS * sum(self._fractions)), total)


def _describe_groups(
    copies: _Groups, pairs: GroupPairs, workers: int | None, steps: _Steps
) -> Generator[DuplicateGroup, None, None]:
    """Yield the described groups in order; files are decoded in parallel threads."""
    search, count = pairs.search, min(workers or processor_count(), len(copies))
    if not (pairs.read_files and copies):  # without reading files, threads would not help
        yield from (describe_group(files, pairs) for files in copies)
    elif search.mapper is not None and search.job is not None:
        job = GroupJob(search.job, pairs.heard.sound is not None, pairs.rules)
        yield from _describe_elsewhere(copies, pairs, job, search.mapper)
    else:
        pairs = replace(pairs, threads=1) if count > 1 else pairs
        with ThreadPoolExecutor(count, thread_name_prefix="vidkin duplicates") as pool:
            tasks = [
                pool.submit(describe_group, files, pairs, partial(steps.advance, number))
                for number, files in enumerate(copies)
            ]
            try:
                for task in tasks:
                    while not wait([task], timeout=_REPORT_EVERY).done:
                        steps.report()
                    yield task.result()
            finally:
                steps.is_over = True
                for task in tasks:
                    task.cancel()


def _describe_elsewhere(
    copies: _Groups, pairs: GroupPairs, job: GroupJob, mapper: Mapper
) -> Generator[DuplicateGroup, None, None]:
    """Yield the described groups in order, using the workers of a mapper, and save their results."""
    known, heard, tasks = pairs.search.known, pairs.heard, []
    for files in copies:
        contents = {content_of(file.record) for file in files}
        given = files, known.part(contents), heard.known_matches(contents)
        tasks.append(Task("describe", given, about=files[0].record.path))
    for group, found in mapper.run(job, tasks):
        known.merge(found)
        known.save_if_due()
        yield group


@dataclass(frozen=True, slots=True)
class GroupJob:
    """A :class:`~vidkin.index.storage.tasks.MappedJob` that reads the files of groups and describes the groups.

    Attributes:
        pairs: Job that scores pairs.
        has_sound: Whether the index has audio fingerprints.
        rules: The caller's settings for groups.
    """

    pairs: PairJob
    has_sound: bool
    rules: GroupRules

    def start(self, place: Place, store: VectorStore) -> GroupWorker:
        """Create a worker that describes groups in one process."""
        sound = SoundSearch(place) if self.has_sound else None
        return GroupWorker(self.pairs.start(place, store), sound, self.rules)


@dataclass(frozen=True, slots=True)
class GroupWorker:
    """Describes groups in one process."""

    scores: PairScorer
    sound: SoundSearch | None
    rules: GroupRules

    def describe(
        self, files: Sequence[FileRecord], known: Comparisons, found: Mapping[ContentPair, SoundScore]
    ) -> tuple[DuplicateGroup, Comparisons]:
        """Describe a group of files; return the group and all results known afterward.

        Args:
            files: The files.
            known: Known results for these files.
            found: Known sound scores of their pairs.

        Raises:
            ClusterError: This machine cannot access one of the files.
        """
        check_files_here(file.record.path for file in files)
        scores = self.scores
        search = PairSearch(scores.store, scores.scorer, known, scores.readings, self.rules.parts)
        search.scores = scores
        heard = HeardPairs(self.sound, known, self.rules.by, found=dict(found))
        return describe_group(files, GroupPairs(search, heard, self.rules, threads=1)), known

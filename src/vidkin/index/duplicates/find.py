"""Groups of copies: the role of each member, and which one to keep."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import combinations, starmap
from typing import Any, TypeVar

from vidkin._base.blas import processor_count
from vidkin._base.values import Result, fields_as_json
from vidkin.errors import InvalidArgumentError, MediaError, NotIndexedError
from vidkin.index.duplicates.companions import find_companions, find_photograph
from vidkin.index.duplicates.comparisons import (
    WHOLE,
    Comparisons,
    FileRecord,
    PairResult,
    Relation,
    content_of,
    relation_of,
    stretch_of,
)
from vidkin.index.duplicates.differences import Difference, look_closely, only_adds_borders
from vidkin.index.duplicates.doubts import find_doubt, is_confirmed, longest_segment
from vidkin.index.duplicates.grouping import GroupIds, Grouping
from vidkin.index.duplicates.heard import ONLY_SOUND, HeardPairs
from vidkin.index.duplicates.keeper import KeepRules, check_keep_rules, choose_keeper, is_better
from vidkin.index.duplicates.pair_scores import GroupJob, PairJob, PairScorer, ScoresAhead
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.duplicates.pictures import SHOWS_MORE, find_missing_picture
from vidkin.index.duplicates.scope import PairScope, Scope
from vidkin.index.query.sound import By
from vidkin.index.query.stages import is_photograph
from vidkin.index.storage.decisions import Decisions
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import Mapper, Task
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name
from vidkin.similarity import SURE, Segment
from vidkin.similarity.sound import SoundScore

_logger = logging.getLogger(__name__)
_Chosen = TypeVar("_Chosen")
_OfGroup = tuple[Comparisons, dict[tuple[str, str], SoundScore]]


@dataclass(frozen=True, slots=True)
class DuplicateMember(Result):
    """One file of a group.

    Attributes:
        path: The file.
        score: In [0, 1], against ``compared_with``; for the best one, the highest score of the others.
        width, height: Pixels as displayed.
        duration: Seconds.
        size: Bytes.
        best: The one to keep.
        relation: ``whole``: shows the same as the other one from start to end; ``excerpt``: is a part of it;
            ``contains``: has it and more; ``overlaps``: shares a part with it.
        compared_with: Path of the other one: the best if they match, otherwise the most similar one. None for the
            best.
        start, end: For an excerpt, or a copy whose ends are cut off, the seconds of the other one that it shows;
            otherwise the seconds of this file that the other one shows; None for a whole.
        mirrored: Whether it is flipped left to right.
        turned: Degrees by which it has to be turned clockwise to show the other one: 0, 90, 180 or 270.
        lacking: Seconds of this file that the best one does not show; 0 for the best.
        links: Other names of the same file (hard links).
        doubt: Why it may not be a copy at all, in a few words; empty if there is no doubt.
        stays: Why it stays whatever the best one shows, in a few words: it is in the library of ``incoming``, or the
            movie of a photograph. Of the best one: why nothing of it may change. Empty if nothing speaks against it.
        companions: Files that belong to it and go where it goes, such as subtitles; paths.
        differences: What kind of copy it is: each way in which it differs from ``compared_with``, see
            :class:`vidkin.index.duplicates.differences.Difference`; empty if nothing can be told.
        segments: Where it matches ``compared_with``, with this file as the query; none where both have the same bytes.
        picture, sound: What each of them says alone, in [0, 1]; of the best one, the highest of the others. None where
            one of the two files has no sound, or the index knows none.
    """

    path: str
    score: float
    width: int
    height: int
    duration: float
    size: int
    best: bool
    relation: Relation = "whole"
    compared_with: str | None = None
    start: float | None = None
    end: float | None = None
    mirrored: bool = False
    turned: int = 0
    lacking: float = 0.0
    links: tuple[str, ...] = ()
    doubt: str = ""
    stays: str = ""
    companions: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    segments: tuple[Segment, ...] = ()
    picture: float | None = None
    sound: float | None = None

    @classmethod
    def of(cls, file: FileRecord, score: float, **others: Any) -> DuplicateMember:
        """A member that is this file; the other fields as they are named."""
        record = file.record
        shape = record.width, record.height, record.duration, record.size
        belonging = find_companions(record.path)
        if not others["best"] and not others.get("stays") and find_photograph(record.path, record.duration):
            others["stays"] = "the movie of a photograph of the same name"
        return cls(record.path, score, *shape, links=file.links, companions=belonging, **others)

    @property
    def is_spare(self) -> bool:
        """Whether it can be removed without loss: the best one shows all of it, as far as can be told."""
        return not (self.best or self.lacking or self.doubt or self.stays)

    def to_dict(self) -> dict[str, Any]:
        """The fields and ``is_spare`` as plain values, as ``vidkin duplicates --json`` prints them."""
        return {**fields_as_json(self), "is_spare": self.is_spare}


@dataclass(frozen=True, slots=True)
class DuplicateGroup(Result):
    """Files that hold the same material, the best copy first.

    Attributes:
        members: The best first, the others by descending score.
        reason: Why the best one was chosen.
    """

    members: tuple[DuplicateMember, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        if len(self.members) < 2 or sum(member.best for member in self.members) != 1:
            raise InvalidArgumentError(
                f"a group must have at least 2 members with one of them the best, got {len(self.members)} with "
                f"{sum(member.best for member in self.members)}"
            )

    @property
    def best(self) -> DuplicateMember:
        """The copy to keep."""
        return next(member for member in self.members if member.best)

    @property
    def savings(self) -> int:
        """Bytes of the members that are spare; a file with several hard links frees its bytes only with all of them."""
        return sum(member.size for member in self.members if member.is_spare)

    def to_dict(self) -> dict[str, Any]:
        """The fields and ``savings`` as plain values, as ``vidkin duplicates --json`` prints them."""
        return {**fields_as_json(self), "savings": self.savings}

    def cards(self, path: str = "") -> list[Card]:
        """A picture of each file, for a notebook."""
        return [
            Card(member.path, None, shown_name(member.path), f"best: {self.reason}" if member.best else _facts(member))
            for member in self.members
        ]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row a file."""
        return [member.to_dict() for member in self.members]

    def to_pandas(self) -> Any:
        """The files as a pandas DataFrame; :class:`vidkin.errors.MissingPartError` where it is not installed."""
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards())


@dataclass(frozen=True, slots=True)
class FoundGroup(Result):
    """A group as far as it is known while a search is at work.

    Attributes:
        id: Number of the group in this search: a later one with the same number replaces it.
        sequence: 1, 2, 3 and so on, in the order in which groups are told.
        is_final: Whether it stays as it is. Until then no file was read for it: its best one is that with the most
            pixels, what was not looked at is in doubt, and members come and go.
        group: The group; None if its files are in none, or in another one, after all.
    """

    id: int
    sequence: int
    is_final: bool
    group: DuplicateGroup | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, those of the group beside the others; without a group ``members`` is empty."""
        group = {"members": [], "reason": "", "savings": 0} if self.group is None else self.group.to_dict()
        return {"id": self.id, "sequence": self.sequence, "is_final": self.is_final, **group}


def _facts(member: DuplicateMember) -> str:
    return f"{member.relation}, score {member.score:.2f}{', ' + member.doubt if member.doubt else ''}"


# Seconds of a copy that the best one may lack: a twentieth of its length, but between one and ten.
_LACKING_SHARE = 0.05
_LEAST_LACKING, _MOST_LACKING = 1.0, 10.0
# By how much a flipped or turned copy must score more than another one as it is.
_CLEARLY_BETTER = 0.15
NOT_WHOLE = "not a whole copy"
"""Doubt about an excerpt where only whole copies are looked for: it is not removed."""
# Doubt in a pair of which no file was read yet.
_NOT_CHECKED = "not checked yet"


def find_duplicates(
    files: Sequence[FileRecord],
    search: PairSearch,
    decisions: Decisions,
    *,
    threshold: float = SURE,
    parts: bool = False,
    keep: KeepRules = "best",
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
        keep: Which member is the best, see :func:`vidkin.index.duplicates.keeper.choose_keeper`.
        scope: Which pairs are compared; None for all.
        known_only: Only group what earlier searches compared.
        read_files: Read files to choose the best ones and to look for doubts. Otherwise the best one has the most
            pixels, and whatever was not looked at before is in doubt.
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
    rules, scope = check_keep_rules(keep), scope or Scope()
    heard = HeardPairs(search.sound, search.known, by)
    files = scope.present(files)
    search.pairs, search.parts = PairScope.of(scope, files), parts
    by_content: dict[str, list[FileRecord]] = {}
    for file in files:
        by_content.setdefault(content_of(file.record), []).append(file)
    first_files = {content: twins[0] for content, twins in by_content.items()}
    lengths = {content: file.record.duration for content, file in first_files.items()}
    pairs = _Pairs(search, decisions, threshold, scope, parts, heard, read_files)
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

    teller = _Teller(on_found, pairs, rules, lambda: group(lambda first, second: None))
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
        # Closed before anything is saved, whatever ends it: no thread changes what is known meanwhile.
        with closing(_describe_groups(copies, pairs, rules, workers or processor_count())) as described:
            for number, found in zip(numbers, described, strict=True):
                groups.append(found)
                teller.tell(number, found, is_final=True)
                if on_progress is not None:
                    on_progress(compared + len(groups), compared + len(copies))
    finally:
        search.known.save()
    return sorted(groups, key=lambda group: group.best.path)


# Seconds until the first look at what is known while pairs are compared, and share of the time that looks take at most.
_FIRST_LOOK, _SHARE_OF_LOOKS = 1.0, 0.05


class _Teller:
    """Tells groups while they are found, if anybody listens: those that changed since the last look.

    Args:
        on_found: Who is told; None is nobody.
        pairs: Results and doubts.
        rules: Which file of a group is the best.
        group: The files of each group by what is known of pairs.
    """

    def __init__(
        self,
        on_found: Callable[[FoundGroup], None] | None,
        pairs: _Pairs,
        rules: Sequence[str],
        group: Callable[[], list[list[FileRecord]]],
    ) -> None:
        self._on_found, self._group, self._rules = on_found, group, rules
        # What is told meanwhile reads no file and compares nothing: the search goes on as without it.
        self._pairs = replace(pairs, read_files=False, is_known_only=True)
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
                self.tell(number, _group(files, self._pairs, self._rules))
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


def _describe_groups(
    copies: Sequence[Sequence[FileRecord]], pairs: _Pairs, rules: Sequence[str], workers: int
) -> Generator[DuplicateGroup, None, None]:
    """The groups in their order. Most of the time goes to decoders, which work beside each other in threads."""
    # Reading a file again with the extractor is not divided: a preview, which reads none, needs no threads.
    if pairs.read_files and (scores := pairs.search.scores).mapper is not None and scores.job is not None:
        yield from _describe_elsewhere(copies, pairs, rules, scores.job, scores.mapper)
        return
    if workers == 1 or not pairs.read_files or len(copies) < 2:
        yield from (_group(files, pairs, rules) for files in copies)
        return
    with ThreadPoolExecutor(min(workers, len(copies)), thread_name_prefix="vidkin duplicates") as pool:
        yield from pool.map(lambda files: _group(files, pairs, rules), copies)


def _describe_elsewhere(
    copies: Sequence[Sequence[FileRecord]], pairs: _Pairs, rules: Sequence[str], scores: PairJob, mapper: Mapper
) -> Generator[DuplicateGroup, None, None]:
    """The groups in their order, each from wherever there is time to read its files; what that found is remembered."""
    known, heard = pairs.search.known, pairs.heard
    settings = dict(known.keepers), rules, heard.by, pairs.decisions, pairs.threshold, pairs.scope, pairs.parts
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
    """A group of these files, and what is known of them then; its choices of the best are only the new ones."""
    (keepers, rules, by, decisions, threshold, scope, parts), (compared, found) = given, known
    compared.keepers = dict(keepers)
    search = PairSearch(scores.store, scores.common, scores.scorer, compared, scores.readings, sound=sound)
    search.scores = ScoresAhead(scores)
    heard = HeardPairs(sound, compared, by, found=found)
    group = _group(files, _Pairs(search, decisions, threshold, scope, parts, heard), rules)
    compared.keepers = {key: compared.keepers[key] for key in compared.keepers.keys() - keepers.keys()}
    return group, compared


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Results and doubts for pairs of files of a group.

    Several groups may ask at a time: what is known and what reads the index or the extractor is used by one at a time,
    decoding is not. With ``is_known_only``, nothing is compared or listened to that is not known.
    """

    search: PairSearch
    decisions: Decisions
    threshold: float
    scope: Scope
    parts: bool
    heard: HeardPairs
    read_files: bool = True
    is_known_only: bool = False

    def __call__(self, first: FileRecord, second: FileRecord) -> PairResult:
        one, other = content_of(first.record), content_of(second.record)
        if one == other:
            return PairResult(1.0, True, (1.0, 1.0), doubt="")
        result = self.plain(first, second)
        if self.decisions.verdict(one, other) == "match":
            return PairResult(1.0, True, (1.0, 1.0), result.segments, "")
        return result

    def finest(self, first: FileRecord, second: FileRecord, *, like: PairResult | None = None) -> PairResult:
        """The same from a reading as fine as that of queries; flipped or turned if this result of others is."""
        one, other = content_of(first.record), content_of(second.record)
        if self.read_files and one != other and self.decisions.verdict(one, other) != "match":
            with self.heard.lock:
                if like is not None and like.turned:
                    self.search.find_turned(first.record, second.record, like.turned, mirrored=like.mirrored)
                elif like is not None and like.mirrored:
                    self.search.find_flipped(first.record, second.record, self.threshold)
                else:
                    self.search.refine(first.record, second.record)
        return self(first, second)

    def plain(self, first: FileRecord, second: FileRecord) -> PairResult:
        """The result of two contents, whatever was decided about them."""
        if self.is_known_only:
            known = self.search.known.get(content_of(first.record), content_of(second.record))
            return known or PairResult(0.0)
        with self.heard.lock:
            return self.search.compare(first.record, second.record)

    def doubt(self, first: FileRecord, second: FileRecord) -> str:
        """Why two files may not be copies; checked once per pair, if files are read at all."""
        result = self(first, second)
        if result.doubt is not None or self.search.readings is None:
            return result.doubt or ""
        if not self.read_files:
            return _NOT_CHECKED
        try:
            doubt = "" if self._is_confirmed(first, second, result) else find_doubt(first, second, result)
        except MediaError as error:
            return error.cause
        self._remember(first, second, replace(result, doubt=doubt))
        return doubt

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

    def _is_confirmed(self, first: FileRecord, second: FileRecord, result: PairResult) -> bool:
        """Whether stored features leave no doubt, so that the files need not be read for it."""
        segment = longest_segment(result)
        if segment is None or segment.turned or is_photograph(first.record) or is_photograph(second.record):
            return False
        try:
            with self.heard.lock:
                one, other = self.search.stored([first.record, second.record])
        except NotIndexedError:
            return False  # removed by another process meanwhile
        if segment.mirrored:
            flipped = None if self.search.readings is None else self.search.readings.predict_turned(one, "mirrored")
            if flipped is None:
                return False
            one = flipped
        return is_confirmed(one, other, segment)

    def missing(self, first: FileRecord, second: FileRecord) -> str:
        """What part of the picture would be lost without the first file; checked once per pair."""
        if content_of(first.record) == content_of(second.record):
            return ""
        result = self.plain(first, second)
        missing = result.missing
        if missing is None and not self.read_files:
            return _NOT_CHECKED
        if missing is None:
            try:
                missing = find_missing_picture(first, second, result)
            except MediaError as error:
                return error.cause
            self._remember(first, second, replace(result, missing=missing))
        return "" if missing[0] == SHOWS_MORE and only_adds_borders(self.differences(first, second)) else missing[0]

    def differences(self, first: FileRecord, second: FileRecord) -> tuple[Difference, ...]:
        """How the first file differs from the second; looked at once per pair, if files are read at all."""
        one, other = content_of(first.record), content_of(second.record)
        known, key = self.search.known, f"{one} {other}"
        try:
            if key in known.differences:
                return tuple(Difference(**fields) for fields in known.differences[key])
        except (TypeError, InvalidArgumentError):
            pass  # a later version stored more kinds: look again
        if self.search.readings is None or not self.read_files:
            return ()
        try:
            result = self.plain(first, second)
            look = look_closely(first, second, result)
        except MediaError as error:
            _logger.info("%s; what kind of copy it is was not looked at", error)
            return ()
        with self.heard.lock:
            known.differences[key] = [difference.to_dict() for difference in look.differences]
            if look.is_one_recording and result.doubt is None:
                # The same pictures answer both questions.
                known.put(one, other, replace(result, doubt=""))
            known.save_now_and_then()
        return look.differences

    def choose(self, choose: Callable[[dict[str, tuple[int, str]]], _Chosen]) -> _Chosen:
        """Make a choice with those that are known, and remember what it adds to them."""
        with self.heard.lock:
            before = dict(self.search.known.keepers)
        keepers = dict(before)
        chosen = choose(keepers)
        with self.heard.lock:
            self.search.known.keepers.update(keepers.items() - before.items())
        return chosen

    def _remember(self, first: FileRecord, second: FileRecord, result: PairResult) -> None:
        with self.heard.lock:
            self.search.known.put(content_of(first.record), content_of(second.record), result)
            self.search.known.save_now_and_then()


def _group(files: Sequence[FileRecord], pairs: _Pairs, rules: Sequence[str]) -> DuplicateGroup:
    # An excerpt is not the best copy of the whole, however good it looks.
    longest = max(file.record.duration for file in files)
    wholes = [file for file in files if file.record.duration >= WHOLE * longest]
    stays: dict[int, str] = {}
    preferable = files
    if pairs.scope.incoming:
        preferable = [file for file in files if pairs.scope.is_library(file)]
        stays = _find_staying(files, wholes, pairs)
        wholes = [file for file in wholes if pairs.scope.is_library(file)] or preferable
    best, reason = _keeper(wholes, preferable, pairs, rules)
    members = [_member(file, best, files, pairs, stays.get(file.record.id, "")) for file in files if file is not best]
    members.sort(key=lambda member: (-member.score, member.path))
    score = max(member.score for member in members)
    said = {
        name: max((value for member in members if (value := getattr(member, name)) is not None), default=None)
        for name in ("picture", "sound")
    }
    first = DuplicateMember.of(best, score, best=True, stays=stays.get(best.record.id, ""), **said)
    return DuplicateGroup((first, *members), reason)


def _keeper(
    wholes: Sequence[FileRecord], preferable: Sequence[FileRecord], pairs: _Pairs, rules: Sequence[str]
) -> tuple[FileRecord, str]:
    preferred = [file for file in preferable if pairs.decisions.prefers(file.record)]
    if preferred:
        return next((file for file in preferred if pairs.decisions.names(file.record)), preferred[0]), "your choice"
    if len(wholes) == 1:
        return wholes[0], "in the library" if pairs.scope.incoming else "longest"
    if not pairs.read_files:
        most = max(wholes, key=lambda file: (file.record.width * file.record.height, file.record.duration))
        return most, _NOT_CHECKED
    return pairs.choose(lambda known: choose_keeper(wholes, rules, pairs, known, pairs.differences))


def _find_staying(files: Sequence[FileRecord], wholes: Sequence[FileRecord], pairs: _Pairs) -> dict[int, str]:
    """Why files stay when new ones are compared with a library, by their ids."""
    stays = {file.record.id: "it is in the library" for file in files if pairs.scope.is_library(file)}
    for file in files:
        if file.record.id not in stays and pairs.decisions.prefers(file.record):
            stays[file.record.id] = "your choice"
    if pairs.read_files:
        library = [file for file in wholes if pairs.scope.is_library(file)]
        better = pairs.choose(lambda known: is_better(wholes, library, pairs, known, pairs.differences))
        if better is not None:
            stays.setdefault(better[0].record.id, f"better than the copy in the library: {better[1]}")
    return stays


def _member(
    file: FileRecord, best: FileRecord, files: Sequence[FileRecord], pairs: _Pairs, stays: str
) -> DuplicateMember:
    is_pair = pairs.scope.has_pair(file, best)
    record, reference, result = file.record, best, pairs.ruled(file, best) if is_pair else PairResult(0.0)
    if result.score < pairs.threshold or _is_better_flipped(file, files, result, pairs):
        others = [other for other in files if other is not file and pairs.scope.has_pair(file, other)]
        reference = max(others, key=lambda other: pairs.ruled(file, other).score)
        result = pairs.ruled(file, reference)
        # A flipped or turned copy was found by one of the others; whether it is one of the best, nobody has looked.
        if is_pair and not result.is_upright:
            found = pairs.finest(file, best, like=result)
            least = result.score - _CLEARLY_BETTER if found.is_upright else 0.0
            if found.score >= pairs.threshold and found.score > least:
                reference, result = best, found
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
    unseen = _unseen(result, record.duration)
    stays = stays or ("" if is_pair else "the kept file is on the same side")
    differences = pairs.differences(file, reference) if is_seen else ()
    trimmed = next((difference for difference in differences if difference.kind == "trimmed"), None)
    if trimmed is not None and relation in ("whole", "excerpt"):
        start, end = trimmed.start, trimmed.end  # to a frame, where the pictures tell
    if reference is not best:
        unseen = 0.0 if stays else record.duration
    doubt = "" if stays else _doubt(file, reference, relation, pairs) if is_seen else ONLY_SOUND
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
        lacking=unseen,
        doubt=doubt,
        stays=stays,
        differences=differences,
        segments=result.segments,
        picture=pairs(file, reference).score,
        sound=pairs.sound(file, reference),
    )


def _is_better_flipped(file: FileRecord, files: Sequence[FileRecord], result: PairResult, pairs: _Pairs) -> bool:
    """Whether another file of the group is known to show this one flipped or turned, clearly better than the best one
    shows it as it is: a picture may look like its own mirror image upside down."""
    if not result.is_upright:
        return False
    known = (pairs.search.known.get(content_of(file.record), content_of(other.record)) for other in files)
    return any(
        other is not None and not other.is_upright and other.score >= result.score + _CLEARLY_BETTER for other in known
    )


def _doubt(file: FileRecord, reference: FileRecord, relation: Relation, pairs: _Pairs) -> str:
    """Why a file is not removed; what stays anyway need not be read for it."""
    doubt = pairs.different_sound(file, reference) or pairs.doubt(file, reference) or pairs.missing(file, reference)
    # It may be in the group because it is a copy of a copy, or because the user said so.
    return doubt or (NOT_WHOLE if relation == "excerpt" and not pairs.parts else "")


def _unseen(result: PairResult, duration: float) -> float:
    """Seconds of the first video that the second one does not show; 0 if that is a matter of its ends."""
    unseen = (1.0 - result.covered[0]) * duration
    return unseen if unseen > max(_LEAST_LACKING, min(_MOST_LACKING, _LACKING_SHARE * duration)) else 0.0

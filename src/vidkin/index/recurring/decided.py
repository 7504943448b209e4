"""User decisions about recurring segments (corrected ends, names, rejections), and how to apply them to groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.recurring.groups import (
    Occurrence,
    RecurringGroup,
    RecurringKind,
    natural_order,
    set_shortfalls,
    sort_groups,
)
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.decisions import (
    DecidedStretch,
    Decisions,
    RecurringDecision,
    RecurringVerdict,
    changing,
    overlaps,
)
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord


def apply_decisions(
    groups: Iterable[RecurringGroup], decisions: Sequence[RecurringDecision], paths: Mapping[str, str], files: int
) -> list[RecurringGroup]:
    """Apply corrected ends and names to groups, and remove rejected groups.

    Occurrences found later in other files are added to a confirmed group. A confirmed group that is no longer found is
    kept as long as two of its occurrences are in the index.

    Args:
        groups: The groups found.
        decisions: The user's decisions.
        paths: Paths of all files searched, keyed by content hash.
        files: Number of files searched.
    """
    contents = {path: content for content, path in paths.items()}
    left = list(groups)
    decided = []
    for decision in decisions:
        known = [stretch for stretch in decision.stretches if stretch.content in paths]
        same = [
            group
            for group in left
            if group.kind != "copy"
            and decision.is_about(_stretches(group.occurrences, contents), group.found_by)
            and known
        ]
        left = [group for group in left if group not in same]
        if decision.verdict == "recurs":
            group = _decided_group(decision, known, same, paths, files)
            if group is not None:
                decided.append(group)
    return sort_groups([*decided, *left])


def _stretches(occurrences: Iterable[Occurrence], contents: Mapping[str, str]) -> list[DecidedStretch]:
    return [
        DecidedStretch(contents[one.path], one.start, one.end, True, one.source)
        for one in occurrences
        if one.path in contents
    ]


def _decided_group(
    decision: RecurringDecision,
    known: Sequence[DecidedStretch],
    same: Sequence[RecurringGroup],
    paths: Mapping[str, str],
    files: int,
) -> RecurringGroup | None:
    """Return the group with its confirmed ends; None if it has fewer than two occurrences in the index."""
    left = [one for group in same for one in group.occurrences]
    occurrences = []
    for stretch in known:
        path, times = paths[stretch.content], (stretch.start, stretch.end)
        found = [one for one in left if one.path == path and overlaps((one.start, one.end), times)]
        left = [one for one in left if one not in found]
        if stretch.belongs:
            plain = Occurrence(path, *times, 1.0)
            best = max(found, key=lambda one: (one.score, one.speed), default=plain)
            occurrences.append(
                replace(best, start=times[0], end=times[1], shorter=0.0, other_sound=False, source=stretch.source)
            )
    occurrences += left
    if len(occurrences) < 2:
        return None
    occurrences.sort(key=lambda one: (one.source, natural_order(one.path), one.start))
    kind: RecurringKind = next((name for name in get_args(RecurringKind) if name == decision.kind), "inside")
    whole = tuple(occurrences) if kind == "recap" else set_shortfalls(occurrences)
    return RecurringGroup(whole, kind, files, decision.name, True, decision.found_by)


def decide_group(
    place: Place,
    store: VectorStore,
    group: RecurringGroup,
    verdict: RecurringVerdict,
    *,
    without: Sequence[Occurrence] = (),
    wait: float,
) -> None:
    """Save the user's decision about a group, replacing an earlier one.

    Args:
        place: Location of the index.
        store: Store of the index.
        group: The group, with corrected ends and name.
        verdict: Whether the segment recurs.
        without: Occurrences that were found with the group but do not belong to it.
        wait: Seconds to wait for another writer.

    Raises:
        InvalidArgumentError: The group consists of copies, or an occurrence starts after the end of its file.
        NotIndexedError: A file is not in the index.
        CollectionLockedError: Another process is writing.
    """
    if group.kind == "copy":
        raise InvalidArgumentError(
            "a group of copies cannot be confirmed or rejected; use confirm and reject for its pairs"
        )
    records = {record.path: record for record in store.videos()}
    stretches = [
        *(_stretch(records, one, belongs=True) for one in group.occurrences),
        *(_stretch(records, one, belongs=False) for one in without),
    ]
    decision = RecurringDecision(verdict, group.name, group.kind, tuple(stretches), group.found_by)
    with changing(place, wait) as decisions:
        decisions.recurring = [*_other_decisions(decisions, group, stretches), decision]


def _other_decisions(
    decisions: Decisions, group: RecurringGroup, stretches: Sequence[DecidedStretch]
) -> list[RecurringDecision]:
    """Return the decisions that do not concern a group with these segments."""
    is_inside = len({stretch.content for stretch in stretches if stretch.belongs}) == 1
    return [
        old for old in decisions.recurring if old.is_inside != is_inside or not old.is_about(stretches, group.found_by)
    ]


def forget_group(place: Place, store: VectorStore, group: RecurringGroup, *, wait: float) -> None:
    """Delete the user's decision about a group.

    Raises:
        InvalidArgumentError: There is no decision about the group.
        NotIndexedError: A file is not in the index.
        CollectionLockedError: Another process is writing.
    """
    records = {record.path: record for record in store.videos()}
    stretches = [_stretch(records, one, belongs=True) for one in group.occurrences]
    with changing(place, wait) as decisions:
        kept = _other_decisions(decisions, group, stretches)
        if len(kept) == len(decisions.recurring):
            raise InvalidArgumentError("there is no decision about this group")
        decisions.recurring = kept


def rejected_groups(place: Place, paths: Mapping[str, str], files: int) -> list[RecurringGroup]:
    """Return the groups that the user rejected, if at least two of their occurrences are in the index."""
    rejected = [each for each in Decisions.open(place).recurring if each.verdict == "does not recur"]
    shown = [
        _decided_group(each, [one for one in each.stretches if one.content in paths], (), paths, files)
        for each in rejected
    ]
    return [replace(group, is_confirmed=False) for group in shown if group is not None]


def _stretch(records: Mapping[str, VideoRecord], one: Occurrence, *, belongs: bool) -> DecidedStretch:
    record = records.get(one.path)
    if record is None or not record.content_hash:
        raise NotIndexedError(f"{one.path} is not in the index, or has changed since it was indexed; index it again")
    if one.start >= record.duration:
        raise InvalidArgumentError(f"start must be before the end of {one.path} ({record.duration} s), got {one.start}")
    return DecidedStretch(record.content_hash, one.start, one.end, belongs, one.source)


def paths_by_content(records: Collection[VideoRecord]) -> dict[str, str]:
    """Return the path for each content hash; for byte-identical files, the first path."""
    ordered = sorted(records, key=lambda record: natural_order(record.path), reverse=True)
    return {record.content_hash: record.path for record in ordered if record.content_hash}

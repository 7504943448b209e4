"""Groups of copies over a whole collection, without comparing all pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.decisions import Decisions
from vidkin.index.search.query import query_from_stored
from vidkin.index.search.stages import find_candidates, score_candidates
from vidkin.index.storage.contract import VectorStore, VideoRecord
from vidkin.similarity import Scorer

__all__ = ["DuplicateGroup", "DuplicateMember", "find_duplicates"]

# A video whose neighbours are removed meanwhile is looked at again so many times.
_MOST_READINGS = 5


@dataclass(frozen=True, slots=True)
class DuplicateMember:
    """One file of a group.

    Attributes:
        path: The file.
        score: Its best score with another member, in [0, 1].
        width, height: Pixels as displayed.
        duration: Seconds.
        size: Bytes.
        best: The one to keep: most pixels, then longest, then most bytes, then first by path.
    """

    path: str
    score: float
    width: int
    height: int
    duration: float
    size: int
    best: bool


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Files that hold the same material, the best copy first."""

    members: tuple[DuplicateMember, ...]

    def __post_init__(self) -> None:
        if len(self.members) < 2 or sum(member.best for member in self.members) != 1:
            raise InvalidArgumentError("a group has two or more members, one of which is the best")

    @property
    def best(self) -> DuplicateMember:
        """The copy to keep."""
        return next(member for member in self.members if member.best)


def find_duplicates(
    store: VectorStore,
    common: CommonFrames,
    decisions: Decisions,
    *,
    threshold: float = 0.7,
    neighbours: int = 20,
    scorer: Scorer | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[DuplicateGroup]:
    """Groups whose members are connected by pairs that score at least ``threshold``.

    Each video is compared exactly with the ``neighbours`` videos nearest to it in the first stage. A pair that
    was rejected never stands in one group; a confirmed one does. Mirrored copies need :meth:`Index.search`: a stored
    video cannot be flipped.

    Args:
        threshold: In (0, 1].
        on_progress: Called with (videos done, videos in all).

    Returns:
        Groups in the order of their best copies' paths.
    """
    if not 0.0 < threshold <= 1.0:
        raise InvalidArgumentError(f"threshold is {threshold}, allowed is (0, 1]")
    records = [record for record in store.videos() if record.status == "ok" and record.frames > 0]
    known = {record.id for record in records}
    links = _decided(records, decisions)
    for done, record in enumerate(records, start=1):
        links |= _links_of(record.id, store, common, known, links, neighbours, scorer)
        if on_progress is not None:
            on_progress(done, len(records))
    return _groups(records, {pair: score for pair, score in links.items() if score >= threshold}, decisions)


def _links_of(
    video_id: int,
    store: VectorStore,
    common: CommonFrames,
    known: set[int],
    links: Mapping[tuple[int, int], float],
    neighbours: int,
    scorer: Scorer | None,
) -> dict[tuple[int, int], float]:
    """Scores of one video with those nearest to it that have none yet."""
    for _ in range(_MOST_READINGS):
        try:
            query = query_from_stored(store.read(video_id), common)
            wanted = [
                other
                for other in find_candidates(store, query, neighbours + 1)
                if other != video_id and other in known and _pair(other, video_id) not in links
            ]
            scored = score_candidates(store, query, wanted, common, scorer=scorer)
        except NotIndexedError:
            continue  # It, or one of those nearest to it, was removed by another process meanwhile.
        return {_pair(other, video_id): found.score for other, found in scored}
    return {}


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _decided(records: list[VideoRecord], decisions: Decisions) -> dict[tuple[int, int], float]:
    """Links that are known before any comparison: equal files, and pairs that a person confirmed."""
    by_hash: dict[str, list[int]] = {}
    for record in records:
        by_hash.setdefault(record.content_hash, []).append(record.id)
    links: dict[tuple[int, int], float] = {}
    for ids in by_hash.values():
        links.update({_pair(ids[0], other): 1.0 for other in ids[1:]})
    for pair, verdict in decisions.verdicts.items():
        first, second = sorted(pair)
        if verdict == "match" and first in by_hash and second in by_hash:
            one, other = by_hash[first][0], by_hash[second][0]
            links[_pair(one, other)] = 1.0
    return links


def _groups(
    records: list[VideoRecord], links: dict[tuple[int, int], float], decisions: Decisions
) -> list[DuplicateGroup]:
    """Strongest links first; one that would bring a rejected pair together is left out."""
    hashes = {record.id: record.content_hash for record in records}
    rejected = [pair for pair, verdict in decisions.verdicts.items() if verdict == "not a match"]
    home = {record.id: {record.id} for record in records}
    score: dict[int, float] = {}
    for (first, second), value in sorted(links.items(), key=lambda link: (-link[1], link[0])):
        together = home[first] | home[second]
        if any(pair <= {hashes[item] for item in together} for pair in rejected):
            continue
        for item in together:
            home[item] = together
        for item in (first, second):
            score[item] = max(value, score.get(item, 0.0))
    members: dict[int, list[VideoRecord]] = {}
    for record in records:
        if len(home[record.id]) > 1:
            members.setdefault(min(home[record.id]), []).append(record)
    groups = [_group(group, score) for group in members.values()]
    return sorted(groups, key=lambda group: group.best.path)


def _group(records: list[VideoRecord], score: dict[int, float]) -> DuplicateGroup:
    ranked = sorted(records, key=lambda r: (-r.width * r.height, -r.duration, -r.size, r.path))
    return DuplicateGroup(
        tuple(
            DuplicateMember(
                record.path,
                score[record.id],
                record.width,
                record.height,
                record.duration,
                record.size,
                best=position == 0,
            )
            for position, record in enumerate(ranked)
        )
    )

"""Groups of copies over a whole index, without comparing all pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.decisions import Decisions
from vidkin.index.records import VideoRecord
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.query import query_from_stored
from vidkin.index.search.stages import find_candidates, score_candidates
from vidkin.index.storage.contract import VectorStore
from vidkin.similarity import Scorer

__all__ = ["DuplicateGroup", "DuplicateMember", "find_duplicates"]

# A video whose neighbors are removed meanwhile is compared again so many times.
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
            raise InvalidArgumentError(
                f"a group must have at least 2 members with one of them the best, got {len(self.members)} with "
                f"{sum(member.best for member in self.members)}"
            )

    @property
    def best(self) -> DuplicateMember:
        """The copy to keep."""
        return next(member for member in self.members if member.best)


def find_duplicates(
    store: VectorStore,
    common: CommonFrames,
    scorer: Scorer,
    decisions: Decisions,
    *,
    threshold: float = 0.7,
    neighbors: int = 20,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[DuplicateGroup]:
    """Groups whose members are connected by pairs that score at least ``threshold``.

    Each video is compared exactly with the ``neighbors`` videos nearest to it in the first stage. A pair that
    was rejected is never in one group; a confirmed one is. Mirrored copies need :meth:`Index.search`: a stored
    video cannot be flipped.

    Args:
        store: Of the index.
        common, scorer, decisions: Of the index.
        threshold: In (0, 1].
        neighbors: Number of videos that each one is compared with.
        on_progress: Called with (videos done, videos in all).

    Returns:
        Groups in the order of their best copies' paths.

    Raises:
        InvalidArgumentError: The threshold is out of its range.
    """
    if not 0.0 < threshold <= 1.0:
        raise InvalidArgumentError(f"threshold must be above 0 and at most 1, got {threshold}")
    records = [record for record in store.videos() if record.status == "ok" and record.frames > 0]
    known = {record.id for record in records}
    links = _known_links(records, decisions)
    for done, record in enumerate(records, start=1):
        links |= _new_links(record.id, store, common, scorer, known, links, neighbors)
        if on_progress is not None:
            on_progress(done, len(records))
    return _groups(records, {pair: score for pair, score in links.items() if score >= threshold}, decisions)


def _new_links(
    video_id: int,
    store: VectorStore,
    common: CommonFrames,
    scorer: Scorer,
    known: set[int],
    links: Mapping[tuple[int, int], float],
    neighbors: int,
) -> dict[tuple[int, int], float]:
    """Scores of one video with those nearest to it that have none yet."""
    for _ in range(_MOST_READINGS):
        try:
            query = query_from_stored(store.read(video_id), common)
            candidates = [
                other
                for other in find_candidates(store, query, neighbors + 1)
                if other != video_id and other in known and _pair(other, video_id) not in links
            ]
            scores = score_candidates(store, query, candidates, common, scorer)
        except NotIndexedError:
            continue  # It, or one of those nearest to it, was removed by another process meanwhile.
        return {_pair(other, video_id): pair.score for other, pair in scores}
    return {}


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _known_links(records: list[VideoRecord], decisions: Decisions) -> dict[tuple[int, int], float]:
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
    """Groups grown along the strongest links first; a link that would join a rejected pair is left out."""
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

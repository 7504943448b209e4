"""The two stages of a search: candidates from the window vectors, then exact scores and segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

import torch

from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.match import Match
from vidkin.index.query.moments import ReadStretch, find_moments, is_photograph, is_picture, without_length
from vidkin.index.query.query import Query, weigh_features
from vidkin.index.storage.content import content_hash, has_same_bytes
from vidkin.index.storage.contract import FeatureReader, VectorStore
from vidkin.index.storage.records import VideoRecord, frame_vectors
from vidkin.similarity import PairScore, Scorer, Segment

__all__ = [
    "Ranker",
    "find_candidates",
    "find_identical",
    "find_matches",
    "put_identical_first",
    "score_candidates",
]

_MOST_QUERY_VECTORS = 64
_MOST_PART_VECTORS = 8
_WINDOWS_PER_CANDIDATE = 4
# Attempts at a search whose candidates are removed meanwhile.
_MOST_SEARCHES = 5
# From this score on, the mirror image of the query is not tried.
_SURE = 0.98


class Ranker(Protocol):
    """Runs the second stage of a search, wherever the features are. :func:`score_candidates` is one."""

    def __call__(
        self,
        store: FeatureReader,
        query: Query,
        video_ids: Sequence[int],
        common: CommonFrames,
        scorer: Scorer,
    ) -> list[tuple[int, PairScore]]:
        """Return what :func:`score_candidates` returns for the same arguments.

        Raises:
            NotIndexedError: A candidate was removed meanwhile.
            ClusterError: The features are on other machines, which cannot be reached.
        """
        ...


def find_matches(
    store: VectorStore,
    query: Query,
    common: CommonFrames,
    scorer: Scorer,
    *,
    limit: int = 10,
    threshold: float = 0.0,
    candidates: int = 100,
    read: ReadStretch | None = None,
    rank: Ranker | None = None,
) -> list[Match]:
    """Find the matches of a query, best first; ties in the order of their paths.

    Args:
        store: Store of the index.
        query: The query to search for.
        common, scorer: Common frames and scorer of the index.
        limit: Maximum number of matches.
        threshold: Leave out scores below this; 0 keeps every video with a moment in common.
        candidates: Number of videos that the first stage passes to the second.
        read: Reads stretches of videos again, to find the moment that a single picture shows; None compares it with
            stored features.
        rank: Scores the candidates; None scores them in this process.

    Raises:
        InvalidArgumentError: A number is out of range.
        NotIndexedError: Candidates are removed again and again meanwhile.
    """
    if limit < 1 or candidates < 1:
        raise InvalidArgumentError(f"limit and candidates must be at least 1, got {limit} and {candidates}")
    if not 0.0 <= threshold <= 1.0:
        raise InvalidArgumentError(f"threshold must be in [0, 1], got {threshold}")
    finds_moments = read is not None and is_picture(query) and scorer.has_segments
    for attempt in range(1, _MOST_SEARCHES + 1):
        try:
            ids = find_candidates(store, query, candidates)
            if read is not None and finds_moments:
                scored = find_moments(store, query, ids, common, scorer, read)
            else:
                scored = (rank or score_candidates)(store, query, ids, common, scorer)
            matches = [
                _match(store.get(video_id), query, pair)
                for video_id, pair in scored
                if pair.score > 0 and pair.score >= threshold
            ]
            break
        except NotIndexedError:
            # A candidate was removed by another process: search again for what takes its place.
            if attempt == _MOST_SEARCHES:
                raise
            store.refresh()
    return sorted(matches, key=lambda match: (-match.score, match.path))[:limit]


def find_candidates(store: VectorStore, query: Query, count: int) -> list[int]:
    """First stage: find the ids of at most ``count`` videos, most promising first.

    The query has a vector for each informative frame, plain and mirrored; a video's promise is its best cosine with
    any of them plus a tenth of the mean over the query's vectors of its best cosines.
    """
    promise: dict[int, float] = {}
    for view in (query.plain, query.mirrored):
        if view is None:
            continue
        # Window-like vectors of informative frames, evenly spread; those of black frames are near zero.
        informative = (view.information >= 0.05).nonzero()[:, 0]
        few = _spread(informative, _MOST_PART_VECTORS)
        kept = [view.whole[_spread(informative, _MOST_QUERY_VECTORS)]]
        kept += [part[few] for part in view.values.unbind(1)[1:]]
        vectors = torch.cat([frame_vectors(part.float()) for part in kept])
        vectors = vectors[vectors.norm(dim=-1) > 0.5]
        if len(vectors) == 0:
            continue
        nearest = store.nearest(vectors, _WINDOWS_PER_CANDIDATE * count)
        best: dict[int, dict[int, float]] = {}
        for row, (ids, scores) in enumerate(
            zip(nearest.video_ids.tolist(), nearest.scores.tolist(), strict=True)
        ):
            for video_id, score in zip(ids, scores, strict=True):
                if video_id >= 0:
                    rows = best.setdefault(video_id, {})
                    rows[row] = max(score, rows.get(row, -1.0))
        for video_id, rows in best.items():
            value = max(rows.values()) + 0.1 * sum(rows.values()) / len(vectors)
            promise[video_id] = max(value, promise.get(video_id, -1.0))
    ranked = sorted(promise.items(), key=lambda item: (-item[1], item[0]))
    return [video_id for video_id, _ in ranked[:count]]


def score_candidates(
    store: FeatureReader, query: Query, video_ids: Sequence[int], common: CommonFrames, scorer: Scorer
) -> list[tuple[int, PairScore]]:
    """Second stage: exact scores of these videos, the better of the plain and the mirrored query each.

    Videos without a frame are left out.
    """
    readable = [video_id for video_id in video_ids if store.get(video_id).frames > 0]
    if not readable:
        return []
    targets = [
        weigh_features(features, common, store.get(video_id).duration)
        for video_id, features in zip(readable, store.read_many(readable), strict=True)
    ]
    best = scorer.score(query.plain, targets)
    if query.mirrored is not None:
        unsure = [place for place, plain in enumerate(best) if plain.score < _SURE]
        flipped = scorer.score(query.mirrored, [targets[place] for place in unsure], mirrored=True)
        for place, other in zip(unsure, flipped, strict=True):
            if other.score > best[place].score:
                best[place] = other
    return list(zip(readable, best, strict=True))


def put_identical_first(
    matches: Sequence[Match], identical: Iterable[VideoRecord], limit: int
) -> list[Match]:
    """Put videos with the same bytes as the query first, with score 1 whatever their frames show.

    A video of black frames or plain sky has no features to match, but a copy of the file is a copy.

    Args:
        matches: Best first.
        identical: Records of files with the same content as the query.
        limit: At most this many.
    """
    first = {}
    for record in identical:
        end = 0.0 if is_photograph(record) else record.duration
        whole = Segment(0.0, end, 0.0, end, 1.0)
        first[record.id] = Match(record.path, 1.0, (whole,), record.id)
    for match in matches:
        # If the container does not state a duration, use the frames.
        if match.video_id in first and match.segments and first[match.video_id].segments[0].query_end <= 0:
            first[match.video_id] = Match(match.path, 1.0, match.segments, match.video_id)
    others = [match for match in matches if match.video_id not in first]
    return [*sorted(first.values(), key=lambda match: match.path), *others][:limit]


def find_identical(records: Iterable[VideoRecord], path: str | os.PathLike[str]) -> list[VideoRecord]:
    """Records of files with the same bytes as a file; files are read only if their sizes are equal.

    A partial hash is not enough: then all bytes are compared, so that the file must exist. None if the query, which was
    described before, cannot be read any more.
    """
    try:
        size = os.stat(path).st_size
        candidates = [record for record in records if record.status == "ok" and record.size == size]
        if not candidates:
            return []
        content = content_hash(os.fspath(path), size)
    except OSError:
        return []
    return [
        record
        for record in candidates
        if record.content_hash == content.text
        and (content.is_whole or has_same_bytes(os.fspath(path), record.path))
    ]


def _match(record: VideoRecord, query: Query, pair: PairScore) -> Match:
    pictures = {"query": is_picture(query), "target": is_photograph(record)}
    segments = tuple(without_length(segment, **pictures) for segment in pair.segments)
    return Match(record.path, pair.score, segments, record.id)


def _spread(places: torch.Tensor, most: int) -> torch.Tensor:
    """At most ``most`` of these, evenly spread."""
    if len(places) <= most:
        return places
    return places[torch.linspace(0, len(places) - 1, most).round().long()]

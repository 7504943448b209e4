"""Both stages of a search (candidates by windows, then exact scores and segments), their results, and scores of one
pair."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.moments import ReadStretch, drop_length, find_moments, is_picture
from vidkin.index.query.stored import FeatureCache
from vidkin.index.storage.contract import FeatureReader, VectorStore
from vidkin.index.storage.files import content_hash, has_same_bytes
from vidkin.index.storage.records import VideoRecord
from vidkin.match import finds_segments
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name
from vidkin.similarity import SURE, UNRELATED, FrameFeatures, PairScore, Scorer, Segment

# Difference of two scores of one pair that is too small to say whose segments are right.
_ABOUT_AS_GOOD = 0.1
# Attempts at a search whose candidates keep being removed.
_MAX_ATTEMPTS = 5


class Ranker(Protocol):
    """Second stage of a search, wherever the features are; :func:`score_candidates` is the local one."""

    def __call__(
        self,
        store: FeatureReader,
        query: FrameFeatures,
        video_ids: Sequence[int],
        scorer: Scorer,
    ) -> list[tuple[int, PairScore]]:
        """Return the same as :func:`score_candidates` for the same arguments.

        Raises:
            NotIndexedError: A candidate was removed meanwhile.
            ClusterError: The features are on other machines, which cannot be reached.
        """


def find_matches(
    store: VectorStore,
    query: FrameFeatures,
    scorer: Scorer,
    *,
    limit: int = 10,
    threshold: float = 0.0,
    candidates: int = 100,
    read: ReadStretch | None = None,
    rank: Ranker | None = None,
    cache: FeatureCache | None = None,
) -> list[Match]:
    """Find the matches of a query, best first; ties in the order of their paths.

    Args:
        store: Store of the index.
        query: The query to search for.
        scorer: Scorer of the index.
        limit: Maximum number of matches.
        threshold: Drop scores below this; 0 keeps every video with a moment in common.
        candidates: Number of videos that the first stage passes to the second.
        read: Reads stretches of videos again, to find the moment of a query that is an image; None uses stored features
            only.
        rank: Scores the candidates; None scores them in this process.
        cache: Features that earlier searches have read.

    Raises:
        InvalidArgumentError: A number is out of range.
        NotIndexedError: Candidates keep being removed during the search.
    """
    if limit < 1 or candidates < 1:
        raise InvalidArgumentError(f"limit and candidates must be at least 1, got {limit} and {candidates}")
    if not 0.0 <= threshold <= 1.0:
        raise InvalidArgumentError(f"threshold must be in [0, 1], got {threshold}")

    def score(ids: Sequence[int]) -> list[tuple[int, PairScore]]:
        if read is not None and is_picture(query) and scorer.has_segments:
            return find_moments(store, query, ids, scorer, read)
        if rank is not None:
            return rank(store, query, ids, scorer)
        return score_candidates(store, query, ids, scorer, cache=cache)

    for attempt in range(1, _MAX_ATTEMPTS + 1):
        try:
            matches = [
                _match(store.get(video_id), query, pair)
                for video_id, pair in score(find_candidates(store, query, candidates))
                if pair.score > 0 and pair.score >= threshold
            ]
            break
        except NotIndexedError:
            # Another process removed a candidate: search again, so that the next best video replaces it.
            if attempt == _MAX_ATTEMPTS:
                raise
            store.refresh()
    return sorted(matches, key=lambda match: (-match.score, match.path))[:limit]


@check_arguments
def score_candidates(
    store: FeatureReader,
    query: FrameFeatures,
    video_ids: Sequence[int],
    scorer: Scorer,
    *,
    cache: FeatureCache | None = None,
) -> list[tuple[int, PairScore]]:
    """Second stage: exact scores of the videos that have frames; related ones shorter than the query are scored in both
    directions, as in :func:`score_pair`."""
    readable = [video_id for video_id in video_ids if store.get(video_id).frames > 0]
    if not readable:
        return []
    targets = (cache or FeatureCache(0)).read(store, readable)
    found = scorer.score(query, targets)
    if scorer.has_segments:
        for place, target in enumerate(targets):
            if found[place].score >= UNRELATED and len(target) < len(query):
                found[place] = _better(swap_sides(scorer.score(target, [query])[0]), found[place])
    return list(zip(readable, found, strict=True))


def put_identical_first(matches: Sequence[Match], identical: Iterable[VideoRecord], limit: int) -> list[Match]:
    """Put videos with the same bytes as the query first, with score 1 whatever their frames show.

    A video of black frames or plain sky has no features to match, yet an identical file is a copy.

    Args:
        matches: Best first.
        identical: Records of files with the same content as the query.
        limit: Maximum number of matches.
    """
    first = {}
    for record in identical:
        end = 0.0 if record.is_photograph else record.duration
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

    Equal partial hashes prove nothing; then the files are compared byte by byte, so they must exist. Empty if the
    query, which could be described before, can no longer be read.
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
        if record.content_hash == content.text and (content.is_whole or has_same_bytes(os.fspath(path), record.path))
    ]


def _match(record: VideoRecord, query: FrameFeatures, pair: PairScore) -> Match:
    images = {"query": is_picture(query), "target": record.is_photograph}
    segments = tuple(drop_length(segment, **images) for segment in pair.segments)
    return Match(record.path, pair.score, segments, record.id)


@check_constructor
@dataclass(frozen=True, slots=True)
class Match(Result):
    """One video of the index that matches the query.

    Attributes:
        path: Path of the video when it was indexed.
        score: Score in [0, 1]: 1.0 identical, below 0.2 unrelated; one threshold works for all queries.
        segments: Matching stretches, best first; empty if the videos are only similar as a whole.
        video_id: Id of its record in the index.
        missing: Whether the file no longer exists.
        picture: Score of the frames alone, in [0, 1]; None if the query has none.
        sound: Score of the sound alone, in [0, 1]; None if the query or the video has no sound, or the index stores
            none.
        sound_segments: Stretches where the sound matches, best first; boxes cover the full frame.
    """

    derived: ClassVar = ("mirrored", "turned")

    path: str
    score: float
    segments: tuple[Segment, ...] = ()
    video_id: int = -1
    missing: bool = False
    picture: float | None = None
    sound: float | None = None
    sound_segments: tuple[Segment, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 <= self.score <= 1.0:
            raise InvalidArgumentError(f"score must be in [0, 1], got {self.score}")

    @property
    def witnesses(self) -> str:
        """Both scores in words: "picture .31, sound .97: same sound over another picture"; empty without a sound
        score."""
        if self.sound is None:
            return ""
        seen, heard = self.picture, self.sound
        numbers = f"sound {heard:.2f}" if seen is None else f"picture {seen:.2f}, sound {heard:.2f}"
        if seen is None:
            return numbers
        if heard >= SURE and seen < UNRELATED:
            return f"{numbers}: same sound over another picture"
        if heard >= SURE and seen >= SURE:
            return f"{numbers}: both"
        return f"{numbers}: picture only" if seen >= UNRELATED > heard else numbers

    @property
    def mirrored(self) -> bool:
        """Whether the best segment matches the query flipped left to right."""
        return bool(self.segments) and self.segments[0].mirrored

    @property
    def turned(self) -> int:
        """Degrees by which to rotate the query clockwise to match its best segment: 0, 90, 180 or 270."""
        return self.segments[0].turned if self.segments else 0

    def cards(self, path: str = "") -> list[Card]:
        """The middle of the best segment, for a notebook."""
        best = self.segments[0] if self.segments else None
        words = [f"score {self.score:.2f}"]
        if best is not None:
            words.append(f"{best.target_start:.1f} - {best.target_end:.1f} s{_edits(best)}")
        time = None if best is None else (best.target_start + best.target_end) / 2
        return [Card(path or self.path, time, shown_name(self.path), ", ".join(words))]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row: the fields of :meth:`to_dict`, with the number of segments and the best one in columns."""
        row = self.to_dict()
        segments = row.pop("segments")
        row.pop("sound_segments")
        return [{**row, "segments": len(segments), **(segments[0] if segments else {}), "score": self.score}]

    def to_pandas(self) -> Any:
        """The segments as a pandas DataFrame; raises :class:`vidkin.errors.MissingPartError` if pandas is not
        installed."""
        return data_frame([segment.to_dict() for segment in self.segments])

    def _repr_html_(self) -> str:
        return cards_html(self.cards())


@check_constructor
@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Result):
    """Two videos side by side.

    Attributes:
        score: Score in [0, 1], as in a search.
        segments: Matching stretches, best first.
        map: [Tq, Tt] float32 in [0, 1], calibrated similarity of every frame with every frame.
        query_times: [Tq] float64 seconds.
        target_times: [Tt] float64 seconds.
        measure: Name of the scorer, see :func:`vidkin.similarity.open_scorer`; ``kinds`` gives no segments.
        sound: Score of the sound alone, in [0, 1]; None if either video has no sound.
        sound_segments: Stretches where the sound matches, best first.
        query, target: Their files; empty for videos in memory.
    """

    score: float
    segments: tuple[Segment, ...]
    map: NDArray[np.float32]
    query_times: NDArray[np.floating]
    target_times: NDArray[np.floating]
    measure: str = "copies"
    sound: float | None = None
    sound_segments: tuple[Segment, ...] = ()
    query: str = ""
    target: str = ""

    def __post_init__(self) -> None:
        expected = (len(self.query_times), len(self.target_times))
        if tuple(self.map.shape) != expected:
            raise InvalidArgumentError(
                f"map must be {list(expected)}, one row and column for each time, got {list(self.map.shape)}"
            )

    @property
    def has_segments(self) -> bool:
        """Whether the score comes from segments; otherwise only the order of scores is meaningful, and only for this
        model."""
        return finds_segments(self.measure)

    def cards(self, path: str = "") -> list[Card]:
        """Both videos in the middle of each segment, for a notebook."""
        cards = []
        for segment in self.segments:
            words = f"score {segment.score:.2f}{_edits(segment)}"
            for name, start, end in (
                (self.query, segment.query_start, segment.query_end),
                (self.target, segment.target_start, segment.target_end),
            ):
                title = f"{shown_name(name)} {start:.1f} - {end:.1f} s".strip()
                cards.append(Card(name, (start + end) / 2, title, words))
        return cards

    def table_rows(self) -> list[dict[str, Any]]:
        """One row per segment."""
        return [segment.to_dict() for segment in self.segments]

    def to_pandas(self) -> Any:
        """The segments as a pandas DataFrame; raises :class:`vidkin.errors.MissingPartError` if pandas is not
        installed."""
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards(), f"score {self.score:.2f}")

    def __repr__(self) -> str:
        return f"Comparison(score={self.score:.3f}, segments={len(self.segments)}, map={list(self.map.shape)})"


def _edits(segment: Segment) -> str:
    """Edits of the copy as text, each after a comma."""
    edits = (("mirrored", segment.mirrored), ("backwards", segment.backwards))
    return "".join(f", {word}" for word, is_so in edits if is_so)


def compare_pair(first: FrameFeatures, second: FrameFeatures, scorer: Scorer) -> Comparison:
    """Score, segments and frame map of two videos; see :func:`score_pair`. Matches of an image have no duration."""
    best = score_pair(first, second, scorer)
    images = {"query": is_picture(first), "target": is_picture(second)}
    segments = tuple(drop_length(segment, **images) for segment in best.segments)
    return Comparison(best.score, segments, best.map, first.timestamps, second.timestamps, scorer.name)


def score_pair(first: FrameFeatures, second: FrameFeatures, scorer: Scorer) -> PairScore:
    """Score in both directions and take the best, so that the score is symmetric.

    A scorer follows the query's frames, so it may find a line through the map in one direction and miss it by a frame
    in the other.

    Args:
        first: The query of the returned segments.
        second: The target of the returned segments.
        scorer: Scorer of the index.
    """
    forth = scorer.score(first, [second])[0]
    back = swap_sides(scorer.score(second, [first])[0])
    if len(first) == len(second):
        return max(forth, back, key=lambda result: result.score)
    return _better(forth, back) if len(first) < len(second) else _better(back, forth)


def _better(along_shorter: PairScore, along_longer: PairScore) -> PairScore:
    """The higher score, with the segments along the shorter video if they score about as well.

    Along the frames of the longer video, a slow shot around an excerpt looks like the excerpt slowed down.
    """
    if along_shorter.score >= along_longer.score - _ABOUT_AS_GOOD:
        return replace(along_shorter, score=max(along_shorter.score, along_longer.score))
    return along_longer


def swap_sides(result: PairScore) -> PairScore:
    """The same result with query and target exchanged."""
    segments = tuple(segment.swapped() for segment in result.segments)
    return PairScore(result.score, segments, np.ascontiguousarray(result.map.T))

"""The two stages of a search (candidates by windows, then exact scores and segments), their results, and the comparison
of a single pair."""

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
from vidkin.index.query.moments import ReadStretch, drop_image_durations, find_moments, is_single_frame
from vidkin.index.query.stored import FeatureCache
from vidkin.index.storage.contract import FeatureReader, VectorStore
from vidkin.index.storage.files import content_hash, has_same_bytes
from vidkin.index.storage.records import VideoRecord
from vidkin.match import finds_segments
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name
from vidkin.similarity import SURE, UNRELATED, FrameFeatures, PairScore, Scorer, Segment

# If the scores in the two directions differ by less, the difference does not indicate which segments are right.
_MAX_TIE = 0.1
# Maximum number of attempts at a search whose candidates are removed by other processes.
_MAX_ATTEMPTS = 5


class Ranker(Protocol):
    """Second stage of a search, possibly on other machines; :func:`score_candidates` is the local implementation."""

    def __call__(
        self,
        store: FeatureReader,
        query: FrameFeatures,
        video_ids: Sequence[int],
        scorer: Scorer,
    ) -> list[tuple[int, PairScore]]:
        """Return the same results as :func:`score_candidates`.

        Raises:
            NotIndexedError: A candidate was removed in the meantime.
            ClusterError: The machines that store the features cannot be reached.
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
    """Find the matches of a query, best first; ties are sorted by path.

    Args:
        store: Store of the index.
        query: Features of the query.
        scorer: Scorer of the index.
        limit: Maximum number of matches.
        threshold: Minimum score; 0 keeps every video with a positive score.
        candidates: Number of videos that the first stage passes to the second.
        read: Extracts features from clips of videos, to find the exact moment if the query is an image; None to use
            stored features only.
        rank: Scores the candidates; None to score them in this process.
        cache: Cache of features read by earlier searches.

    Raises:
        InvalidArgumentError: A number is out of range.
        NotIndexedError: Other processes kept removing candidates during the search.
    """
    if limit < 1 or candidates < 1:
        raise InvalidArgumentError(f"limit and candidates must be at least 1, got {limit} and {candidates}")
    if not 0.0 <= threshold <= 1.0:
        raise InvalidArgumentError(f"threshold must be in [0, 1], got {threshold}")

    def score(ids: Sequence[int]) -> list[tuple[int, PairScore]]:
        if read is not None and is_single_frame(query) and scorer.has_segments:
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
            # Another process removed a candidate; search again so that the next best video replaces it.
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
    """Second stage: return the id and exact score of each video that has frames.

    Related videos shorter than the query are scored in both directions, as in :func:`score_pair`.

    Args:
        store: Reads the features of videos.
        query: Features of the query.
        video_ids: Ids of the candidates.
        scorer: Scorer of the index.
        cache: Cache of features read by earlier searches.
    """
    readable = [video_id for video_id in video_ids if store.get(video_id).frames > 0]
    if not readable:
        return []
    targets = (cache or FeatureCache(0)).read(store, readable)
    found = scorer.score(query, targets)
    if scorer.has_segments:
        for position, target in enumerate(targets):
            if found[position].score >= UNRELATED and len(target) < len(query):
                found[position] = _combine_directions(swap_sides(scorer.score(target, [query])[0]), found[position])
    return list(zip(readable, found, strict=True))


def put_identical_first(matches: Sequence[Match], identical: Iterable[VideoRecord], limit: int) -> list[Match]:
    """Put files that are byte-identical to the query first, with score 1 regardless of their frames.

    A video of black frames or a plain sky has no features to match, but an identical file is a copy nonetheless.

    Args:
        matches: Other matches, best first.
        identical: Records of files byte-identical to the query.
        limit: Maximum number of matches.
    """
    first = {}
    for record in identical:
        end = 0.0 if record.is_photograph else record.duration
        whole = Segment(0.0, end, 0.0, end, 1.0)
        first[record.id] = Match(record.path, 1.0, (whole,), record.id)
    for match in matches:
        # If the container does not state a duration, use the segments found from the frames.
        if match.video_id in first and match.segments and first[match.video_id].segments[0].query_end <= 0:
            first[match.video_id] = Match(match.path, 1.0, match.segments, match.video_id)
    others = [match for match in matches if match.video_id not in first]
    return [*sorted(first.values(), key=lambda match: match.path), *others][:limit]


def find_identical(records: Iterable[VideoRecord], path: str | os.PathLike[str]) -> list[VideoRecord]:
    """Return the records of files that are byte-identical to a file; only files of the same size are read.

    Equal partial hashes are not sufficient, so in that case the files, which must exist, are compared byte by byte.
    Returns an empty list if the query can no longer be read.
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
    images = {"query": is_single_frame(query), "target": record.is_photograph}
    segments = tuple(drop_image_durations(segment, **images) for segment in pair.segments)
    return Match(record.path, pair.score, segments, record.id)


@check_constructor
@dataclass(frozen=True, slots=True)
class Match(Result):
    """A video in the index that matches the query.

    Attributes:
        path: Path of the video when it was indexed.
        score: Score in [0, 1]: 1.0 identical, below 0.2 unrelated. The same threshold works for all queries.
        segments: Matching segments, best first; empty if the videos are only similar as a whole.
        video_id: Id of the video's record in the index.
        missing: Whether the file no longer exists.
        picture: Score of the frames alone, in [0, 1]; None if the query has no frames.
        sound: Score of the sound alone, in [0, 1]; None if the query or the video has no sound, or the index has no
            audio fingerprints.
        sound_segments: Segments that match by sound, best first; their boxes cover the whole frame.
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
        """Both scores in words, for example "picture 0.15, sound 0.97: same sound over another picture"; empty without
        a sound score."""
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
        """Whether the best segment matches the mirrored query (flipped left to right)."""
        return bool(self.segments) and self.segments[0].mirrored

    @property
    def turned(self) -> int:
        """Clockwise rotation of the query in degrees that matches the best segment: 0, 90, 180 or 270."""
        return self.segments[0].turned if self.segments else 0

    def cards(self, path: str = "") -> list[Card]:
        """A frame from the middle of the best segment, for display in a notebook."""
        best = self.segments[0] if self.segments else None
        words = [f"score {self.score:.2f}"]
        if best is not None:
            words.append(f"{best.target_start:.1f} - {best.target_end:.1f} s{_edits(best)}")
        time = None if best is None else (best.target_start + best.target_end) / 2
        return [Card(path or self.path, time, shown_name(self.path), ", ".join(words))]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row with the fields of :meth:`to_dict`, the number of segments, and the best segment as columns."""
        row = self.to_dict()
        segments = row.pop("segments")
        row.pop("sound_segments")
        return [{**row, "segments": len(segments), **(segments[0] if segments else {}), "score": self.score}]

    def to_pandas(self) -> Any:
        """Return the segments as a pandas DataFrame.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame([segment.to_dict() for segment in self.segments])

    def _repr_html_(self) -> str:
        return cards_html(self.cards())


@check_constructor
@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Result):
    """Comparison of two videos.

    Attributes:
        score: Score in [0, 1], on the same scale as in a search.
        segments: Matching segments, best first.
        map: [Tq, Tt] float32 in [0, 1], calibrated similarity of every pair of frames.
        query_times: [Tq] float64, frame times in seconds.
        target_times: [Tt] float64, frame times in seconds.
        measure: Name of the scorer, see :func:`vidkin.match.open_scorer`; ``kinds`` does not report segments.
        sound: Score of the sound alone, in [0, 1]; None if either video has no sound.
        sound_segments: Segments that match by sound, best first.
        query, target: Paths of the videos; empty for videos in memory.
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
                f"map must be {list(expected)}, with a row for each query time and a column for each target time, got "
                f"{list(self.map.shape)}"
            )

    @property
    def has_segments(self) -> bool:
        """Whether the scorer reports segments; otherwise scores are specific to the model, and only their order is
        meaningful."""
        return finds_segments(self.measure)

    def cards(self, path: str = "") -> list[Card]:
        """Frames of both videos from the middle of each segment, for display in a notebook."""
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
        """Return the segments as a pandas DataFrame.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards(), f"score {self.score:.2f}")

    def __repr__(self) -> str:
        return f"Comparison(score={self.score:.3f}, segments={len(self.segments)}, map={list(self.map.shape)})"


def _edits(segment: Segment) -> str:
    """Edits of the copy as text, each preceded by a comma."""
    edits = (("mirrored", segment.mirrored), ("backwards", segment.backwards))
    return "".join(f", {word}" for word, is_so in edits if is_so)


def compare_pair(first: FrameFeatures, second: FrameFeatures, scorer: Scorer) -> Comparison:
    """Compare two videos, see :func:`score_pair`; in segments, images have zero duration."""
    best = score_pair(first, second, scorer)
    images = {"query": is_single_frame(first), "target": is_single_frame(second)}
    segments = tuple(drop_image_durations(segment, **images) for segment in best.segments)
    return Comparison(best.score, segments, best.map, first.timestamps, second.timestamps, scorer.name)


def score_pair(first: FrameFeatures, second: FrameFeatures, scorer: Scorer) -> PairScore:
    """Score two videos in both directions and return the better result, so that the score is symmetric.

    A scorer follows the query's frames, so it may find a line through the map in one direction but miss it by a frame
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
    return _combine_directions(forth, back) if len(first) < len(second) else _combine_directions(back, forth)


def _combine_directions(along_shorter: PairScore, along_longer: PairScore) -> PairScore:
    """Return the higher score, with the segments along the shorter video unless the other direction scores much higher.

    Along the frames of the longer video, a slow shot around an excerpt looks like a slowed-down excerpt.
    """
    if along_shorter.score >= along_longer.score - _MAX_TIE:
        return replace(along_shorter, score=max(along_shorter.score, along_longer.score))
    return along_longer


def swap_sides(result: PairScore) -> PairScore:
    """Return the same result with query and target exchanged."""
    segments = tuple(segment.swapped() for segment in result.segments)
    return PairScore(result.score, segments, np.ascontiguousarray(result.map.T))

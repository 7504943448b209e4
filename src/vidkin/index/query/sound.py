"""Search by sound and comparison of two files; audio is separate evidence that never changes the picture score.

Sound scores have the same scale as picture scores: 1 for identical sound, 0.7 or more for the same recording, below 0.2
for unrelated recordings. Two videos with the same song match by sound, but are not copies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from vidkin._base.arguments import check_arguments
from vidkin._base.blas import one_blas_thread
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.features import open_extractor
from vidkin.features.views import HANG_TIMEOUT
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.query import SearchParts, describe_query
from vidkin.index.query.stages import (
    Comparison,
    Match,
    Ranker,
    compare_pair,
    find_identical,
    find_matches,
    put_identical_first,
    score_candidates,
)
from vidkin.index.query.watching import HangError, run_watched
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.records import VideoRecord
from vidkin.match import scorer_of
from vidkin.media import open_source, source_name
from vidkin.similarity import SURE, FrameFeatures
from vidkin.similarity.sound import SoundFeatures, SoundScore, best_of_tracks, compare_sounds

if TYPE_CHECKING:
    from vidkin.media import Source

By = Literal["picture", "sound", "either", "both"]
"""Basis of a score: ``picture`` (the frames), ``sound``, the higher of the two (``either``) or the lower (``both``)."""

ADD_SOUND = "add sound with `vidkin index PATH --sound`"
"""Advice given if an index has no audio fingerprints."""

SHORTEST_SOUND = 3.0
"""Minimum seconds of sound for a match to reach a score of 0.7."""

# Minimum number of picture matches to consider when the sound score counts as well.
_CANDIDATES = 30


def check_by(by: str) -> By:
    """Check that ``by`` is one of :data:`By`.

    Raises:
        InvalidArgumentError: ``by`` has another value.
    """
    if by not in get_args(By):
        raise InvalidArgumentError(f"by must be picture, sound, either or both, got {by!r}")
    rule: By = by  # type: ignore[assignment]
    return rule


def hear(
    path: str | os.PathLike[str], *, start: float | None = None, end: float | None = None
) -> tuple[SoundFeatures, ...]:
    """Return the audio landmarks of each audio track; empty if the file has no readable sound or the decoder hangs.

    Args:
        path: A video or an audio file.
        start, end: Start and end of the clip to use, in seconds.
    """
    from vidkin.features.sound import describe_sound

    try:
        return run_watched(
            lambda beat: describe_sound(path, start=start or 0.0, end=end, on_read=lambda: beat("decoding")),
            hang_timeout=HANG_TIMEOUT,
        )
    except (MediaError, HangError):
        return ()


def has_only_sound(path: str | os.PathLike[str]) -> bool:
    """Whether a file has sound but no video (cover art does not count)."""
    from vidkin.media.sound import open_sound

    try:
        with open_sound(path) as (container, _):
            import av

            return all(s.disposition & av.stream.Disposition.attached_pic for s in container.streams.video)
    except MediaError:
        return False


def describe_tracks(tracks: Sequence[SoundFeatures] | None) -> str:
    """Describe the sound of a file: ``2 tracks: eng (default), fra``, ``no sound``, ``silence``, or that it is too
    short; empty for a single ordinary track, and for None (unknown)."""
    if tracks is None:
        return ""
    if not tracks:
        return "no sound"
    words = []
    if len(tracks) > 1:
        names = [
            (track.language or f"{number}") + (" (default)" if track.is_default else "")
            for number, track in enumerate(tracks, start=1)
        ]
        words.append(f"{len(tracks)} tracks: {', '.join(names)}")
    length = max(track.length for track in tracks)
    if length < SHORTEST_SOUND:
        words.append(f"only {length:.1f} s of sound; {SHORTEST_SOUND:g} s are needed to match reliably")
    elif not any(len(track) for track in tracks):
        words.append("silence")
    return "; ".join(words)


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The clip of the query to search for, and limits on the results.

    Attributes:
        start, end: Start and end of the query clip in seconds.
        most: Maximum number of matches.
        threshold: Minimum score of a match.
        candidates: Number of videos to compare exactly.
    """

    start: float | None
    end: float | None
    most: int
    threshold: float
    candidates: int


def search_file(
    path: str | os.PathLike[str],
    describe: Callable[[], FrameFeatures],
    parts: SearchParts,
    manifest: Manifest,
    limits: SearchLimits,
    by: str | None,
    rank: Ranker | None,
) -> list[Match]:
    """Search by picture and sound; audio landmarks are extracted in parallel with frame features.

    Args:
        path: The query.
        describe: Extracts the query's frame features.
        parts: Shared parts of the index.
        manifest: Current manifest of the index.
        limits: The clip of the query, and limits on the results.
        by: Basis of the score, see :data:`By`. ``picture`` does not read sound; None scores by picture and adds sound
            scores.
        rank: Scores the candidates, as for :func:`vidkin.index.query.stages.find_matches`.

    Raises:
        MediaError: The query cannot be read, or has only sound and the index has no audio fingerprints.
        InvalidArgumentError: ``by`` is unknown, or needs audio fingerprints that the index does not have.
    """
    rule, sound = check_by(by or "picture"), parts.sound(manifest)
    if sound is None and rule != "picture":
        raise InvalidArgumentError(f"by={by!r} needs audio fingerprints, which the index does not have; {ADD_SOUND}")
    find = partial(
        find_matches,
        parts.store,
        scorer=parts.scorer,
        limit=limits.most,
        threshold=limits.threshold,
        candidates=limits.candidates,
        read=parts.readings().stretch,
        rank=rank,
        cache=parts.cache,
    )
    is_whole = limits.start is None and limits.end is None
    if by == "picture" or sound is None or not sound.has_tracks:
        found, large = find(describe()), parts.records_of_size(path)
        return put_identical_first(found, find_identical(large, path) if is_whole else [], limits.most)
    with ThreadPoolExecutor(1, thread_name_prefix="vidkin sound") as pool:
        hearing = pool.submit(hear, path, start=limits.start, end=limits.end)
        query: FrameFeatures | None = None
        try:
            query = describe()
        except MediaError:
            if not has_only_sound(path):
                raise
            rule = "sound"
        tracks = hearing.result()
    records = parts.records()
    matches: list[Match] = []
    if query is not None:
        least = limits.threshold if rule == "picture" else 0.0
        most = limits.most if rule == "picture" else max(limits.most, _CANDIDATES)
        found = find(query, limit=most, threshold=least)
        matches = put_identical_first(found, find_identical(records, path) if is_whole else [], most)

    def pictures(ids: Sequence[int]) -> dict[int, Match]:
        if query is None or not ids:
            return {}
        scored = score_candidates(parts.store, query, ids, parts.scorer)
        paths = {record.id: record.path for record in records}
        return {number: Match(paths[number], pair.score, pair.segments, number) for number, pair in scored}

    has_landmarks = sound.is_heard if tracks else (lambda content: False)
    joined = join_scores(matches, sound.find(tracks), records, has_landmarks, rule, pictures)
    if query is None:
        joined = [replace(match, picture=None) for match in joined]
    return [match for match in joined if match.score > 0 and match.score >= limits.threshold][: limits.most]


def add_sound(
    comparison: Comparison,
    query: str | os.PathLike[str],
    target: Sequence[SoundFeatures] | str | os.PathLike[str] | None,
    start: float | None = None,
    end: float | None = None,
) -> Comparison:
    """Add the sound score to a comparison.

    Args:
        comparison: The comparison of the frames.
        query: The query file.
        target: The target file, or its audio landmarks.
        start, end: Start and end of the query clip in seconds.
    """
    known = hear(target) if isinstance(target, str | os.PathLike) else target
    score = best_of_tracks(hear(query, start=start, end=end), known) if known else None
    if score is None:
        return comparison
    return replace(comparison, sound=score.score, sound_segments=score.segments)


def join_scores(
    matches: Iterable[Match],
    heard: Mapping[str, SoundScore],
    records: Iterable[VideoRecord],
    has_landmarks: Callable[[str], bool],
    by: By,
    pictures: Callable[[Sequence[int]], Mapping[int, Match]],
) -> list[Match]:
    """Add sound scores to matches, then score and sort them as given by ``by``; picture scores are kept.

    Args:
        matches: Matches by picture.
        heard: Sound scores, keyed by content hash.
        records: All records of the index.
        has_landmarks: Returns whether a content hash has stored audio landmarks.
        by: Basis of the score.
        pictures: Compares the frames of videos (by id) that were found only by sound.
    """
    by_id = {record.id: record for record in records if record.status == "ok"}
    found = {match.video_id: match for match in matches if match.video_id in by_id}
    if by != "picture":
        others = [
            record.id
            for record in by_id.values()
            if record.id not in found and record.content_hash in heard and heard[record.content_hash].score > 0
        ]
        found |= pictures(others)
        for video_id in others:
            found.setdefault(video_id, Match(by_id[video_id].path, 0.0, (), video_id))
    joined = []
    for video_id, match in found.items():
        content = by_id[video_id].content_hash
        sound = heard.get(content)
        if sound is None and has_landmarks(content):
            sound = SoundScore(0.0)
        joined.append(
            replace(
                match,
                picture=match.score,
                sound=None if sound is None else sound.score,
                sound_segments=() if sound is None else sound.segments,
                score=score_by(by, match.score, None if sound is None else sound.score),
            )
        )
    return sorted(joined, key=lambda match: (-match.score, match.path))


def score_by(by: By, picture: float | None, sound: float | None) -> float:
    """Combine picture and sound score as given by ``by``; a missing score counts as 0."""
    seen, heard = picture or 0.0, sound or 0.0
    if by == "either":
        return max(seen, heard)
    if by == "both":
        return min(seen, heard)
    return seen if by == "picture" else heard


@dataclass(frozen=True, slots=True)
class SoundOffset(Result):
    """Time offset between two recordings.

    Attributes:
        query, target: The files.
        offset: Time offset in seconds: time t in the query corresponds to ``speed * t + offset`` in the target. None if
            it is not certain that they share a recording.
        speed: Seconds of target per second of query; 1 for two cameras recording the same event.
        score: Sound score in [0, 1].
        start, end: Longest segment of the query that matches by sound, in seconds.
        query_length, target_length: Durations of the audio in seconds.
        query_track, target_track: Numbers of the matching audio tracks, starting from 0.
    """

    query: str
    target: str
    offset: float | None
    speed: float
    score: float
    start: float
    end: float
    query_length: float
    target_length: float
    query_track: int = 0
    target_track: int = 0


def find_offset(query: str | os.PathLike[str], target: str | os.PathLike[str]) -> SoundOffset:
    """Find the time offset between two recordings of the same event by their sound.

    Args:
        query, target: Videos or audio files. Times are relative to the first frame of a video.

    Raises:
        MediaError: A file cannot be read or has no sound.
    """
    from vidkin.features.sound import describe_sound

    first, second = describe_sound(query), describe_sound(target)
    scored = [
        (compare_sounds(one, other), number, other_number)
        for number, one in enumerate(first)
        for other_number, other in enumerate(second)
    ]
    best, query_track, target_track = max(scored, key=lambda item: item[0].score)
    lengths = first[query_track].length, second[target_track].length
    names = os.fspath(query), os.fspath(target)
    if best.score < SURE or not best.segments:
        return SoundOffset(*names, None, 1.0, best.score, 0.0, 0.0, *lengths, query_track, target_track)
    segment = max(best.segments, key=lambda item: item.query_end - item.query_start)
    offset = segment.target_start - segment.speed * segment.query_start
    stretch = segment.query_start, segment.query_end
    return SoundOffset(*names, offset, segment.speed, best.score, *stretch, *lengths, query_track, target_track)


@check_arguments
@one_blas_thread()
def compare(
    query: Source,
    target: Source,
    *,
    frame_rate: float | None = None,
    extractor: str | None = None,
    weights: str | os.PathLike[str] | None = None,
    whitening: str | os.PathLike[str] | None = None,
    rate: float = 1.0,
) -> Comparison:
    """Compare two videos; return their score, matching segments and frame similarity map. The score is symmetric.

    Args:
        query, target: Videos or images, see :data:`vidkin.media.Source`.
        frame_rate: Frames per second of arrays and of iterators of frames.
        extractor, weights, whitening: As in :func:`vidkin.features.open_extractor`.
        rate: Sampling rate in frames per second; videos of a few seconds are sampled more densely.

    Raises:
        MediaError: A video cannot be read.
        InvalidArgumentError: A source has an unsupported type; the message lists the accepted types.
    """
    maker = open_extractor(extractor, weights=weights, whitening=whitening)
    parts = (maker, Calibration.of_extractor(maker))
    with open_source(query, frame_rate, name="query") as one, open_source(target, frame_rate, name="target") as other:
        first, second = (describe_query(path, *parts, rate=rate) for path in (one, other))
        compared = add_sound(compare_pair(first, second, scorer_of(maker)), one, other)
    return replace(compared, query=source_name(query), target=source_name(target))

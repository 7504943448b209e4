"""Recurring segments by sound: sound scores of segments found by picture, and segments that share only their sound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.duplicates.comparisons import content_of, present_files
from vidkin.index.duplicates.heard import tracks_of
from vidkin.index.query.query import SearchParts
from vidkin.index.query.sound import ADD_SOUND, By, check_by
from vidkin.index.query.stored import prepare_features
from vidkin.index.recurring.decided import apply_decisions, paths_by_content
from vidkin.index.recurring.ends import FittedStretch
from vidkin.index.recurring.find import Findings, RecurringOptions, find_recurring
from vidkin.index.recurring.groups import (
    Occurrence,
    RecurringGroup,
    SharedByFiles,
    build_groups,
    covers,
    natural_order,
    sort_groups,
)
from vidkin.index.storage.decisions import Decisions
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.index.storage.tasks import MapHere, Mapper
from vidkin.similarity.contracts import FrameFeatures, Segment
from vidkin.similarity.scale import SURE
from vidkin.similarity.sound import SoundFeatures, compare_sounds, hypotheses

# Minimum score of equal sound, and minimum duration in seconds and number of landmarks of a segment to compare its
# sound.
_SAME_SOUND, _MIN_SECONDS, _MIN_LANDMARKS = 0.3, 5.0, 40
# Maximum change of speed of a segment found by sound; it includes film-to-television conversions.
_MAX_SPEED_CHANGE = 0.05
# A group found by sound is dropped if at least this fraction of its segments was also found by picture.
_MIN_COVERED = 0.5
# Number of occurrences of a group with which each further occurrence is compared by picture.
_MAX_COMPARED = 8


def find_recurring_by(
    parts: SearchParts,
    place: Place,
    records: Sequence[VideoRecord],
    findings: Findings,
    options: RecurringOptions,
    sound: SoundSearch | None,
    by: str,
    on_progress: Callable[[int, int], None] | None = None,
    mapper: Mapper | None = None,
) -> list[RecurringGroup]:
    """Find recurring segments by picture, sound or both; apply user decisions, and add picture and sound scores.

    Args:
        parts: Shared parts of the index.
        place: Location of the index.
        records: Videos to search.
        findings: Cache of segments shared by picture; known pairs are not compared again.
        options: Search options.
        sound: Audio fingerprints of the index; None if it has none.
        by: ``picture``: the picture recurs; ``sound``: the sound recurs; ``either``: one of them recurs; ``both``: the
            picture recurs with the same sound.
        on_progress: Callback that receives (steps done, total number of steps).
        mapper: Compares frames, possibly on other machines; None to compare them in this process.

    Raises:
        InvalidArgumentError: ``by`` is unknown, needs audio fingerprints that the index does not have, or is not
            ``picture`` although ``options.inside`` is set.
    """
    rule: By = check_by(by)
    if rule != "picture" and sound is None:
        raise InvalidArgumentError(f"by={by!r} needs audio fingerprints, which the index does not have; {ADD_SOUND}")
    if rule != "picture" and options.inside:
        raise InvalidArgumentError(f"with inside, by must be 'picture', got {by!r}")
    present = [file.record for file in present_files(records)]
    decisions = [each for each in Decisions.open(place).recurring if each.is_inside == options.inside]
    paths = paths_by_content(present) if decisions else {}
    groups: list[RecurringGroup] = []
    if rule != "sound":
        mapper = mapper or MapHere(place, parts.store)
        groups = find_recurring(present, parts.store, findings, options, mapper, on_progress)
        groups = apply_decisions(
            groups, [each for each in decisions if each.found_by == "picture"], paths, len(present)
        )
        groups = [
            _replace_occurrences(group, lambda one: replace(one, picture=one.score))
            for group in add_sound_scores(groups, present, sound)
        ]
    if rule == "both":
        groups = [same for group in groups if (same := _keep_same_sound(group)) is not None]
    elif rule != "picture" and sound is not None:
        heard = find_by_sound(present, sound, options, on_progress)
        new = [
            group
            for group in heard
            if not any(covers(seen.occurrences, group.occurrences, _MIN_COVERED) for seen in groups)
        ]
        new = apply_decisions(new, [each for each in decisions if each.found_by == "sound"], paths, len(present))
        groups = sort_groups([*groups, *_score_pictures(new, present, parts)])
    return [group for group in groups if group.kind == "copy" or options.accepts(group)]


def _replace_occurrences(group: RecurringGroup, change: Callable[[Occurrence], Occurrence]) -> RecurringGroup:
    return replace(group, occurrences=tuple(map(change, group.occurrences)))


def _keep_same_sound(group: RecurringGroup) -> RecurringGroup | None:
    """Keep the occurrences with the same sound, scored by the lower of both scores; None if fewer than two remain."""
    same = [
        replace(one, score=min(one.score, one.sound))
        for one in group.occurrences
        if one.sound is not None and one.sound >= _SAME_SOUND
    ]
    return replace(group, occurrences=tuple(same)) if len(same) > 1 else None


def find_by_sound(
    records: Sequence[VideoRecord],
    sound: SoundSearch,
    options: RecurringOptions,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[RecurringGroup]:
    """Find segments whose sound several files share, such as the song of an opening whose picture changes.

    Byte-identical files count once, under their first name.

    Args:
        records: Videos to search.
        sound: Audio fingerprints of the index.
        options: Search options.
        on_progress: Callback that receives (files done, total number of files).
    """
    ordered = sorted(records, key=lambda record: natural_order(record.path))
    videos = {content_of(record): record for record in reversed(ordered)}
    met: dict[str, set[str]] = {content: {content} for content in videos}
    tried = tuple(each for each in hypotheses() if abs(each.speed - 1) <= _MAX_SPEED_CHANGE)
    links = []
    for done, (content, record) in enumerate(reversed(videos.items()), start=1):
        for other, score in sound.find(tracks_of(sound, content_of(record)), skip=met[content], tried=tried).items():
            if other not in videos:
                continue
            met[other].add(content)
            links += [
                SharedByFiles(record.path, videos[other].path, _stretch(segment, record, videos[other]))
                for segment in score.segments
                if segment.score >= SURE and segment.query_end - segment.query_start >= options.shortest
            ]
        if on_progress is not None:
            on_progress(done, len(videos))
    groups = build_groups(links, {record.path: record.duration for record in videos.values()})
    return [
        _replace_occurrences(replace(group, found_by="sound"), lambda one: replace(one, sound=one.score))
        for group in groups
    ]


def _stretch(segment: Segment, first: VideoRecord, second: VideoRecord) -> FittedStretch:
    """Convert a segment of two audio tracks to a segment of the videos, clipped because audio may outlast the video."""
    return FittedStretch(
        segment.query_start,
        min(segment.query_end, max(first.duration, segment.query_start + 0.1)),
        segment.target_start,
        min(segment.target_end, max(second.duration, segment.target_start + 0.1)),
        score=segment.score,
        match=segment.score,
        speed=segment.speed,
    )


def _score_pictures(
    groups: Iterable[RecurringGroup], records: Sequence[VideoRecord], parts: SearchParts
) -> list[RecurringGroup]:
    """Set the picture score of each occurrence: its best score against the first few occurrences, by stored
    features."""
    by_path = {record.path: record for record in records}

    def look(one: Occurrence) -> FrameFeatures | None:
        record = by_path[one.path]
        try:
            (stored,) = parts.store.read_many([record.id])
        except NotIndexedError:
            return None  # removed by another process in the meantime
        inside = (stored.timestamps >= one.start) & (stored.timestamps <= one.end)
        return prepare_features(stored, record.duration).frames(inside) if inside.any() else None

    seen = []
    for group in groups:
        shown = {one: look(one) for one in group.occurrences}
        best: dict[Occurrence, float] = {}
        for position, (one, features) in enumerate(shown.items()):
            for other, others in list(shown.items())[: min(position, _MAX_COMPARED)]:
                if features is None or others is None:
                    continue
                score = parts.scorer.score(features, [others])[0].score
                for which in (one, other):
                    best[which] = max(best.get(which, 0.0), score)
        seen.append(_replace_occurrences(group, lambda one, best=best: replace(one, picture=best.get(one))))  # type: ignore[misc]
    return seen


def add_sound_scores(
    groups: Sequence[RecurringGroup], records: Sequence[VideoRecord], sound: SoundSearch | None
) -> list[RecurringGroup]:
    """Set the sound score of each occurrence against the majority of its group, and mark those with different sound.

    Args:
        groups: The groups.
        records: The videos searched.
        sound: Audio fingerprints of the index; None to leave the groups unchanged.
    """
    if sound is None:
        return list(groups)
    by_path = {record.path: record for record in records}

    def hear(one: Occurrence) -> list[SoundFeatures]:
        cut = [track.between(one.start, one.end) for track in tracks_of(sound, content_of(by_path[one.path]))]
        return [track for track in cut if len(track) >= _MIN_LANDMARKS]

    return [_score_sounds(group, hear) if group.kind not in ("copy", "recap") else group for group in groups]


def _score_sounds(group: RecurringGroup, hear: Callable[[Occurrence], list[SoundFeatures]]) -> RecurringGroup:
    # Occurrences grouped by equal sound; silent occurrences are left out.
    kinds: list[tuple[list[SoundFeatures], dict[Occurrence, float]]] = []
    for one in group.occurrences:
        tracks = hear(one) if one.duration >= _MIN_SECONDS else []
        if not tracks:
            continue
        for known, same in kinds:
            score = _compare(tracks, known)
            if score >= _SAME_SOUND:
                same[one] = score
                break
        else:
            kinds.append((tracks, {one: 1.0}))
    if not kinds:
        return group
    kinds.sort(key=lambda kind: -len(kind[1]))
    (main, scores), *others = kinds
    # The first occurrence, with which the others were compared, gets the score of the most similar one.
    first, *rest = scores
    scores[first] = max((scores[one] for one in rest), default=1.0)
    different = {one: _compare(tracks, main) for tracks, same in others for one in same}
    scores |= different
    return _replace_occurrences(group, lambda one: replace(one, other_sound=one in different, sound=scores.get(one)))


def _compare(tracks: Sequence[SoundFeatures], others: Sequence[SoundFeatures]) -> float:
    return float(np.max([compare_sounds(track, other).score for track in tracks for other in others]))

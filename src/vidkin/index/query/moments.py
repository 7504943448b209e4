"""Find where a single image comes from: read the most promising moments of the candidates again.

An index holds one frame per second. An image taken between two of them while the camera moved resembles neither, so the
file itself has to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vidkin.index.query.common import CommonFrames, weigh_features
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.records import VideoRecord
from vidkin.similarity import (
    FrameFeatures,
    PairScore,
    Scorer,
    Segment,
)

ReadStretch = Callable[[VideoRecord, float, float], FrameFeatures | None]

"""Reads features of a stretch of a video (seconds) more densely than stored; None if it cannot be read."""

# Maximum number of moments that are read again: over all candidates, and per video.
_MOST_MOMENTS = 8

_MOST_OF_ONE = 3

# Sampling periods that are read on both sides of a moment.
_REACH = 1.5

# From this calibrated similarity of a stored frame on, a frame near it may be the picture.
_LEAST_SIMILARITY = 0.08

# From this similarity on it is the picture. With a moving camera, a frame .1 s away may still reach .95.
_FOUND = 0.98

# Once the picture is matched, less similar moments are skipped: reading all vaguely similar ones takes seconds.
_LEAST_WHEN_FOUND = 0.3


@dataclass(frozen=True, slots=True)
class _Moment:
    """A stored frame that resembles the picture."""

    similarity: float
    target: int
    time: float


def is_picture(query: FrameFeatures) -> bool:
    """Whether the query is a single frame, which matches at a moment and not over a stretch."""
    return len(query) == 1


def find_moments(
    store: VectorStore,
    query: FrameFeatures,
    video_ids: Sequence[int],
    common: CommonFrames,
    scorer: Scorer,
    read: ReadStretch,
) -> list[tuple[int, PairScore]]:
    """Score candidates for a query of one frame, with the moments that show it.

    Around the stored frames that are most similar to the picture (at most eight, three of a video) the file is read
    again, one and a half sampling periods on both sides; around those that already are the picture only if they are the
    most similar of all. These readings then count.

    Args:
        store: Store of the index.
        query: Features of a single frame.
        video_ids: Candidates of the first stage.
        common, scorer: Common frames and scorer of the index; the scorer has segments.
        read: Reads a stretch of a video.

    Returns:
        Id and score of each candidate that has frames.
    """
    records = [record for video_id in video_ids if (record := store.get(video_id)).frames > 0]
    if not records:
        return []
    stored = [
        weigh_features(features, common, record.duration)
        for record, features in zip(records, store.read_many([record.id for record in records]), strict=True)
    ]
    seen = _Seen(query, stored, scorer)
    readings = 0
    for moment in sorted(seen.moments(), key=lambda moment: -moment.similarity):
        least = _LEAST_WHEN_FOUND if max(seen.similarity) >= _FOUND else 0.0
        record = records[moment.target]
        if record.is_photograph:
            continue
        # If the camera hardly moves, stored frames match without being the exact moment: read around the best one.
        if readings < _MOST_MOMENTS and (readings == 0 or least <= moment.similarity < _FOUND):
            readings += 1
            reach = _REACH / record.sampling_rate
            frames = read(record, max(0.0, moment.time - reach), moment.time + reach)
            if frames is not None:
                seen.add(moment.target, frames)
    return [(record.id, seen.result(place)) for place, record in enumerate(records)]


def without_length(segment: Segment, *, query: bool, target: bool) -> Segment:
    """Shorten a segment where one side is a picture, which has no duration.

    Args:
        segment: Segment from the scorer, in which a picture lasts as long as a frame of the other side.
        query, target: Which side is a picture.
    """
    return replace(
        segment,
        query_end=segment.query_start if query else segment.query_end,
        target_end=segment.target_start if target else segment.target_end,
        speed=1.0 if query or target else segment.speed,
    )


class _Seen:
    """The picture compared with all candidates.

    Attributes:
        similarity: For each candidate, the similarity of its most similar frame, in [0, 1].
    """

    def __init__(self, picture: FrameFeatures, stored: Sequence[FrameFeatures], scorer: Scorer) -> None:
        self._picture, self._scorer = picture, scorer
        self._stored = stored
        self._results = [[result] for result in scorer.score(picture, stored)]
        self._rows = [results[0].map[0] for results in self._results]
        self.similarity = [float(row.max()) for row in self._rows]

    def moments(self) -> Iterator[_Moment]:
        """The most similar stored frames of each video, some time apart from each other."""
        for target, (row, stored) in enumerate(zip(self._rows, self._stored, strict=True)):
            left = row.copy()
            for segment in self._results[target][0].segments:
                # A part of the frame may match where the whole does not.
                near = (stored.timestamps >= segment.target_start) & (stored.timestamps <= segment.target_end)
                left[near] = np.maximum(left[near], np.float32(min(segment.score, _LEAST_WHEN_FOUND)))
            for _ in range(_MOST_OF_ONE):
                best = int(left.argmax())
                if float(left[best]) < _LEAST_SIMILARITY:
                    break
                time = float(stored.timestamps[best])
                yield _Moment(float(left[best]), target, time)
                left[np.abs(stored.timestamps - time) < _REACH * stored.period] = 0.0

    def add(self, target: int, frames: FrameFeatures) -> None:
        """Compare with a stretch of a video that was read again."""
        (result,) = self._scorer.score(self._picture, [frames])
        self._results[target].append(result)
        self.similarity[target] = max(self.similarity[target], float(result.map.max()))

    def result(self, target: int) -> PairScore:
        """Combine all readings of a video; of overlapping segments the more similar one counts."""
        results = self._results[target]
        segments: list[Segment] = []
        for new in sorted((s for result in results for s in result.segments), key=lambda s: -s.score):
            if all(s.target_end <= new.target_start or s.target_start >= new.target_end for s in segments):
                segments.append(new)
        return PairScore(max(result.score for result in results), tuple(segments), results[0].map)

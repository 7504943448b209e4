"""Find the moment a single image was taken from, by decoding the most promising moments of the candidates again.

An index contains one frame per second. An image from between two of them may resemble neither if the camera moves, so
the video itself must be decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vidkin.index.query.stored import prepare_features
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.records import VideoRecord
from vidkin.similarity import (
    FrameFeatures,
    PairScore,
    Scorer,
    Segment,
)

ReadStretch = Callable[[VideoRecord, float, float], FrameFeatures | None]
"""Extracts features from a clip (start and end in seconds) more densely than stored; None if it cannot be read."""

# Maximum number of moments to decode again: in total, and per video.
_MAX_MOMENTS = 8
_MAX_PER_VIDEO = 3

# Number of sampling periods to decode on either side of a moment.
_REACH = 1.5

# Minimum calibrated similarity of a stored frame for the image to be near it.
_MIN_SIMILARITY = 0.08

# Minimum similarity for a frame to count as the image itself. Frames 0.1 s away may reach 0.95 if the camera moves.
_FOUND = 0.98

# Once the image is found, moments with less similarity are skipped, because decoding all of them takes seconds.
_MIN_ONCE_FOUND = 0.3


@dataclass(frozen=True, slots=True)
class _Moment:
    """A stored frame that resembles the image."""

    similarity: float
    target: int
    time: float


def is_single_frame(query: FrameFeatures) -> bool:
    """Whether the query is a single frame, which matches at a moment rather than over a duration."""
    return len(query) == 1


def find_moments(
    store: VectorStore,
    query: FrameFeatures,
    video_ids: Sequence[int],
    scorer: Scorer,
    read: ReadStretch,
) -> list[tuple[int, PairScore]]:
    """Score candidates for a single-frame query and find the moments that show it.

    Around the stored frames most similar to the image (at most eight, three per video), 1.5 sampling periods on either
    side are decoded again and scored as well. A moment whose stored frame already equals the image is decoded again
    only if it is the most similar one.

    Args:
        store: Store of the index.
        query: Features of a single frame.
        video_ids: Candidates from the first stage.
        scorer: Scorer of the index, which must report segments.
        read: Extracts features from a clip of a video.

    Returns:
        Id and score of each candidate that has frames.
    """
    records = [record for video_id in video_ids if (record := store.get(video_id)).frames > 0]
    if not records:
        return []
    stored = [
        prepare_features(features, record.duration)
        for record, features in zip(records, store.read_many([record.id for record in records]), strict=True)
    ]
    compared = _ImageComparison(query, stored, scorer)
    readings = 0
    for moment in sorted(compared.moments(), key=lambda moment: -moment.similarity):
        least = _MIN_ONCE_FOUND if max(compared.similarity) >= _FOUND else 0.0
        record = records[moment.target]
        if record.is_photograph:
            continue
        # If the camera hardly moves, stored frames match without being the exact moment, so always decode around the
        # best one.
        if readings < _MAX_MOMENTS and (readings == 0 or least <= moment.similarity < _FOUND):
            readings += 1
            reach = _REACH / record.sampling_rate
            frames = read(record, max(0.0, moment.time - reach), moment.time + reach)
            if frames is not None:
                compared.add(moment.target, frames)
    return [(record.id, compared.result(row)) for row, record in enumerate(records)]


def drop_image_durations(segment: Segment, *, query: bool, target: bool) -> Segment:
    """Set the duration of images in a segment to zero.

    Args:
        segment: Segment from the scorer, in which an image lasts for one sampling period of the other side.
        query, target: Whether this side is an image.
    """
    return replace(
        segment,
        query_end=segment.query_start if query else segment.query_end,
        target_end=segment.target_start if target else segment.target_end,
        speed=1.0 if query or target else segment.speed,
    )


class _ImageComparison:
    """Comparison of an image with all candidates.

    Attributes:
        similarity: For each candidate, the similarity of its most similar frame, in [0, 1].
    """

    def __init__(self, image: FrameFeatures, stored: Sequence[FrameFeatures], scorer: Scorer) -> None:
        self._image, self._scorer = image, scorer
        self._stored = stored
        self._results = [[result] for result in scorer.score(image, stored)]
        self._rows = [results[0].map[0] for results in self._results]
        self.similarity = [float(row.max()) for row in self._rows]

    def moments(self) -> Iterator[_Moment]:
        """Yield the most similar stored frames of each video, at least 1.5 sampling periods apart."""
        for target, (row, stored) in enumerate(zip(self._rows, self._stored, strict=True)):
            left = row.copy()
            for segment in self._results[target][0].segments:
                # Part of a frame may match even where the whole frame does not.
                near = (stored.timestamps >= segment.target_start) & (stored.timestamps <= segment.target_end)
                left[near] = np.maximum(left[near], np.float32(min(segment.score, _MIN_ONCE_FOUND)))
            for _ in range(_MAX_PER_VIDEO):
                best = int(left.argmax())
                if float(left[best]) < _MIN_SIMILARITY:
                    break
                time = float(stored.timestamps[best])
                yield _Moment(float(left[best]), target, time)
                left[np.abs(stored.timestamps - time) < _REACH * stored.period] = 0.0

    def add(self, target: int, frames: FrameFeatures) -> None:
        """Compare the image with a clip that was decoded again."""
        (result,) = self._scorer.score(self._image, [frames])
        self._results[target].append(result)
        self.similarity[target] = max(self.similarity[target], float(result.map.max()))

    def result(self, target: int) -> PairScore:
        """Combine all comparisons with a video; where segments overlap, keep the one with the highest score."""
        results = self._results[target]
        segments: list[Segment] = []
        for new in sorted((s for result in results for s in result.segments), key=lambda s: -s.score):
            if all(s.target_end <= new.target_start or s.target_start >= new.target_end for s in segments):
                segments.append(new)
        return PairScore(max(result.score for result in results), tuple(segments), results[0].map)

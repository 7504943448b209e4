"""Where a single picture comes from: the most promising moments of the candidates, read again frame by frame.

An index holds a frame a second. A picture that was taken between two of them, while the camera moved, is similar to
neither: what decides is in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from vidkin.index.records import VideoRecord
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.queries.query import Query, weigh_features
from vidkin.index.storage.contract import VectorStore
from vidkin.similarity import FrameFeatures, PairScore, Scorer, Segment, calibrated_map, frame_similarity_many

__all__ = ["ReadStretch", "find_moments", "is_photograph", "is_picture", "without_length"]

ReadStretch = Callable[[VideoRecord, float, float], FrameFeatures | None]
"""Features of the frames of a video from one second to another, more densely than stored; None if it cannot be read."""

# Moments that are read again: of all candidates, and of one video.
_MOST_MOMENTS = 8
_MOST_OF_ONE = 3
# Sampling periods to both sides of a moment that are read.
_REACH = 1.5
# Calibrated similarity of a stored frame from which on what is around it may be the picture.
_LEAST_SIMILARITY = 0.08
# From here on it is the picture. A tenth of a second beside it, before a moving camera, may still be .95.
_FOUND = 0.98
# Once the picture is found, less similar moments are left alone: reading all that are vaguely similar takes seconds.
_LEAST_WHEN_FOUND = 0.3
# Seconds; the frame of a slide show stands longer.
_LONGEST_PHOTOGRAPH = 0.2
# So much more similar must the mirror image be than the picture itself.
_MIRROR_MARGIN = 0.05


@dataclass(frozen=True, slots=True)
class _Moment:
    """A stored frame that looks like the picture, as it is or flipped."""

    similarity: float
    target: int
    time: float
    view: int


def is_picture(query: Query) -> bool:
    """It is a single frame: where it is shown is a moment, not a stretch."""
    return len(query.plain) == 1


def is_photograph(record: VideoRecord) -> bool:
    """The file shows one frame, for no time worth the word: an image, for some formats of which a few hundredths of a
    second are stated."""
    return record.frames == 1 and record.duration < _LONGEST_PHOTOGRAPH


def find_moments(
    store: VectorStore,
    query: Query,
    video_ids: Sequence[int],
    common: CommonFrames,
    scorer: Scorer,
    read: ReadStretch,
) -> list[tuple[int, PairScore]]:
    """Scores of candidates for a query of one frame, with the moments that show it.

    Around the stored frames that are most similar to the picture (at most eight, three of a video) the file is read
    again, one and a half sampling periods to both sides; around those that are the picture already only if they are the
    most similar of all. What is found there counts.

    Args:
        store: Of the index.
        query: Of one frame.
        video_ids: Candidates of the first stage.
        common, scorer: Of the index; the scorer has segments.
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
    views = [query.plain] if query.mirrored is None else [query.plain, query.mirrored]
    seen = [_Seen(view, stored, scorer, mirrored=place == 1) for place, view in enumerate(views)]
    moments = sorted((moment for view in seen for moment in view.moments()), key=lambda m: -m.similarity)
    readings = 0
    for moment in moments:
        is_found = max(max(view.similarity) for view in seen) >= _FOUND
        least = _LEAST_WHEN_FOUND if is_found else 0.0
        record = records[moment.target]
        if is_photograph(record):
            continue
        # Before a camera that hardly moves, stored frames are the picture, but not its moment: the best place is read.
        if readings < _MOST_MOMENTS and (readings == 0 or least <= moment.similarity < _FOUND):
            readings += 1
            reach = _REACH / record.sampling_rate
            frames = read(record, max(0.0, moment.time - reach), moment.time + reach)
            if frames is not None:
                seen[moment.view].add(moment.target, frames)
    return [
        (record.id, max(seen, key=lambda view: view.rank(place)).result(place))
        for place, record in enumerate(records)
    ]


def without_length(segment: Segment, *, query: bool, target: bool) -> Segment:
    """The segment where one side is a picture, which has no second at which it ends.

    Args:
        segment: As the scorer places it, a picture lasting as long as a frame of the other side.
        query, target: Which side is a picture.
    """
    return replace(
        segment,
        query_end=segment.query_start if query else segment.query_end,
        target_end=segment.target_start if target else segment.target_end,
        speed=1.0 if query or target else segment.speed,
    )


class _Seen:
    """The picture, as it is or flipped, beside all candidates.

    Attributes:
        similarity: For each candidate that of its most similar frame, in [0, 1].
    """

    def __init__(
        self, picture: FrameFeatures, stored: Sequence[FrameFeatures], scorer: Scorer, *, mirrored: bool
    ) -> None:
        self._picture, self._scorer, self._mirrored = picture, scorer, mirrored
        self._stored = stored
        self._rows = self._compare(stored)
        self._results = [[result] for result in scorer.score(picture, stored, mirrored=mirrored)]
        self.similarity = [float(row.max()) for row in self._rows]

    def moments(self) -> Iterator[_Moment]:
        """The most similar stored frames of each video, some time apart from each other."""
        for target, (row, stored) in enumerate(zip(self._rows, self._stored, strict=True)):
            left = row.clone()
            for segment in self._results[target][0].segments:
                # A part of the frame may show what the whole of it hides.
                near = (stored.timestamps >= segment.target_start) & (stored.timestamps <= segment.target_end)
                left[near] = left[near].clamp(min=min(segment.score, _LEAST_WHEN_FOUND))
            for _ in range(_MOST_OF_ONE):
                best = int(left.argmax())
                if float(left[best]) < _LEAST_SIMILARITY:
                    break
                time = float(stored.timestamps[best])
                yield _Moment(float(left[best]), target, time, int(self._mirrored))
                left[(stored.timestamps - time).abs() < _REACH * stored.period] = 0.0

    def add(self, target: int, frames: FrameFeatures) -> None:
        """Compare with a stretch of a video that was read again."""
        self._results[target] += self._scorer.score(self._picture, [frames], mirrored=self._mirrored)
        self.similarity[target] = max(self.similarity[target], float(self._compare([frames])[0].max()))

    def rank(self, target: int) -> tuple[bool, float]:
        """Larger where the picture is seen this way round; the mirror image must be clearly more similar."""
        has_segments = any(result.segments for result in self._results[target])
        return has_segments, self.similarity[target] - (_MIRROR_MARGIN if self._mirrored else 0.0)

    def result(self, target: int) -> PairScore:
        """One result of all readings of a video; of segments that overlap, the more similar one."""
        results = self._results[target]
        segments: list[Segment] = []
        for new in sorted((s for result in results for s in result.segments), key=lambda s: -s.score):
            if all(s.target_end <= new.target_start or s.target_start >= new.target_end for s in segments):
                segments.append(new)
        return PairScore(max(result.score for result in results), tuple(segments), results[0].map)

    def _compare(self, targets: Sequence[FrameFeatures]) -> list[torch.Tensor]:
        """[Tt] in [0, 1] for each target: how similar each of its frames is to the picture, calibrated."""
        maps = frame_similarity_many(
            self._picture.whole, [target.whole for target in targets], symmetric=True
        )
        return [
            calibrated_map(raw.float(), self._picture.baselines[:, 0], target.baselines[:, 0])[0]
            for raw, target in zip(maps, targets, strict=True)
        ]

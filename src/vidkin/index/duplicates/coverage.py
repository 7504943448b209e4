"""Coverage: which stretches of a video exist in others, what is only in it, and how few files together have it.

Candidates come from the first stage of search, block by block, so that a long film finds short excerpts; matches from
the scorer; their ends, to a frame or two, from the pictures themselves.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from vidkin._base.arguments import check_constructor
from vidkin._base.files import is_within
from vidkin._base.values import Result, check_share
from vidkin.errors import CollectionMismatchError, InvalidArgumentError, MediaError
from vidkin.index.duplicates.placement import PlacedFrames, fit_line, follow_line, place_frames
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.query import SearchParts
from vidkin.index.query.stages import Ranker, find_identical, score_candidates
from vidkin.index.storage.records import VideoRecord
from vidkin.media import probe
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name
from vidkin.similarity import EXCERPT, FrameFeatures, Segment

_logger = logging.getLogger(__name__)

# Seconds of the video that are searched for at once, and by which blocks overlap.
_BLOCK, _OVERLAP = 120.0, 20.0
# Seconds by which two segments of one pair may lie off one line.
_SAME_LINE = 1.0
# Seconds around a rough end in which the exact one is looked for, and frames a second that are compared.
_AROUND, _RATE = 1.6, 12.5
# Share of the agreement in the middle below which two frames are not the same.
_AGREES = 0.6
# Seconds: shorter pieces are not reported, and shorter gaps are closed.
_SHORTEST, _GAP = 0.4, 0.3


@check_constructor
@dataclass(frozen=True, slots=True)
class SharedStretch(Result):
    """A stretch of a video that another file shows, too.

    Attributes:
        start, end: Seconds of the video.
        path: The other file.
        other_start, other_end: Seconds of the other file.
        score: Similarity along the stretch, in [0, 1].
        speed: Seconds of the other file per second of the video.
        mirrored: Whether one of them is flipped left to right.
        exact: Whether the ends were found in the pictures; otherwise they are as coarse as the index.
    """

    start: float
    end: float
    path: str
    other_start: float
    other_end: float
    score: float
    speed: float = 1.0
    mirrored: bool = False
    exact: bool = False

    def __post_init__(self) -> None:
        if self.end < self.start or self.other_end < self.other_start:
            raise InvalidArgumentError(
                f"a stretch must not end before it starts, got [{self.start}, {self.end}] s and "
                f"[{self.other_start}, {self.other_end}] s of the other file"
            )
        check_share(score=self.score)

    @property
    def seconds(self) -> float:
        """Its length in the video."""
        return self.end - self.start

    def part(self, start: float, end: float) -> SharedStretch:
        """The part of it between two times of the video."""
        first, last = max(start, self.start), min(end, self.end)
        moved = [self.other_start + self.speed * (time - self.start) for time in (first, last)]
        return replace(
            self,
            start=first,
            end=last,
            other_start=min(moved[0], self.other_end),
            other_end=min(moved[1], self.other_end),
        )


@dataclass(frozen=True, slots=True)
class CoverStep(Result):
    """One file of the few that together show most of a video.

    Attributes:
        path: The file.
        seconds: Seconds of the video that it adds to the files before it.
        share: Share of the video that all files up to it show.
    """

    path: str
    seconds: float
    share: float


@check_constructor
@dataclass(frozen=True, slots=True)
class Coverage(Result):
    """Which stretches of a video exist in other files.

    Attributes:
        path: The video.
        duration: Its length in seconds.
        stretches: Every stretch that another file shows, by start; several files may show the same one.
    """

    derived: ClassVar = ("share", "elsewhere", "only_here", "sources", "fewest")

    path: str
    duration: float
    stretches: tuple[SharedStretch, ...] = ()

    def __post_init__(self) -> None:
        if not self.duration >= 0:
            raise InvalidArgumentError(f"duration must be at least 0 s, got {self.duration}")

    @property
    def elsewhere(self) -> tuple[tuple[float, float], ...]:
        """Start and end in seconds of what other files show, too, in order and without overlaps."""
        return _union((stretch.start, stretch.end) for stretch in self.stretches)

    @property
    def only_here(self) -> tuple[tuple[float, float], ...]:
        """Start and end in seconds of what no other file shows."""
        return _gaps(self.elsewhere, self.duration)

    @property
    def share(self) -> float:
        """Share of the video that other files show, in [0, 1]."""
        return _share(self.elsewhere, self.duration)

    @property
    def sources(self) -> tuple[SharedStretch, ...]:
        """The pieces of the video in order, each with the one file that shows it best; without overlaps.

        Of the files that show a piece, the one with the longest stretch around it counts, as a source has more than a
        quotation; of equally long ones the one with the higher score.
        """
        left = [(0.0, self.duration)]
        chosen = []
        for stretch in sorted(self.stretches, key=lambda each: (-round(each.seconds, 1), -each.score, each.path)):
            rest: list[tuple[float, float]] = []
            for start, end in left:
                if min(end, stretch.end) - max(start, stretch.start) < _SHORTEST:
                    rest.append((start, end))
                    continue
                piece = stretch.part(start, end)
                chosen.append(piece)
                rest += [(low, high) for low, high in ((start, piece.start), (piece.end, end)) if high > low]
            left = rest
        return tuple(sorted(chosen, key=lambda each: each.start))

    @property
    def fewest(self) -> tuple[CoverStep, ...]:
        """Few files that together show all that is elsewhere: each adds the most to those before it (greedy set
        cover), at least .4 s."""
        spans = {path: self.of_file(path) for path in sorted({stretch.path for stretch in self.stretches})}
        steps: list[CoverStep] = []
        covered: tuple[tuple[float, float], ...] = ()
        while spans:
            before = _seconds(covered)
            gains = {path: _seconds(_union((*covered, *parts))) - before for path, parts in spans.items()}
            path = max(gains, key=lambda each: (gains[each], each))
            if gains[path] < _SHORTEST:
                break
            covered = _union((*covered, *spans.pop(path)))
            steps.append(CoverStep(path, gains[path], _share(covered, self.duration)))
        return tuple(steps)

    def of_file(self, path: str) -> tuple[tuple[float, float], ...]:
        """Start and end in seconds of what one file shows of the video."""
        return _union((stretch.start, stretch.end) for stretch in self.stretches if stretch.path == path)

    def cards(self, path: str = "") -> list[Card]:
        """A picture from the middle of each source, for a notebook."""
        return [
            Card(
                self.path,
                (stretch.start + stretch.end) / 2,
                f"{stretch.start:.1f} - {stretch.end:.1f} s",
                f"{shown_name(stretch.path)} from {stretch.other_start:.1f} s, score {stretch.score:.2f}",
            )
            for stretch in self.sources
        ]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row a source: a stretch of the video and the file that shows it best."""
        return [stretch.to_dict() for stretch in self.sources]

    def to_pandas(self) -> Any:
        """The sources as a pandas DataFrame; :class:`vidkin.errors.MissingPartError` where it is not installed."""
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards(), f"{shown_name(self.path)}: {self.share:.0%} elsewhere")


def _union(spans: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Spans in order; those less than .3 s apart are one."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1] + _GAP:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return tuple(joined)


def _gaps(spans: Sequence[tuple[float, float]], duration: float) -> tuple[tuple[float, float], ...]:
    edges = [0.0, *(time for span in spans for time in span), duration]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((start, end) for start, end in pairs if end - start > _GAP)


def _seconds(spans: Iterable[tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)


def _share(spans: Iterable[tuple[float, float]], duration: float) -> float:
    return min(1.0, _seconds(spans) / duration) if duration > 0 else 0.0


def cover(
    path: str | os.PathLike[str],
    parts: SearchParts,
    query: FrameFeatures,
    within: str | os.PathLike[str] | None,
    threshold: float = EXCERPT,
    candidates: int = 100,
    on_progress: Callable[[int, int], None] | None = None,
    rank: Ranker | None = None,
) -> Coverage:
    """Which stretches of a video exist in the videos of an index; see :meth:`vidkin.Index.coverage`.

    Args:
        path: The video; it and files with the same bytes do not count.
        parts: Parts of the index.
        query: Features of the video.
        within: Only files in this folder count; None for all.
        threshold: Score of a pair from which its segments count.
        candidates: Number of videos that are compared with each two minutes of the video.
        on_progress: Callback that receives (steps done, steps in all); the second grows when matches are known.
        rank: Scores the candidates; None scores them in this process.

    Raises:
        CollectionMismatchError: The index ranks by kind, and its scores do not tell copies from other videos.
        InvalidArgumentError: A number is out of range.
        NotIndexedError: Candidates are removed meanwhile.
        MediaError: The video cannot be read.
    """
    check_share(threshold=threshold)
    if candidates < 1:
        raise InvalidArgumentError(f"candidates must be at least 1, got {candidates}")
    if not parts.scorer.has_segments:
        raise CollectionMismatchError(
            "the scores of this index order kinds of videos and do not tell where they match; make another index with "
            "--extractor vidkin"
        )
    name, store = os.path.abspath(os.path.expanduser(path)), parts.store
    folder = None if within is None else os.path.realpath(os.path.expanduser(within))
    records = parts.records()
    same = {record.id for record in find_identical(records, name)} | {each.id for each in records if each.path == name}

    def counts(record: VideoRecord) -> bool:
        inside = folder is None or is_within(record.path, folder)
        return record.id not in same and inside and not record.is_photograph

    duration = probe(name).duration
    blocks = list(_blocks(query, duration))
    rough: dict[int, list[Segment]] = {}
    for done, block in enumerate(blocks):
        ids = [video for video in find_candidates(store, block, candidates) if counts(store.get(video))]
        for video, pair in (rank or score_candidates)(store, block, ids, parts.scorer):
            if pair.score >= threshold:
                rough.setdefault(video, []).extend(each for each in pair.segments if each.score >= threshold / 2)
        if on_progress is not None:
            on_progress(done + 1, len(blocks))
    pairs = [(store.get(video), segment) for video, found in rough.items() for segment in _joined(found)]
    stretches: list[SharedStretch] = []
    for done, (record, segment) in enumerate(pairs):
        stretch = _with_exact_ends(name, duration, record, segment)
        if stretch is not None:
            stretches.append(stretch)
        if on_progress is not None:
            on_progress(len(blocks) + done + 1, len(blocks) + len(pairs))
    return Coverage(name, duration, tuple(sorted(_distinct(stretches), key=lambda each: (each.start, each.path))))


def _blocks(query: FrameFeatures, duration: float) -> Iterator[FrameFeatures]:
    """The query in stretches of two minutes that overlap, so that none of its parts is lost among the others."""
    # What is left after the last one is no block of its own.
    starts = np.arange(0.0, max(duration - 2 * _OVERLAP, 1.0), _BLOCK - _OVERLAP)
    for start in starts.tolist():
        end = duration + 1 if start == starts[-1] else start + _BLOCK
        rows = np.flatnonzero((query.timestamps >= start) & (query.timestamps < end))
        if len(rows):
            block = query.frames(rows)
            # The end of the video is the end of the last block alone.
            is_end = query.end is None or rows[-1] == len(query) - 1
            yield block if is_end else replace(block, end=float(block.timestamps[-1]) + query.period)


def _joined(segments: Sequence[Segment]) -> list[Segment]:
    """Segments of one pair; those on one line that overlap, from blocks that do, are one."""
    joined: list[Segment] = []
    for segment in sorted(segments, key=lambda each: each.query_start):
        for place, other in enumerate(joined):
            expected = other.target_start + other.speed * (segment.query_start - other.query_start)
            is_one_line = abs(expected - segment.target_start) <= _SAME_LINE and other.mirrored == segment.mirrored
            is_one_line &= not (other.backwards or segment.backwards)
            if is_one_line and segment.query_start <= other.query_end + _SAME_LINE:
                last = max(other, segment, key=lambda each: each.query_end)
                joined[place] = replace(
                    other,
                    query_end=last.query_end,
                    target_end=max(other.target_start, last.target_end),
                    score=max(other.score, segment.score),
                )
                break
        else:
            joined.append(segment)
    return joined


def _with_exact_ends(path: str, duration: float, record: VideoRecord, segment: Segment) -> SharedStretch | None:
    """The stretch of a segment, with the ends that the pictures show; None if nothing is left of it."""
    lengths, ends = (duration, record.duration), None
    try:
        placed = None if segment.backwards else place_frames(path, record.path, segment, lengths)
        ends = None if placed is None else _find_ends(path, record.path, segment, placed, lengths)
    except MediaError as error:
        _logger.info("%s; ends of matches are those of the index", error)
    times, there = (segment.query_start, segment.query_end), (segment.target_start, segment.target_end)
    speed = segment.speed
    if ends is not None:
        *span, offset, speed = ends
        first, last = (min(max(offset + speed * time, 0.0), record.duration) for time in span)
        times, there = (span[0], span[1]), (first, max(first, last))
    exact = ends is not None
    found = SharedStretch(*times, record.path, *there, segment.score, speed, segment.mirrored, exact=exact)
    return found if found.seconds >= _SHORTEST else None


def _find_ends(
    first: str, second: str, segment: Segment, placed: PlacedFrames, lengths: tuple[float, float]
) -> tuple[float, float, float, float] | None:
    """Start and end in the first video, and offset and speed of the line to the second: where frames cease to agree."""
    offset, speed = fit_line(placed, segment)
    # Where one of the videos ends, so does the match.
    edges = max(0.0, -offset / speed), min(lengths[0], (lengths[1] - offset) / speed)
    middle = (segment.query_start + segment.query_end) / 2
    ends = []
    for outwards, rough, edge in ((-1, segment.query_start, edges[0]), (1, segment.query_end, edges[1])):
        # From the middle outwards: all that is on the inner side agrees, all that is beyond does not.
        inner = outwards * max(outwards * middle, outwards * rough - _AROUND)
        times = np.arange(inner, rough + outwards * _AROUND, outwards / _RATE)
        times = times[(times >= edges[0] - 1 / _RATE) & (times >= 0) & (times <= edges[1]) & (times < lengths[0])]
        if not len(times):
            ends.append(rough)
            continue
        agreement = follow_line(first, second, times, (offset, speed), placed, lengths)
        sums = np.cumsum(agreement - _AGREES * placed.agreement)
        best = int(np.argmax(sums))
        if sums[best] <= 0:
            return None  # not even in the middle: the place is wrong
        reached = float(times[best]) + max(0, outwards) / _RATE
        is_at_edge = best == len(times) - 1 and abs(edge - reached) < 2 / _RATE
        ends.append(edge if is_at_edge else min(max(reached, edges[0]), edges[1]))
    return ends[0], max(ends), offset, speed


def _distinct(stretches: Sequence[SharedStretch]) -> Iterator[SharedStretch]:
    """Without those that repeat another one of the same file: a still scene matches at many times."""
    kept: list[SharedStretch] = []
    for stretch in sorted(stretches, key=lambda each: -each.score * each.seconds):
        covered = _union((each.start, each.end) for each in kept if each.path == stretch.path)
        inside = sum(max(0.0, min(end, stretch.end) - max(start, stretch.start)) for start, end in covered)
        if inside <= stretch.seconds / 2:
            kept.append(stretch)
            yield stretch

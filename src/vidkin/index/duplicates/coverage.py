"""Coverage: which parts of a video occur in other files, which are unique, and a small set of files that covers it.

Candidates come from the first search stage, applied block by block so that short excerpts of a long film are found.
Matches come from the scorer; their ends are refined to within a frame or two by comparing frames.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.files import is_within
from vidkin._base.values import Result, check_share
from vidkin.errors import CollectionMismatchError, InvalidArgumentError, MediaError
from vidkin.index.duplicates.detail import measure_edges
from vidkin.index.duplicates.placement import PlacedFrames, compare_changes, fit_line, follow_line, place_frames
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.query import SearchParts
from vidkin.index.query.stages import Ranker, find_identical, score_candidates
from vidkin.index.storage.records import VideoRecord
from vidkin.match.lines import MAX_LINES
from vidkin.media import probe
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name
from vidkin.similarity import EXCERPT, SURE, FrameFeatures, Segment

_logger = logging.getLogger(__name__)

# Duration and overlap in seconds of the blocks into which the query is split.
_BLOCK, _OVERLAP = 120.0, 20.0
# Maximum deviation in seconds of two segments that are joined from a common line.
_SAME_LINE = 1.0
# Search range in seconds on either side of an approximate end, and frames per second compared there.
_END_REACH, _RATE = 1.6, 12.5
# Frames differ if their agreement is below this fraction of the agreement in the middle of the segment.
_AGREEING_RATIO = 0.6
# Minimum duration in seconds of a reported piece and of a gap; shorter gaps are closed.
_MIN_SECONDS, _MIN_GAP = 0.4, 0.3
# Minimum number of frames of a part that is compared on its own, because fewer do not form a line.
_MIN_FRAMES = 3
# Minimum correlation of what changes in two videos if their score leaves doubt, and maximum number of matches that fail
# this test: footage of a fixed camera has many.
_SAME_CHANGE, _MAX_DOUBTFUL = 0.85, 20
# Lines and columns of the images whose edges are compared for sharpness.
_EDGE_SIZE = (288, 384)


@check_constructor
@dataclass(frozen=True, slots=True)
class SharedStretch(Result):
    """A segment of a video that also occurs in another file.

    Attributes:
        start, end: Start and end in the video, in seconds.
        path: The other file.
        other_start, other_end: Start and end in the other file, in seconds.
        score: Similarity along the segment, in [0, 1].
        speed: Seconds of the other file per second of the video.
        mirrored: Whether one of the files is flipped left to right.
        turned: Degrees by which the video must be rotated clockwise to match: 0, 90, 180 or 270.
        backwards: Whether the video shows the segment of the other file from its end to its start.
        sharpness: Edges of the other file relative to those of the video, at the same size; 1 if unknown.
        pixels: Pixels of the other file that show the frame of the video.
        exact: Whether the ends were refined by comparing frames; otherwise they are only as precise as the index.
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
    turned: int = 0
    backwards: bool = False
    sharpness: float = 1.0
    pixels: int = 0

    def __post_init__(self) -> None:
        if self.end < self.start or self.other_end < self.other_start:
            raise InvalidArgumentError(
                f"a segment must not end before it starts, got [{self.start}, {self.end}] s and "
                f"[{self.other_start}, {self.other_end}] s in the other file"
            )
        check_share(score=self.score)

    @property
    def seconds(self) -> float:
        """Duration in the video in seconds."""
        return self.end - self.start

    def part(self, start: float, end: float) -> SharedStretch:
        """Return the part of the segment between two times in the video."""
        first, last = max(start, self.start), min(end, self.end)
        moved = [self.other_start + self.speed * (time - self.start) for time in (first, last)]
        if self.backwards:
            moved = [self.other_end - self.speed * (time - self.start) for time in (last, first)]
        return replace(
            self,
            start=first,
            end=last,
            other_start=min(max(moved[0], self.other_start), self.other_end),
            other_end=min(moved[1], self.other_end),
        )


@dataclass(frozen=True, slots=True)
class CoverStep(Result):
    """One step of a small set of files that together cover a video.

    Attributes:
        path: The file.
        seconds: Seconds of the video that this file adds to those covered by the files before it.
        share: Fraction of the video covered by this file and the files before it, in [0, 1].
    """

    path: str
    seconds: float
    share: float


@check_constructor
@dataclass(frozen=True, slots=True)
class Coverage(Result):
    """Which parts of a video occur in other files.

    Attributes:
        path: The video.
        duration: Duration of the video in seconds.
        stretches: All segments that occur in other files, sorted by start; segments of different files may overlap.
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
        """Start and end in seconds of the parts that occur in other files, in order and without overlaps."""
        return _union((stretch.start, stretch.end) for stretch in self.stretches)

    @property
    def only_here(self) -> tuple[tuple[float, float], ...]:
        """Start and end in seconds of the parts that do not occur in any other file."""
        return _gaps(self.elsewhere, self.duration)

    @property
    def share(self) -> float:
        """Fraction of the video that occurs in other files, in [0, 1]."""
        return _share(self.elsewhere, self.duration)

    @property
    def sources(self) -> tuple[SharedStretch, ...]:
        """The shared pieces of the video, in order and without overlaps, each with its most likely source.

        Files that show a piece unchanged come before mirrored, turned or reversed ones, then sharper ones and those
        with more pixels. Among equal files, the one with the longest segment around the piece is chosen, because a
        source contains more than a quotation; ties go to the higher score.
        """
        left = [(0.0, self.duration)]
        chosen = []
        for stretch in sorted(self.stretches, key=_rank):
            rest: list[tuple[float, float]] = []
            for start, end in left:
                if min(end, stretch.end) - max(start, stretch.start) < _MIN_SECONDS:
                    rest.append((start, end))
                    continue
                piece = stretch.part(start, end)
                chosen.append(piece)
                rest += [(low, high) for low, high in ((start, piece.start), (piece.end, end)) if high > low]
            left = rest
        return tuple(sorted(chosen, key=lambda each: each.start))

    @property
    def fewest(self) -> tuple[CoverStep, ...]:
        """A small set of files that together contain all shared parts, found by greedy set cover; each file adds at
        least 0.4 s to the files before it."""
        spans = {path: self.of_file(path) for path in sorted({stretch.path for stretch in self.stretches})}
        steps: list[CoverStep] = []
        covered: tuple[tuple[float, float], ...] = ()
        while spans:
            before = _seconds(covered)
            gains = {path: _seconds(_union((*covered, *parts))) - before for path, parts in spans.items()}
            path = max(gains, key=lambda each: (gains[each], each))
            if gains[path] < _MIN_SECONDS:
                break
            covered = _union((*covered, *spans.pop(path)))
            steps.append(CoverStep(path, gains[path], _share(covered, self.duration)))
        return tuple(steps)

    def of_file(self, path: str) -> tuple[tuple[float, float], ...]:
        """Start and end in seconds of the parts of the video that occur in one file."""
        return _union((stretch.start, stretch.end) for stretch in self.stretches if stretch.path == path)

    def cards(self, path: str = "") -> list[Card]:
        """A frame from the middle of each source piece, for display in a notebook."""
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
        """One row per source piece, with the file it occurs in."""
        return [stretch.to_dict() for stretch in self.sources]

    def to_pandas(self) -> Any:
        """Return the source pieces as a pandas DataFrame.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards(), f"{shown_name(self.path)}: {self.share:.0%} elsewhere")


def _rank(stretch: SharedStretch) -> tuple[bool, int, int, float, float, str]:
    """Key for sorting stretches, the best source first."""
    is_changed = stretch.mirrored or stretch.backwards or stretch.turned != 0
    # In steps of half and of whole octaves, because encoding changes edges a little.
    sharpness, pixels = round(2 * math.log2(max(stretch.sharpness, 1e-3))), round(math.log2(max(stretch.pixels, 1)))
    return is_changed, -sharpness, -pixels, -round(stretch.seconds, 1), -stretch.score, stretch.path


def _union(spans: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return spans in order, after merging those less than 0.3 s apart."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1] + _MIN_GAP:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return tuple(joined)


def _gaps(spans: Sequence[tuple[float, float]], duration: float) -> tuple[tuple[float, float], ...]:
    edges = [0.0, *(time for span in spans for time in span), duration]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((start, end) for start, end in pairs if end - start > _MIN_GAP)


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
    """Find which parts of a video occur in the videos of an index; see :meth:`vidkin.Index.coverage`.

    Args:
        path: The video; the file itself and byte-identical files are ignored.
        parts: Shared parts of the index.
        query: Features of the video.
        within: Only consider files in this folder; None for all.
        threshold: Minimum score of a pair for its segments to count; below it, the same must change in both videos.
        candidates: Number of videos compared with each two-minute block.
        on_progress: Callback that receives (steps done, total steps); the total increases once matches are known.
        rank: Scores the candidates; None to score them in this process.

    Raises:
        CollectionMismatchError: The index ranks by kind, so its scores cannot identify copies.
        InvalidArgumentError: A number is out of range.
        NotIndexedError: A candidate was removed in the meantime.
        MediaError: The video cannot be read.
    """
    check_share(threshold=threshold)
    if candidates < 1:
        raise InvalidArgumentError(f"candidates must be at least 1, got {candidates}")
    if not parts.scorer.has_segments:
        raise CollectionMismatchError(
            "the scores of this index rank videos by kind and cannot identify matching segments; create another index "
            "with --extractor vidkin"
        )
    name, store = os.path.abspath(os.path.expanduser(path)), parts.store
    folder = None if within is None else os.path.realpath(os.path.expanduser(within))
    records = parts.records()
    same = {record.id for record in find_identical(records, name)} | {each.id for each in records if each.path == name}

    def counts(record: VideoRecord) -> bool:
        inside = folder is None or is_within(record.path, folder)
        return record.id not in same and inside and not record.is_photograph

    duration = probe(name).duration
    done = total = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    # Blocks to compare, each with its candidates or with one video.
    tasks: list[tuple[FrameFeatures, int | None]] = [(block, None) for block in _blocks(query, duration)]
    doubtful: list[tuple[VideoRecord, Segment]] = []
    stretches: list[SharedStretch] = []
    is_again = False
    while tasks:
        total += len(tasks)
        rough: dict[int, list[Segment]] = {}
        full: list[tuple[FrameFeatures, int]] = []
        for block, only in tasks:
            ids = [only] if only is not None else find_candidates(store, block, candidates)
            ids = [video for video in ids if counts(store.get(video))]
            for video, pair in (rank or score_candidates)(store, block, ids, parts.scorer):
                if pair.score < threshold:
                    doubtful += [(store.get(video), each) for each in pair.segments if each.score >= SURE]
                    continue
                rough.setdefault(video, []).extend(each for each in pair.segments if each.score >= threshold / 2)
                if is_again or len(pair.segments) >= MAX_LINES:
                    full.append((block, video))
            advance()
        pairs = [(store.get(video), segment) for video, found in rough.items() for segment in _merge_segments(found)]
        total += len(pairs)
        for record, segment in pairs:
            # Around a stretch, its source often shows other moments of the same scene.
            stretch = _refine_ends(name, duration, record, segment, is_doubtful=is_again)
            if stretch is not None:
                stretches.append(stretch)
            advance()
        # A comparison finds only the strongest lines, so a source that is shown more often is looked for in the rest.
        rests = ((_rest(block, stretches, store.get(video).path), video) for block, video in full)
        tasks, is_again = [(rest, video) for pieces, video in rests for rest in pieces], True
    left = _gaps(_union((each.start, each.end) for each in stretches), duration)
    stretches += _confirm(name, duration, doubtful, left)
    return Coverage(name, duration, tuple(sorted(_drop_repeats(stretches), key=lambda each: (each.start, each.path))))


def _confirm(
    path: str, duration: float, doubtful: Iterable[tuple[VideoRecord, Segment]], gaps: Sequence[tuple[float, float]]
) -> Iterator[SharedStretch]:
    """Doubtful matches in which the same changes in both videos, such as a person walking before a fixed camera."""
    failed = 0
    for record, segment in sorted(doubtful, key=lambda each: -each[1].score):
        if failed == _MAX_DOUBTFUL or not gaps:
            break
        if max(min(end, segment.query_end) - max(start, segment.query_start) for start, end in gaps) < _MIN_SECONDS:
            continue
        stretch = _refine_ends(path, duration, record, segment, is_doubtful=True)
        if stretch is None:
            failed += 1
        elif _fills(stretch, gaps):
            yield stretch
            gaps = [part for gap in gaps for part in _outside(gap, stretch)]


def _outside(gap: tuple[float, float], stretch: SharedStretch) -> list[tuple[float, float]]:
    parts = (gap[0], min(gap[1], stretch.start)), (max(gap[0], stretch.end), gap[1])
    return [(start, end) for start, end in parts if end - start > _MIN_GAP]


def _fills(stretch: SharedStretch, gaps: Iterable[tuple[float, float]]) -> bool:
    """Whether a stretch shows enough of one of these gaps."""
    return any(min(end, stretch.end) - max(start, stretch.start) >= _MIN_SECONDS for start, end in gaps)


def _rest(block: FrameFeatures, stretches: Iterable[SharedStretch], path: str) -> Iterator[FrameFeatures]:
    """The parts of a block between the stretches of a file; none if there are no stretches in it."""
    times, rest = block.timestamps, np.ones(len(block), np.bool_)
    for each in stretches:
        rest &= (each.path != path) | (times < each.start - _MIN_GAP / 2) | (times >= each.end - _MIN_GAP / 2)
    rows = np.flatnonzero(rest)
    for part in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) < len(block) else ():
        if len(part) >= _MIN_FRAMES:
            yield _cut(block, part)


def _cut(query: FrameFeatures, rows: NDArray[np.int64]) -> FrameFeatures:
    """Consecutive frames of the query. Only the last ones end at the end of the video."""
    block = query.frames(rows)
    is_end = query.end is None or rows[-1] == len(query) - 1
    return block if is_end else replace(block, end=float(block.timestamps[-1]) + query.period)


def _blocks(query: FrameFeatures, duration: float) -> Iterator[FrameFeatures]:
    """Split the query into overlapping two-minute blocks, so that short matches are not outvoted by the rest."""
    # A short remainder is added to the last block.
    starts = np.arange(0.0, max(duration - 2 * _OVERLAP, 1.0), _BLOCK - _OVERLAP)
    for start in starts.tolist():
        end = duration + 1 if start == starts[-1] else start + _BLOCK
        rows = np.flatnonzero((query.timestamps >= start) & (query.timestamps < end))
        if len(rows):
            yield _cut(query, rows)


def _merge_segments(segments: Sequence[Segment]) -> list[Segment]:
    """Merge segments of one pair that overlap on a common line because they come from overlapping blocks."""
    joined: list[Segment] = []
    for segment in sorted(segments, key=lambda each: each.query_start):
        for position, other in enumerate(joined):
            expected = other.target_start + other.speed * (segment.query_start - other.query_start)
            is_one_line = abs(expected - segment.target_start) <= _SAME_LINE and other.mirrored == segment.mirrored
            is_one_line &= not (other.backwards or segment.backwards)
            if is_one_line and segment.query_start <= other.query_end + _SAME_LINE:
                last = max(other, segment, key=lambda each: each.query_end)
                joined[position] = replace(
                    other,
                    query_end=last.query_end,
                    target_end=max(other.target_start, last.target_end),
                    score=max(other.score, segment.score),
                )
                break
        else:
            joined.append(segment)
    return joined


def _refine_ends(
    path: str, duration: float, record: VideoRecord, segment: Segment, *, is_doubtful: bool = False
) -> SharedStretch | None:
    """Convert a segment to a shared segment with refined ends; return None if it is too short, or if it is doubtful and
    other things change in the other file."""
    lengths = duration, record.duration
    placed: PlacedFrames | None = None
    ends: tuple[float, float, float, float] | None = None
    try:
        placed = None if segment.backwards else place_frames(path, record.path, segment, lengths)
        ends = None if placed is None else _find_ends(path, record.path, segment, placed, lengths)
        if is_doubtful and (placed is None or ends is None or not _is_same(path, record, ends, placed, lengths)):
            return None
    except MediaError as error:
        _logger.info("%s; the ends of this match are not refined", error)
        if is_doubtful:
            return None
    times, there = (segment.query_start, segment.query_end), (segment.target_start, segment.target_end)
    speed = segment.speed
    if ends is not None:
        *span, offset, speed = ends
        first, last = (min(max(offset + speed * time, 0.0), record.duration) for time in span)
        times, there = (span[0], span[1]), (first, max(first, last))
    left, top, right, bottom = segment.target_box if placed is None else placed.placement.covered_box
    found = SharedStretch(
        *times,
        record.path,
        *there,
        segment.score,
        speed,
        segment.mirrored,
        exact=ends is not None,
        turned=segment.turned,
        backwards=segment.backwards,
        sharpness=1.0 if placed is None else _compare_edges(placed),
        pixels=round(record.width * record.height * (right - left) * (bottom - top)),
    )
    return found if found.seconds >= _MIN_SECONDS else None


def _is_same(
    path: str,
    record: VideoRecord,
    ends: tuple[float, float, float, float],
    placed: PlacedFrames,
    lengths: tuple[float, float],
) -> bool:
    """Whether the same changes in both videos between these ends, on the line of the last two numbers."""
    start, end, *line = ends
    times = np.arange(start, end, 1 / _RATE)[1:-1]  # the ends may be off by a frame
    if len(times) < _MIN_FRAMES:
        return False
    return compare_changes(path, record.path, times, (line[0], line[1]), placed, lengths) >= _SAME_CHANGE


def _compare_edges(placed: PlacedFrames) -> float:
    """Edges of the second video relative to those of the first one, in the common part of both."""
    edges = [
        [float(measure_edges(images.mean(axis=-1, dtype=np.float32)).mean()) for images in pair]
        for pair in placed.common(_EDGE_SIZE)
    ]
    first, second = np.sum(edges, axis=0).tolist()
    return float(second / first) if first > 0 else 1.0


def _find_ends(
    first: str, second: str, segment: Segment, placed: PlacedFrames, lengths: tuple[float, float]
) -> tuple[float, float, float, float] | None:
    """Return start and end in the first video, where frames stop agreeing, and offset and speed of the line to the
    second; None if the frames do not agree at all."""
    offset, speed = fit_line(placed, segment)
    # The match cannot extend beyond the ends of either video.
    edges = max(0.0, -offset / speed), min(lengths[0], (lengths[1] - offset) / speed)
    middle = (segment.query_start + segment.query_end) / 2
    ends = []
    for outwards, rough, edge in ((-1, segment.query_start, edges[0]), (1, segment.query_end, edges[1])):
        # Going outward, frames agree up to the end and not beyond it, so the cumulative sum peaks at the end.
        inner = outwards * max(outwards * middle, outwards * rough - _END_REACH)
        times = np.arange(inner, rough + outwards * _END_REACH, outwards / _RATE)
        times = times[(times >= edges[0] - 1 / _RATE) & (times >= 0) & (times <= edges[1]) & (times < lengths[0])]
        if not len(times):
            ends.append(rough)
            continue
        agreement = follow_line(first, second, times, (offset, speed), placed, lengths)
        sums = np.cumsum(agreement - _AGREEING_RATIO * placed.agreement)
        best = int(np.argmax(sums))
        if sums[best] <= 0:
            return None  # the frames do not agree even near the middle, so the alignment is wrong
        reached = float(times[best]) + max(0, outwards) / _RATE
        is_at_edge = best == len(times) - 1 and abs(edge - reached) < 2 / _RATE
        ends.append(edge if is_at_edge else min(max(reached, edges[0]), edges[1]))
    return ends[0], max(ends), offset, speed


def _drop_repeats(stretches: Sequence[SharedStretch]) -> Iterator[SharedStretch]:
    """Drop segments that mostly repeat a better one in the same file; a still scene matches at many times."""
    kept: list[SharedStretch] = []
    for stretch in sorted(stretches, key=lambda each: -each.score * each.seconds):
        covered = _union((each.start, each.end) for each in kept if each.path == stretch.path)
        inside = sum(max(0.0, min(end, stretch.end) - max(start, stretch.start)) for start, end in covered)
        if inside <= stretch.seconds / 2:
            kept.append(stretch)
            yield stretch

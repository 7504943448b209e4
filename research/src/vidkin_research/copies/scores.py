"""Figures of copy retrieval: mAP and micro-AP of everything, of each family and of each edit; unrelated pairs; errors
in time and overlaps of boxes against the true places of copies.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.index import Index
from vidkin.index.query.sound import By
from vidkin.similarity import UNRELATED, Segment
from vidkin_research.copies.edits import EDITS, EditedSegment, EditFamily
from vidkin_research.copies.material import BOTH_KEPT, REAL_COPY, SOUND, SOUND_EDITS, CopyMaterial

# Pairs of unrelated videos should stay below this score.
THRESHOLD = UNRELATED

EVERYTHING = "everything"

FAMILIES = (*get_args(EditFamily), SOUND)


@dataclass(frozen=True, slots=True)
class AveragePrecisions:
    """Both in [0, 1]; nan where nothing is relevant."""

    map: float
    micro_ap: float


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Figures of the copies of one group, searched among everything that is not relevant.

    Attributes:
        name: Name of the edit or of the family of edits; `REAL_COPY`; or `EVERYTHING`.
        family: What the edit changes; None if there is no single family.
        copies: Number of pairs of a query and a copy.
        reported: Number of these pairs with a score of at least `threshold`.
        threshold: Least score that counts.
        median: Median score of the copies.
        lowest: Lowest score of the copies.
        strict: Figures with other moments of the same recording counted as wrong.
        neutral: Figures with other moments of the same recording left out.
        recall: Share of the scored copies that the first stage selects; None without stages.
        times: Errors in time; None if segments are not known.
        boxes: Overlaps of boxes; None if none are known.
    """

    name: str
    family: str | None
    copies: int
    reported: int
    threshold: float
    median: float
    lowest: float
    strict: AveragePrecisions
    neutral: AveragePrecisions
    recall: float | None = None
    times: TimeErrors | None = None
    boxes: BoxOverlaps | None = None


@dataclass(frozen=True, slots=True)
class UnrelatedFigures:
    """Scores of pairs that show nothing in common.

    Attributes:
        which: ``"other scenes"``; ``"same scene"``: in front of the same background; ``"other moments"``: of the same
            recording.
        pairs: Number of pairs.
        highest: Highest score.
        highest_pair: Names of the query and the video with this score.
        above: Number of pairs with a score of at least `threshold`.
        threshold: Least score that counts.
    """

    which: str
    pairs: int
    highest: float
    highest_pair: tuple[str, str]
    above: int
    threshold: float


@dataclass(frozen=True, slots=True)
class CopyFigures:
    """Figures of one system.

    Attributes:
        system: Name of the system.
        everything: Figures of all copies, including real ones.
        families: Figures of the families of edits.
        edits: Figures of every edit, and of the real copies.
        unrelated: Figures of pairs that show nothing in common.
        costs: Costs of the index and the searches; None for a system without an index.
    """

    system: str
    everything: GroupFigures
    families: tuple[GroupFigures, ...]
    edits: tuple[GroupFigures, ...]
    unrelated: tuple[UnrelatedFigures, ...]
    costs: SearchCosts | None = None


def relevance_of(material: CopyMaterial) -> NDArray[np.int64]:
    """[Q, G]: 1 relevant, -1 another moment of the same recording, 0 anything else."""
    table = np.zeros((len(material.queries), len(material.gallery)), dtype=np.int64)
    for row, query in enumerate(material.queries):
        for column, video in enumerate(material.gallery):
            if video.family == query.recording.family:
                # A real copy is a copy of the whole recording.
                table[row, column] = 1 if video.source is None or video.source == query else -1
    return table


def summarize_copies(
    system: str, pair_scores: PairScores, material: CopyMaterial, *, threshold: float = THRESHOLD
) -> CopyFigures:
    """Figures of a system from its scores of all pairs."""
    truth = relevance_of(material)
    edits = np.array([video.edit for video in material.gallery])
    families = np.array([video.edit_family or "" for video in material.gallery])
    placed = place_segments(pair_scores, material) if pair_scores.segments is not None else []

    def group(name: str, family: str | None = None) -> GroupFigures:
        columns = (edits == name) | (families == name) | np.array(name == EVERYTHING)
        places = [place for place in placed if name in (place.edit, place.edit_family, EVERYTHING)]
        copies = (truth > 0) & columns
        scores = pair_scores.scores[copies]
        recall = None
        if pair_scores.kept is not None:
            scored = copies & (pair_scores.scores > 0)
            recall = float(pair_scores.kept[scored].mean()) if scored.any() else float("nan")
        return GroupFigures(
            name=name,
            family=family,
            copies=int(copies.sum()),
            reported=int((scores >= threshold).sum()),
            threshold=threshold,
            median=float(np.median(scores)),
            lowest=float(scores.min()),
            strict=_precision(pair_scores.scores, truth, copies | (truth <= 0)),
            neutral=_precision(pair_scores.scores, truth, copies | (truth == 0)),
            recall=recall,
            times=summarize_times(places),
            boxes=summarize_boxes(places),
        )

    scenes = np.array(
        [[video.scene == query.recording.scene for video in material.gallery] for query in material.queries]
    )
    kinds = {
        "other scenes": (truth == 0) & ~scenes,
        "same scene": (truth == 0) & scenes,
        "other moments": truth < 0,
    }
    result = []
    for which, pairs in kinds.items():
        if pairs.any():
            row, column = np.unravel_index(
                np.argmax(np.where(pairs, pair_scores.scores, -1.0)), pair_scores.scores.shape
            )
            names = (material.queries[row].name, material.gallery[column].path.name)
            above = int((pair_scores.scores[pairs] >= threshold).sum())
            highest = float(pair_scores.scores[row, column])
            result.append(UnrelatedFigures(which, int(pairs.sum()), highest, names, above, threshold))
    return CopyFigures(
        system=system,
        everything=group(EVERYTHING),
        families=tuple(group(name, name) for name in FAMILIES if name in families),
        edits=(
            *(group(name, edit.family) for name, edit in EDITS.items() if name in edits),
            *(group(name, SOUND) for name in (*SOUND_EDITS, BOTH_KEPT) if name in edits),
            *(group(name) for name in (REAL_COPY,) if name in edits),
        ),
        unrelated=tuple(result),
        costs=pair_scores.costs,
    )


def _precision(scores: Scores, truth: NDArray[np.int64], valid: NDArray[np.bool_]) -> AveragePrecisions:
    """Average precision as :mod:`vidkin.metric.measures` defines it: equal scores rank in the order of the columns."""
    relevant = truth > 0
    lists = [
        value
        for row in range(len(scores))
        if not math.isnan(value := _average_precision(scores[row], relevant[row], valid[row]))
    ]
    return AveragePrecisions(
        map=statistics.fmean(lists) if lists else float("nan"),
        micro_ap=_average_precision(scores.ravel(), relevant.ravel(), valid.ravel()),
    )


def _average_precision(scores: Scores, relevant: NDArray[np.bool_], valid: NDArray[np.bool_]) -> float:
    """Mean precision at the relevant entries of one list; nan if there is none."""
    ranked = relevant[valid][np.argsort(-scores[valid], kind="stable")]
    hits = np.flatnonzero(ranked)
    return float((np.arange(1, len(hits) + 1) / (hits + 1)).mean()) if len(hits) else float("nan")


Box = tuple[float, float, float, float]

# The error in seconds of a stretch that was not found.
NOT_FOUND = 30.0


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """A stretch that a copy shows, and the matching segment.

    Attributes:
        edit: How the copy was edited.
        edit_family: What the edit changes.
        truth: The stretch.
        segment: The matching segment that overlaps it most in both videos; None if none does.
    """

    edit: str
    edit_family: str
    truth: EditedSegment
    segment: Segment | None


@dataclass(frozen=True, slots=True)
class TimeErrors:
    """Errors of start and end in the copy, in seconds; a missed stretch counts as `NOT_FOUND`.

    Attributes:
        stretches: Number of stretches.
        missed: Number of these that were missed.
        start_median: Median error of the start.
        end_median: Median error of the end.
        start_90th: 90th percentile of the errors of the start.
        end_90th: 90th percentile of the errors of the end.
    """

    stretches: int
    missed: int
    start_median: float
    end_median: float
    start_90th: float
    end_90th: float


@dataclass(frozen=True, slots=True)
class BoxOverlaps:
    """Mean intersection over union of detected and true boxes, over detected stretches.

    Attributes:
        stretches: Number of detected stretches.
        query: Mean overlap of the boxes in the query.
        copy: Mean overlap of the boxes in the copy.
        both: Mean product of both overlaps of a stretch.
    """

    stretches: int
    query: float
    copy: float
    both: float


def place_segments(scores: PairScores, material: CopyMaterial) -> list[PlacedSegment]:
    """Every stretch of every copy with the segment that its query found."""
    assert scores.segments is not None
    row_of = {query.name: row for row, query in enumerate(material.queries)}
    placed = []
    for column, video in enumerate(material.gallery):
        if video.source is None or video.edit_family is None:
            continue
        segments = scores.segments[row_of[video.source.name]][column]
        for truth in video.segments:
            # The segment that overlaps most in both videos; among equals the first, which is the best.
            best, most = None, 0.0
            for segment in segments:
                in_copy = _overlap(segment.target_start, segment.target_end, truth.edited_start, truth.edited_end)
                in_query = _overlap(segment.query_start, segment.query_end, truth.source_start, truth.source_end)
                if in_copy * in_query > most:
                    best, most = segment, in_copy * in_query
            placed.append(PlacedSegment(video.edit, video.edit_family, truth, best))
    return placed


def summarize_times(placed: Sequence[PlacedSegment]) -> TimeErrors | None:
    """Summarize the errors of these stretches; None if there are none."""
    if not placed:
        return None
    starts, ends = [], []
    for place in placed:
        segment, truth = place.segment, place.truth
        starts.append(abs(segment.target_start - truth.edited_start) if segment else NOT_FOUND)
        ends.append(abs(segment.target_end - truth.edited_end) if segment else NOT_FOUND)
    return TimeErrors(
        stretches=len(placed),
        missed=sum(place.segment is None for place in placed),
        start_median=statistics.median(starts),
        end_median=statistics.median(ends),
        start_90th=float(np.quantile(starts, 0.9)),
        end_90th=float(np.quantile(ends, 0.9)),
    )


def summarize_boxes(placed: Iterable[PlacedSegment]) -> BoxOverlaps | None:
    """Summarize the overlaps of geometric and inset edits; None if none was detected."""
    pairs = [
        (
            box_overlap(place.segment.query_box, place.truth.source_box),
            box_overlap(place.segment.target_box, place.truth.edited_box),
        )
        for place in placed
        if place.segment is not None and place.edit_family in ("geometry", "inset")
    ]
    if not pairs:
        return None
    query, copy = (statistics.fmean(values) for values in zip(*pairs, strict=True))
    return BoxOverlaps(len(pairs), query, copy, statistics.fmean(a * b for a, b in pairs))


def box_overlap(first: Box, second: Box) -> float:
    """Intersection over union of two boxes (left, top, right, bottom); 0 if both are empty."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(0.0, width) * max(0.0, height)
    union = _area(first) + _area(second) - shared
    return shared / union if union > 0 else 0.0


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _overlap(start: float, end: float, other_start: float, other_end: float) -> float:
    shared = min(end, other_end) - max(start, other_start)
    union = max(end, other_end) - min(start, other_start)
    return max(0.0, shared) / union if union > 0 else 0.0


# Scores of every query against the whole gallery, by `vidkin search` and by peers of other packages.


Scores = NDArray[np.float64]

# Videos that the first stage hands to the second, as `vidkin search` does.
CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class PairScores:
    """The results of a system for every pair of a query and a gallery video.

    Attributes:
        scores: [Q, G], higher is more similar; 0 if the video is not reported.
        segments: [Q][G] matching segments, best first; None for a system that gives none.
        kept: [Q, G] whether the video is reported when the first stage selects `CANDIDATES` videos; None for a
            system without stages.
        costs: Costs of the index and the searches; None for a system without an index.
        sound: [Q, G] what the sound says; None where no query has any.
    """

    scores: Scores
    segments: list[list[tuple[Segment, ...]]] | None = None
    kept: NDArray[np.bool_] | None = None
    costs: SearchCosts | None = None
    sound: Scores | None = None

    def only(self, columns: NDArray[np.bool_]) -> PairScores:
        """The results for some videos of the gallery."""
        segments = self.segments
        if segments is not None:
            segments = [[found for found, is_one in zip(row, columns, strict=True) if is_one] for row in segments]
        kept = None if self.kept is None else self.kept[:, columns]
        return PairScores(self.scores[:, columns], segments, kept, self.costs)


@dataclass(frozen=True, slots=True)
class SearchCosts:
    """Costs of indexing and searching.

    Attributes:
        index_seconds: Seconds to index the gallery.
        bytes_per_hour: Size of the index per hour of video, in bytes.
        search_seconds: Median seconds per query compared with every video.
        identical: The lowest score of a video searched with itself.
    """

    index_seconds: float
    bytes_per_hour: float
    search_seconds: float
    identical: float


def search_scores(
    material: CopyMaterial,
    folder: Path,
    *,
    extractor: str | None = None,
    weights: Path | None = None,
    whitening: Path | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> PairScores:
    """Index the gallery and search it with every query, every video being a candidate.

    Args:
        material: Queries and gallery.
        folder: Folder of the index; an existing one is replaced.
        extractor: Name of the extractor; None takes the default.
        weights: Weights of the extractor.
        whitening: Whitening of the extractor.
        on_progress: Callback that receives the videos indexed and queries searched, the total number of both, and the
            file's name.

    Raises:
        MediaError: A video of the gallery cannot be indexed.
    """
    queries, gallery = material.queries, material.gallery
    steps = len(gallery) + len(queries)

    def report(done: int, path: str | Path | None) -> None:
        if on_progress is not None:
            on_progress(done, steps, "" if path is None else Path(path).name)

    shutil.rmtree(folder, ignore_errors=True)
    with Index.open(folder, extractor=extractor, weights=weights, whitening=whitening, create=True) as index:
        started = time.perf_counter()
        ingested = index.add([video.path for video in gallery], on_progress=lambda step: report(step.done, step.path))
        if ingested.broken:
            raise MediaError(ingested.broken[0].path, ingested.broken[0].cause)
        index_seconds = time.perf_counter() - started
        column = {os.path.abspath(video.path): number for number, video in enumerate(gallery)}
        shape = (len(queries), len(gallery))
        scores, kept = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        segments: list[list[tuple[Segment, ...]]] = [[() for _ in gallery] for _ in queries]
        times = []
        sound = np.zeros(shape) if any(query.heard is not None for query in queries) else None
        for row, query in enumerate(queries):
            started = time.perf_counter()
            path = query.heard or query.path
            by: By = "picture" if query.heard is None else "either"
            for match in index.search(path, limit=len(gallery), candidates=len(gallery), by=by):
                scores[row, column[match.path]] = match.score if match.picture is None else match.picture
                segments[row][column[match.path]] = match.segments
                if sound is not None:
                    sound[row, column[match.path]] = match.sound or 0.0
            times.append(time.perf_counter() - started)
            for match in index.search(query.path, limit=CANDIDATES, candidates=CANDIDATES):
                kept[row, column[match.path]] = True
            report(len(gallery) + row + 1, query.path)
        itself = [
            match.score
            for video in gallery
            if video.edit == "reencode"
            for match in index.search(video.path, limit=5, mirrored=False)
            if match.path == os.path.abspath(video.path)
        ]
        info = index.info()
    costs = SearchCosts(
        index_seconds=index_seconds,
        bytes_per_hour=3600 * info.bytes / info.seconds,
        search_seconds=statistics.median(times),
        identical=min(itself, default=float("nan")),
    )
    return PairScores(scores, segments, kept, costs, sound)


def summarize_witnesses(
    pair_scores: PairScores, material: CopyMaterial, *, threshold: float = THRESHOLD
) -> tuple[CopyFigures, ...]:
    """Figures of the queries with sound, by each rule of :func:`vidkin.index.query.sound.score_by`: picture, sound,
    either and both; none where the sound was not asked."""
    rows = [row for row, query in enumerate(material.queries) if query.heard is not None]
    if pair_scores.sound is None or not rows:
        return ()
    queries = tuple(material.queries[row] for row in rows)
    families = {query.recording.family for query in queries}
    # Copies of the other queries are copies of nothing here.
    columns = [
        column
        for column, video in enumerate(material.gallery)
        if video.family in families or (video.source is None and video.edit != REAL_COPY)
    ]
    heard = CopyMaterial(queries, tuple(material.gallery[column] for column in columns))
    picture, sound = (scores[np.ix_(rows, columns)] for scores in (pair_scores.scores, pair_scores.sound))
    by_rule = {
        "picture": picture, "sound": sound, "either": np.maximum(picture, sound), "both": np.minimum(picture, sound)
    }  # fmt: skip
    return tuple(
        summarize_copies(rule, PairScores(scores), heard, threshold=threshold) for rule, scores in by_rule.items()
    )


@dataclass(frozen=True, kw_only=True)
class CopyPeer:
    """Another system that is measured on the same copies; see `vidkin_research.copies.peers`.

    Attributes:
        name: Name of the system in tables.
        measure: Scores of every query against the whole gallery.
        missing: Why it cannot run here, as a note of the report; empty if it can.
    """

    name: str
    measure: Callable[[CopyMaterial], PairScores]
    missing: str = ""

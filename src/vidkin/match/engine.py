"""Find which videos of a collection match a query, where and how surely: shortlist, comparison, verifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import check_at_least, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.match.compare import compare
from vidkin.match.frame_map import Vectors, levels
from vidkin.match.lines import AlignedLine
from vidkin.match.measure import Measured, Sequenced
from vidkin.match.pose import PLAIN, WHOLE, Box, Pose
from vidkin.match.shortlist import Gallery, shortlist
from vidkin.match.verify import Verifier

__all__ = ["Edge", "EdgeSegment", "Effort", "Engine", "MatchQuery", "View", "compare_candidates", "sequence"]

Effort = Literal["stored", "reread"]


@dataclass(frozen=True, slots=True)
class EdgeSegment:
    """A stretch of a query and the stretch of a target that shows it.

    Attributes:
        query_start, query_end: Seconds in the query.
        target_start, target_end: Seconds in the target.
        score: Mean calibrated similarity of the frames, in [0, 1].
        speed: Seconds of target per second of query; negative where the target runs backwards.
        pose: The pose that brings the query into the orientation of the target.
        query_box, target_box: The parts of the frames that match.
    """

    query_start: float
    query_end: float
    target_start: float
    target_end: float
    score: float
    speed: float
    pose: Pose
    query_box: Box = WHOLE
    target_box: Box = WHOLE


@dataclass(frozen=True, slots=True)
class Edge:
    """A match of two videos.

    Attributes:
        a: Position of the query.
        b: Position of the video in the gallery.
        pose: The pose of the query in which they match.
        segments: Where they match, strongest first.
        score: Probability of shared footage: .7 and more is a copy, below .2 nothing in common.
    """

    a: int
    b: int
    pose: Pose
    segments: tuple[EdgeSegment, ...]
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A query's frames in another pose, or a part of them.

    Attributes:
        pose: The pose that the frames were given.
        frames: The vectors of these frames; their box is in the query's own orientation.
    """

    pose: Pose
    frames: Sequenced


@dataclass(frozen=True, slots=True, eq=False)
class MatchQuery:
    """A video to find.

    Attributes:
        frames: Its vectors, as an index stores them.
        parts: The vectors of boxes in its frames that may hold a video of their own.
        reread: Function that reads the file again and returns other views of it; None where there is no file.
    """

    frames: Sequenced
    parts: Sequence[Sequenced] = ()
    reread: Callable[[], Sequence[View]] | None = None


@check_arguments
def sequence(
    vectors: Vectors,
    times: Sequence[float] | NDArray[np.float64],
    cohort: Vectors,
    information: NDArray[np.float32] | None = None,
    *,
    box: Box = WHOLE,
) -> Sequenced:
    """Frames for a comparison.

    Args:
        vectors: [T, D] unit vectors.
        times: [T] seconds, increasing.
        cohort: [N, D] vectors of unrelated frames by the same extractor.
        information: [T] in [0, 1]; None weighs all frames alike.
        box: The part of each frame that the vectors describe.

    Raises:
        InvalidArgumentError: The cohort is empty.
    """
    if not len(cohort):
        raise InvalidArgumentError("cohort must have at least one vector, got none")
    exact = np.asarray(vectors, np.float32)
    ones = np.ones(len(exact), np.float32)
    own = levels(exact, cohort) if len(exact) else ones
    return Sequenced(exact, np.asarray(times, np.float64), own, ones if information is None else information, box)


@check_constructor
class Engine:
    """Finds matches.

    Args:
        verifier: Turns the numbers of a comparison into a score.
        candidates: Videos that each view of a query is compared with, at most.
    """

    def __init__(self, verifier: Verifier, *, candidates: int = 100) -> None:
        check_at_least(1, candidates=candidates)
        self._verifier, self._candidates = verifier, candidates

    def match(self, queries: Iterable[MatchQuery], gallery: Gallery, *, effort: Effort = "stored") -> Iterator[Edge]:
        """Matches of each query in turn, best first.

        Args:
            queries: Videos to find.
            gallery: Where to look.
            effort: ``"stored"`` compares the stored vectors; ``"reread"`` also the views that a query's file gives.
        """
        check_choice("effort", effort, get_args(Effort))
        for number, query in enumerate(queries):
            best: dict[int, tuple[float, Measured, Sequenced, Sequenced]] = {}
            for view in _views(query, effort):
                for position, measured in compare_candidates(view, gallery, self._candidates):
                    score, video = self._verifier.score(measured), gallery.video_of(position)
                    if video not in best or score > best[video][0]:
                        best[video] = score, measured, view.frames, gallery.sequences[position]
            for video, (score, measured, one, other) in sorted(best.items(), key=lambda item: (-item[1][0], item[0])):
                yield _edge(number, video, score, measured, one, other)


@check_arguments
def compare_candidates(view: View, gallery: Gallery, k: int) -> Iterator[tuple[int, Measured]]:
    """Comparisons of a view of a query with at most ``k`` sequences of a gallery: (position, comparison)."""
    if not len(view.frames):
        return
    for candidate in shortlist(gallery, view.frames, k):
        target = gallery.sequences[candidate.position]
        yield candidate.position, compare(view.frames, target, view.pose, candidate.windows)


def _views(query: MatchQuery, effort: Effort) -> Iterator[View]:
    for frames in (query.frames, *query.parts):
        yield View(PLAIN, frames)
    if effort == "reread" and query.reread is not None:
        yield from query.reread()


def _edge(number: int, video: int, score: float, measured: Measured, query: Sequenced, target: Sequenced) -> Edge:
    segments = tuple(
        _segment(line, similarity, measured, query, target)
        for line, similarity in zip(measured.lines, measured.similarities, strict=True)
    )
    return Edge(number, video, measured.pose, segments, score)


def _segment(
    line: AlignedLine, similarity: float, measured: Measured, query: Sequenced, target: Sequenced
) -> EdgeSegment:
    """A line as times; a frame stays until the next one."""
    inside = line.columns >= 0
    rows, columns = line.rows[inside], line.columns[inside]
    first, last = int(columns.min()), int(columns.max())
    return EdgeSegment(
        query_start=float(query.times[rows[0]]),
        query_end=float(query.times[rows[-1]]) + query.period,
        target_start=float(target.times[first]),
        target_end=float(target.times[last]) + target.period,
        score=float(np.clip(similarity, 0.0, 1.0)),
        speed=line.speed,
        pose=measured.pose,
        query_box=query.box,
        target_box=target.box,
    )

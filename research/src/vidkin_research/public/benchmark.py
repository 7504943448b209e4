"""A benchmark of video retrieval: queries, database and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vidkin.errors import InvalidArgumentError

__all__ = ["RetrievalBenchmark", "RetrievalTask", "SegmentBox", "VideoPair"]

SegmentBox = tuple[float, float, float, float]
"""Query start, reference start, query end, reference end, in seconds."""

VideoPair = tuple[str, str]
"""Ids of the query and of the reference."""


@dataclass(frozen=True, slots=True)
class RetrievalTask:
    """One definition of relevance.

    Attributes:
        name: Name of the figure that ranks the database for each query (mAP): ``DSVR``.
        detection: Name of the figure over a single list of all pairs (micro-AP): ``DSVD``.
        positives: Relevant videos by query, never the query itself.
        candidates: Videos to rank by query; None: the whole database.
    """

    name: str
    detection: str
    positives: Mapping[str, frozenset[str]]
    candidates: Mapping[str, frozenset[str]] | None = None


@dataclass(frozen=True, slots=True)
class RetrievalBenchmark:
    """The annotations of a benchmark, with videos named by their ids.

    Attributes:
        name: Name as in :func:`open_benchmark`.
        queries: Sorted ids of the queries.
        database: Sorted ids of the videos to search; a query is never compared with itself.
        tasks: The tasks, at least one unless the benchmark is only about segments.
        segments: Stretches where the reference shows the query, by pair; empty if the benchmark does not provide them.
        groups: Groups whose means are reported as well (the events of EVVE), by query; empty if there are none.
        has_trapezoids: Whether AP is the area below straight lines between the points of the curve, as in EVVE's
            program, rather than a sum of steps.

    Raises:
        InvalidArgumentError: There are no queries or no database.
    """

    name: str
    queries: tuple[str, ...]
    database: tuple[str, ...]
    tasks: tuple[RetrievalTask, ...] = ()
    segments: Mapping[VideoPair, tuple[SegmentBox, ...]] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    has_trapezoids: bool = False

    def __post_init__(self) -> None:
        if not self.queries or not self.database:
            raise InvalidArgumentError(
                f"benchmark {self.name} must have queries and a database, got {len(self.queries)} and "
                f"{len(self.database)}; the annotation files are incomplete"
            )

    @property
    def videos(self) -> tuple[str, ...]:
        """Ids of all videos, sorted."""
        return tuple(sorted({*self.queries, *self.database}))

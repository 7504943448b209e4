"""A video retrieval benchmark: queries, database and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vidkin.errors import InvalidArgumentError

__all__ = ["RetrievalBenchmark", "RetrievalTask", "SegmentBox", "VideoPair"]

SegmentBox = tuple[float, float, float, float]
"""Query start, reference start, query end, reference end, in seconds."""

VideoPair = tuple[str, str]
"""IDs of the query and the reference."""


@dataclass(frozen=True, slots=True)
class RetrievalTask:
    """One definition of relevance.

    Attributes:
        name: Name of the metric that ranks the database for each query (mAP), for example ``DSVR``.
        detection: Name of the metric over a single list of all pairs (micro-AP), for example ``DSVD``.
        positives: Relevant videos by query, never the query itself.
        candidates: Videos to rank by query; None for the whole database.
    """

    name: str
    detection: str
    positives: Mapping[str, frozenset[str]]
    candidates: Mapping[str, frozenset[str]] | None = None


@dataclass(frozen=True, slots=True)
class RetrievalBenchmark:
    """The annotations of a benchmark, with videos identified by ID.

    Attributes:
        name: Name as in :func:`open_benchmark`.
        queries: Sorted IDs of the queries.
        database: Sorted IDs of the videos to search; a query is never compared with itself.
        tasks: The tasks; empty only if the benchmark evaluates segments alone.
        segments: Segments that the query and the reference share, by pair; empty if the benchmark has none.
        groups: Groups whose means are also reported (the events of EVVE), by query; empty if there are none.
        has_trapezoids: Whether AP is the area under linearly interpolated precision and recall, as in EVVE's evaluation
            program, instead of a sum of steps.

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
                f"benchmark {self.name} must have queries and a database, got {len(self.queries)} queries and "
                f"{len(self.database)} videos; the annotation files are incomplete"
            )

    @property
    def videos(self) -> tuple[str, ...]:
        """IDs of all videos, sorted."""
        return tuple(sorted({*self.queries, *self.database}))

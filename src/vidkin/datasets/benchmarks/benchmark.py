"""A benchmark of video retrieval: queries, database and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vidkin.errors import InvalidArgumentError

__all__ = ["RetrievalBenchmark", "RetrievalTask", "SegmentBox", "VideoPair"]

SegmentBox = tuple[float, float, float, float]
"""Query start, reference start, query end, reference end: seconds."""

VideoPair = tuple[str, str]
"""Ids of the query and of the reference."""


@dataclass(frozen=True, slots=True)
class RetrievalTask:
    """One definition of what is relevant to a query.

    Attributes:
        name: Of the figure that ranks the database for each query (mAP): ``DSVR``.
        detection: Of the figure of the one list of all pairs (micro-AP): ``DSVD``.
        positives: Query -> relevant videos, never the query itself.
        candidates: Query -> videos that are ranked for it; None: the whole database.
    """

    name: str
    detection: str
    positives: Mapping[str, frozenset[str]]
    candidates: Mapping[str, frozenset[str]] | None = None


@dataclass(frozen=True, slots=True)
class RetrievalBenchmark:
    """The annotations of a benchmark, with videos named by their ids.

    Attributes:
        name: As of :func:`open_benchmark`.
        queries: Ids, sorted.
        database: Ids of what is searched, sorted; a query is never searched in itself.
        tasks: At least one, unless the benchmark is about segments alone.
        segments: Pair -> where the reference shows the query; empty where the benchmark does not say.
        groups: Query -> group whose mean is reported as well (the events of EVVE); empty without.
        has_trapezoids: AP is the area below straight lines between the points of the curve, as EVVE's own program has
            it, and not the sum of steps.

    Raises:
        InvalidArgumentError: It has no queries or no database.
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
                f"{len(self.database)}; the annotation files are not complete"
            )

    @property
    def videos(self) -> tuple[str, ...]:
        """Ids of all videos, sorted."""
        return tuple(sorted({*self.queries, *self.database}))

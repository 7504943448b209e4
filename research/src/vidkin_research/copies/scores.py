"""Scores of every query against the whole gallery, from `vidkin search` and its peers."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.index import Index
from vidkin.index.query.sound import By
from vidkin.similarity import Segment
from vidkin_research.copies.material import CopyMaterial

Scores = NDArray[np.float64]


# Number of videos that the first stage passes to the second, as in `vidkin search`.
CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class PairScores:
    """A system's results for every pair of a query and a gallery video.

    Attributes:
        scores: [Q, G], higher is more similar; 0 if the video is not reported.
        segments: [Q][G] matching segments, best first; None for a system without segments.
        kept: [Q, G], whether the video is reported when the first stage selects `CANDIDATES` videos; None for a
            system without stages.
        costs: Costs of the index and the searches; None for a system without an index.
        sound: [Q, G] sound scores; None if no query has sound.
    """

    scores: Scores
    segments: list[list[tuple[Segment, ...]]] | None = None
    kept: NDArray[np.bool_] | None = None
    costs: SearchCosts | None = None
    sound: Scores | None = None

    def only(self, columns: NDArray[np.bool_]) -> PairScores:
        """Return the results for these gallery videos only."""
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
        bytes_per_hour: Index size per hour of video, in bytes.
        search_seconds: Median seconds to compare a query with every video.
        identical: Lowest score of a video against itself.
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
    """Index the gallery and search it with every query, with every video as a candidate.

    Args:
        material: Queries and gallery.
        folder: Folder of the index; an existing index is replaced.
        extractor: Name of the extractor; None for the default.
        weights: Weights of the extractor.
        whitening: Whitening of the extractor.
        on_progress: Callback that receives the number of videos indexed and queries searched so far, their total, and
            the file name.

    Raises:
        MediaError: A gallery video cannot be indexed.
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
            for match in index.search(video.path, limit=5)
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


@dataclass(frozen=True, kw_only=True)
class CopyPeer:
    """Another system measured on the same copies; see `vidkin_research.copies.peers`.

    Attributes:
        name: Name of the system in tables.
        measure: Function that scores every query against the whole gallery.
        missing: Why it cannot run here, for the notes of the report; empty if it can.
    """

    name: str
    measure: Callable[[CopyMaterial], PairScores]
    missing: str = ""

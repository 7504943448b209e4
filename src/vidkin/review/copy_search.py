"""Scores of every query against the whole gallery, by `vidkin search` and by peers of other packages."""

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

from vidkin._base.parts import research_hint
from vidkin._base.registry import Registry
from vidkin.errors import MediaError, MissingPartError
from vidkin.index import Index
from vidkin.review.copy_gallery import CopyMaterial
from vidkin.similarity import Segment

__all__ = [
    "CANDIDATES",
    "CopyPeer",
    "PairScores",
    "SearchCosts",
    "copy_peers",
    "search_scores",
]

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
    """

    scores: Scores
    segments: list[list[tuple[Segment, ...]]] | None = None
    kept: NDArray[np.bool_] | None = None
    costs: SearchCosts | None = None


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
        ingested = index.add(
            [video.path for video in gallery], on_progress=lambda step: report(step.done, step.path)
        )
        if ingested.broken:
            raise MediaError(ingested.broken[0].path, ingested.broken[0].cause)
        index_seconds = time.perf_counter() - started
        column = {os.path.abspath(video.path): number for number, video in enumerate(gallery)}
        shape = (len(queries), len(gallery))
        scores, kept = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        segments: list[list[tuple[Segment, ...]]] = [[() for _ in gallery] for _ in queries]
        times = []
        for row, query in enumerate(queries):
            started = time.perf_counter()
            for match in index.search(query.path, limit=len(gallery), candidates=len(gallery)):
                scores[row, column[match.path]] = match.score
                segments[row][column[match.path]] = match.segments
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
    return PairScores(scores, segments, kept, costs)


@dataclass(frozen=True, kw_only=True)
class CopyPeer:
    """Another system that is measured on the same copies; packages list theirs as entry points ``vidkin.copy_peers``.

    Attributes:
        name: Name of the system in tables.
        measure: Scores of every query against the whole gallery.
        missing: Why it cannot run here, as a note of the report; empty if it can.
    """

    name: str
    measure: Callable[[CopyMaterial], PairScores]
    missing: str = ""


_PEERS: Registry[CopyPeer] = Registry("peer", {}, group="vidkin.copy_peers")


def copy_peers() -> tuple[CopyPeer, ...]:
    """The peers of installed packages, in the order of their names.

    Raises:
        MissingPartError: No package brings any.
    """
    peers = tuple(peer for name in _PEERS.usages() if (peer := _PEERS.find(name)) is not None)
    if not peers:
        raise MissingPartError(research_hint("peers") or "no installed package brings peers")
    return peers

"""Scores of every query against the whole gallery: by `vidkin search`, and by two public kinds of frame hashes."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.errors import MediaError, MissingPartError
from vidkin.experiments.copies.gallery import CopyMaterial
from vidkin.index import Index, sampling_rate
from vidkin.media import probe, read_frames
from vidkin.similarity import Segment

__all__ = [
    "CANDIDATES",
    "PairScores",
    "SearchCosts",
    "has_vpdq",
    "phash_scores",
    "search_scores",
    "vpdq_scores",
]

Scores = NDArray[np.float64]
Bits = NDArray[np.float64]

# Videos that the first stage hands to the second, as `vidkin search` does.
CANDIDATES = 100

_SHORT_SIDE = 240
_HASH_BITS = 64
# vPDQ's own rules: hashes of this quality count, and frames this many bits apart are the same.
_PDQ_QUALITY = 50
_PDQ_DISTANCE = 31


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


def phash_scores(material: CopyMaterial) -> PairScores:
    """[Q, G]: mean over a video's frames of the nearest frame of the other (1 - 2 * Hamming / 64), the larger
    direction. One pHash a second, more in short videos, as vidkin samples them.

    Raises:
        MissingPartError: The package imagehash is not installed.
    """
    try:
        import imagehash
    except ImportError as error:
        raise MissingPartError(
            "pHash needs the package imagehash; run pip install 'vidkin[bench]'"
        ) from error

    def hashes(path: Path) -> Bits:
        frames = read_frames(path, rate=sampling_rate(probe(path).duration), short_side=_SHORT_SIDE)
        bits = [imagehash.phash(Image.fromarray(image)).hash.ravel() for image in frames.images]
        return 2 * np.stack(bits).astype(np.float64) - 1

    def score(query: Bits, target: Bits) -> float:
        alike = query @ target.T / _HASH_BITS
        return float(max(alike.max(1).mean(), alike.max(0).mean()))

    return _score_all(material, hashes, score)


def vpdq_scores(material: CopyMaterial) -> PairScores:
    """[Q, G]: share of frames with a PDQ distance of at most 31, the larger direction: vPDQ's own rule."""
    import vpdq

    def hashes(path: Path) -> Bits:
        features = vpdq.computeHash(str(path), seconds_per_hash=1)
        good = [feature for feature in features if feature.quality >= _PDQ_QUALITY] or features
        return np.stack(
            [np.unpackbits(np.frombuffer(bytes.fromhex(feature.hex), np.uint8)) for feature in good]
        ).astype(np.float64)

    def score(query: Bits, target: Bits) -> float:
        near = (query @ (1 - target.T) + (1 - query) @ target.T) <= _PDQ_DISTANCE
        return float(max(near.any(1).mean(), near.any(0).mean()))

    return _score_all(material, hashes, score)


def has_vpdq() -> bool:
    """Whether the package vpdq, which is built with FFmpeg's development files, is installed."""
    return find_spec("vpdq") is not None


def _score_all(
    material: CopyMaterial, hashes: Callable[[Path], Bits], score: Callable[[Bits, Bits], float]
) -> PairScores:
    gallery: Sequence[Bits] = [hashes(video.path) for video in material.gallery]
    scores = np.zeros((len(material.queries), len(gallery)))
    for row, query in enumerate(material.queries):
        bits = hashes(query.path)
        scores[row] = [score(bits, target) for target in gallery]
    return PairScores(scores)

"""Inputs and levels of all pairs of a query and a video, for training and evaluating the verifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.match import NUMBERS, Sequenced, compare_views
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.copies.recordings import QueryClip
from vidkin_research.frame_encoder.raw_vectors import mean_of_best

__all__ = [
    "CANDIDATES",
    "COPY",
    "LEAST_ALIKE",
    "LEFT_OUT",
    "SCENE",
    "STRANGER",
    "Pairs",
    "Stills",
    "count_false",
    "join_pairs",
    "level_of",
    "measure_pairs",
    "rank_copies",
]

COPY, SCENE, STRANGER = 2, 1, 0
"""Levels: the same footage, another moment or recording of the same location, and unrelated."""
LEFT_OUT = -1
"""Level of other recordings of a query's scene, which may or may not contain its moments."""
CANDIDATES = 250
"""Maximum number of videos that a query is compared with: those with the most similar frames."""
LEAST_ALIKE = 1e-6
"""Minimum similarity of views to compare; low, so that a verifier also learns from videos that a search skips."""
_EVIDENCE = NUMBERS.index("evidence")


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of Q queries and G videos.

    Attributes:
        numbers: [Q, G, F] float32, `NUMBERS` of each compared pair, 0 for other pairs.
        compared: [Q, G], whether the pair was compared.
        levels: [Q, G] int8, `COPY`, `SCENE`, `STRANGER` or `LEFT_OUT`.
        mean_of_best: [Q, G] mean of each query frame's best similarity, the baseline without a verifier.
    """

    numbers: NDArray[np.float32]
    compared: NDArray[np.bool_]
    levels: NDArray[np.int8]
    mean_of_best: NDArray[np.float32]

    def of_queries(self, rows: NDArray[np.intp]) -> Pairs:
        """Select the pairs of these queries."""
        return Pairs(self.numbers[rows], self.compared[rows], self.levels[rows], self.mean_of_best[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Stills:
    """Queries and videos of still images.

    Attributes:
        queries: Frames of Q queries.
        videos: Frames of G videos.
        is_copy: [Q, G], whether the video is a copy of the query; all others are unrelated.
    """

    queries: Sequence[tuple[Sequenced, ...]]
    videos: Sequence[tuple[Sequenced, ...]]
    is_copy: NDArray[np.bool_]


def join_pairs(parts: Sequence[Pairs]) -> Pairs:
    """Concatenate the queries of several measurements with one gallery."""
    return Pairs(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.compared for part in parts]),
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.mean_of_best for part in parts]),
    )


def level_of(query: QueryClip, family: str, scene: str, source: QueryClip | None) -> int:
    """Return the level of a video with this family, scene and source for a query."""
    if source is not None and source.name == query.name:
        return COPY
    if family == query.recording.family:
        # A copy of another clip shows another moment of the recording; an unedited recording shows all of it.
        return LEFT_OUT if source is None else SCENE
    return SCENE if scene == query.recording.scene else STRANGER


def measure_pairs(
    frames_of: Callable[[Path], tuple[Sequenced, ...]],
    material: CopyMaterial,
    *,
    queries_of: Callable[[Path], tuple[Sequenced, ...]] | None = None,
    stills: Stills | None = None,
    candidates: int = CANDIDATES,
    on_progress: Callable[[int, int], None] | None = None,
) -> Pairs:
    """Compare every query with the videos that have the most similar frames, in both directions: 2 Q rows.

    Args:
        frames_of: Function that returns a file's frames, and the frames of boxes in it.
        material: Queries and gallery.
        queries_of: The same function for queries, if they are sampled at a different rate.
        stills: Additional queries and videos that are unrelated to the material.
        candidates: Maximum number of videos that a query is compared with.
        on_progress: Callback that receives the number of queries compared, and the total.
    """
    queries = [(queries_of or frames_of)(query.path) for query in material.queries]
    videos = [frames_of(video.path) for video in material.gallery]
    kinds = np.array(
        [
            [level_of(query, video.family, video.scene, video.source) for video in material.gallery]
            for query in material.queries
        ],
        np.int8,
    )
    if stills is not None:
        known, kinds = kinds, np.full((len(queries) + len(stills.queries), len(videos) + len(stills.videos)), STRANGER)
        kinds[: len(queries), : len(videos)] = known
        kinds[len(queries) :, len(videos) :][stills.is_copy] = COPY
        queries, videos = [*queries, *stills.queries], [*videos, *stills.videos]
    # In a search, either of two copies may be the query, so the second half of the rows has the videos as queries.
    numbers = np.zeros((2, *kinds.shape, len(NUMBERS)), np.float32)
    compared, means = np.zeros((2, *kinds.shape), np.bool_), np.zeros(kinds.shape, np.float32)
    for row, sequences in enumerate(queries):
        means[row] = [mean_of_best(sequences[0].vectors, whole.vectors) for whole, *_ in videos]
        # Include boxes, because a video may show the query in a box while its full frames differ.
        promise = [
            max(mean_of_best(one.vectors, other.vectors) for one in sequences for other in video) for video in videos
        ]
        for column in np.argsort(-np.array(promise), kind="stable")[:candidates].tolist():
            for way, sides in enumerate(((sequences, videos[column]), (videos[column], sequences))):
                for measured, _, _ in compare_views(*sides, least_alike=LEAST_ALIKE):
                    # Keep the comparison with the most evidence among the boxes of a video.
                    most = numbers[way, row, column, _EVIDENCE] if compared[way, row, column] else -1.0
                    if measured.numbers[_EVIDENCE] > most:
                        numbers[way, row, column], compared[way, row, column] = measured.numbers, True
        if on_progress is not None:
            on_progress(row + 1, len(queries))
    return join_pairs([Pairs(numbers[way], compared[way], kinds.astype(np.int8), means) for way in (0, 1)])


def rank_copies(scores: NDArray[np.floating], levels: NDArray[np.int8]) -> dict[str, float]:
    """Compute mAP over the queries and micro-AP over all pairs; ties are ranked in video order."""
    rows = [
        _average_precision(score[level != LEFT_OUT], level[level != LEFT_OUT] == COPY)
        for score, level in zip(scores, levels, strict=True)
        if (level == COPY).any()
    ]
    known = levels != LEFT_OUT
    return {
        "map": round(float(np.mean(rows)), 4),
        "micro_ap": round(_average_precision(scores[known], levels[known] == COPY), 4),
    }


def count_false(scores: NDArray[np.floating], levels: NDArray[np.int8]) -> dict[str, int]:
    """Count unrelated videos that score at least 0.2, and other moments of a location that score at least 0.7."""
    strangers, scenes, copies = (scores[levels == level] for level in (STRANGER, SCENE, COPY))
    return {
        "strangers": len(strangers),
        "strangers at .2": int((strangers >= 0.2).sum()),
        "other moments": len(scenes),
        "other moments at .7": int((scenes >= 0.7).sum()),
        "copies": len(copies),
        "copies at .2": int((copies >= 0.2).sum()),
        "copies at .7": int((copies >= 0.7).sum()),
    }


def _average_precision(scores: NDArray[np.floating], relevant: NDArray[np.bool_]) -> float:
    hits = np.flatnonzero(relevant[np.argsort(-scores, kind="stable")])
    return float((np.arange(1, len(hits) + 1) / (hits + 1)).mean())

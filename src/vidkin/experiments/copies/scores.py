"""Figures of copy retrieval: mAP and micro-AP by protocol and edit, score distributions, errors in time."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.experiments.copies.material import CopyMaterial
from vidkin.experiments.copies.systems import Scores, SearchScores
from vidkin.media import EDITS
from vidkin.metric.measures import mean_average_precision, micro_average_precision

__all__ = ["SIDE_EDITS", "localization_errors", "relevance_of", "summarize_copies", "summarize_search"]

SIDE_EDITS = ("picture_in_picture", "mirror")
"""Edits that are left out of the main figures; the table of edits has them."""

# Copies that share less than this with the query, in seconds, show another moment.
_SHARED = 0.5
_NOT_FOUND = 30.0


def relevance_of(material: CopyMaterial) -> NDArray[np.int64]:
    """[Q, G]: 1 relevant, -1 another moment of the same recording, 0 anything else."""
    table = np.zeros((len(material.queries), len(material.gallery)), dtype=np.int64)
    for row, query in enumerate(material.queries):
        for column, video in enumerate(material.gallery):
            if video.family != query.family:
                continue
            if video.source is None or video.segment is None:
                table[row, column] = 1  # a real copy: of the whole family
            else:
                shared = min(query.end, video.segment[1]) - max(query.start, video.segment[0])
                table[row, column] = 1 if shared > _SHARED else -1
    return table


def summarize_copies(scores: Scores, truth: NDArray[np.int64], material: CopyMaterial) -> dict[str, Any]:
    """Figures of one system as JSON values.

    Args:
        scores: [Q, G], higher is more alike.
        truth: From `relevance_of`.
        material: The queries and the gallery.

    Returns:
        ``strict`` (other moments of the same recording count as wrong) and ``neutral`` (they are left out): mAP and
        micro-AP without `SIDE_EDITS`. ``edits``: both of each edit alone, neutral. ``unrelated_99th``: the score that
        99 of 100 pairs of unrelated videos stay below. ``copies_quantiles``: quantiles of the scores of copies.
    """
    edits = np.array([video.edit for video in material.gallery])
    everywhere = np.broadcast_to(~np.isin(edits, SIDE_EDITS), truth.shape)
    unrelated = np.array(
        [[video.scene != query.scene for video in material.gallery] for query in material.queries]
    )
    unrelated &= everywhere & (truth == 0)
    copies = scores[everywhere & (truth > 0)]
    return {
        "strict": _precision(scores, truth, everywhere),
        "neutral": _precision(scores, truth, everywhere & (truth >= 0)),
        "edits": {
            name: _precision(scores, truth, ((edits == name)[None] & (truth > 0)) | (truth == 0))
            for name in [*EDITS, "real copy"]
            if name in edits
        },
        "unrelated_99th": float(np.quantile(scores[unrelated], 0.99)),
        "copies_quantiles": {str(q): float(np.quantile(copies, q)) for q in (0.05, 0.1, 0.5)},
    }


def summarize_search(found: SearchScores, truth: NDArray[np.int64], material: CopyMaterial) -> dict[str, Any]:
    """`summarize_copies` of a search, with errors in time, seconds and recall."""
    return {
        **summarize_copies(found.scores, truth, material),
        "localisation": localization_errors(found, material),
        "index_seconds": found.index_seconds,
        "search_seconds_median": found.search_seconds,
        "recall_at_100": found.recall,
        "identical_min": found.identical,
    }


def localization_errors(found: SearchScores, material: CopyMaterial) -> Mapping[str, float]:
    """Errors of the start and end of the best segment in the copy, in seconds; a copy not found counts as 30 s."""
    starts, ends, missed = [], [], 0
    for row, query in enumerate(material.queries):
        for column, video in enumerate(material.gallery):
            if video.source is not query or video.segment is None or video.edit in SIDE_EDITS:
                continue
            segments = found.segments[row][column]
            missed += not segments
            starts.append(abs(segments[0].target_start - video.segment[2]) if segments else _NOT_FOUND)
            ends.append(abs(segments[0].target_end - video.segment[3]) if segments else _NOT_FOUND)
    return {
        "start_median": statistics.median(starts),
        "end_median": statistics.median(ends),
        "start_90th": float(np.quantile(starts, 0.9)),
        "end_90th": float(np.quantile(ends, 0.9)),
        "missed": missed,
        "pairs": len(starts),
    }


def _precision(scores: Scores, truth: NDArray[np.int64], valid: NDArray[np.bool_]) -> dict[str, float]:
    ranked, relevant = torch.from_numpy(scores), torch.from_numpy((truth > 0).astype(np.float64))
    counted = torch.from_numpy(valid.copy())
    return {
        "mAP": float(mean_average_precision(ranked, relevant, valid=counted)),
        "micro_AP": float(micro_average_precision(ranked, relevant, valid=counted)),
    }

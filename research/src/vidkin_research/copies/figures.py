"""Copy-retrieval metrics: mAP and micro-AP overall, per family and per edit, and scores of unrelated pairs."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from vidkin.similarity import UNRELATED
from vidkin_research.copies.edits import EDITS, EditFamily
from vidkin_research.copies.material import BOTH_KEPT, REAL_COPY, SOUND, CopyMaterial
from vidkin_research.copies.places import BoxOverlaps, TimeErrors, place_segments, summarize_boxes, summarize_times
from vidkin_research.copies.scores import PairScores, Scores, SearchCosts
from vidkin_research.copies.sound_edits import SOUND_EDITS

# Unrelated pairs should score below this.
THRESHOLD = UNRELATED


EVERYTHING = "everything"


FAMILIES = (*get_args(EditFamily), SOUND)


@dataclass(frozen=True, slots=True)
class AveragePrecisions:
    """Mean and micro average precision, each in [0, 1]; nan where nothing is relevant."""

    map: float
    micro_ap: float


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Metrics of one group of copies, each ranked among everything that is not relevant.

    Attributes:
        name: Name of the edit or of the family of edits; `REAL_COPY`; or `EVERYTHING`.
        family: What the edit changes; None if there is no single family.
        copies: Number of pairs of a query and a copy.
        reported: Number of these pairs with a score of at least `threshold`.
        threshold: Minimum score of a found copy.
        median: Median score of the copies.
        lowest: Lowest score of the copies.
        strict: Average precisions with other moments of the same recording counted as wrong.
        neutral: Average precisions with other moments of the same recording left out.
        recall: Fraction of the scored copies that the first stage selects; None without stages.
        times: Time errors; None if the system reports no segments.
        boxes: Box overlaps; None if the system reports no boxes.
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
    """Scores of unrelated pairs.

    Attributes:
        which: ``"other scenes"``; ``"same scene"``, with the same background; or ``"other moments"`` of the same
            recording.
        pairs: Number of pairs.
        highest: Highest score.
        highest_pair: Names of the query and the video with this score.
        above: Number of pairs with a score of at least `threshold`.
        threshold: Score that unrelated pairs should not reach.
    """

    which: str
    pairs: int
    highest: float
    highest_pair: tuple[str, str]
    above: int
    threshold: float


@dataclass(frozen=True, slots=True)
class CopyFigures:
    """Metrics of one system.

    Attributes:
        system: Name of the system.
        everything: Metrics of all copies, including real ones.
        families: Metrics per family of edits.
        edits: Metrics per edit, and of the real copies.
        unrelated: Scores of unrelated pairs.
        costs: Costs of the index and the searches; None for a system without an index.
    """

    system: str
    everything: GroupFigures
    families: tuple[GroupFigures, ...]
    edits: tuple[GroupFigures, ...]
    unrelated: tuple[UnrelatedFigures, ...]
    costs: SearchCosts | None = None


def relevance_of(material: CopyMaterial) -> NDArray[np.int64]:
    """Relevance [Q, G]: 1 for relevant, -1 for another moment of the same recording, 0 for anything else."""
    table = np.zeros((len(material.queries), len(material.gallery)), dtype=np.int64)
    for row, query in enumerate(material.queries):
        for column, video in enumerate(material.gallery):
            if video.family == query.recording.family:
                # A real copy shows the whole recording, so it is relevant to every clip of it.
                table[row, column] = 1 if video.source is None or video.source == query else -1
    return table


def summarize_copies(
    system: str, pair_scores: PairScores, material: CopyMaterial, *, threshold: float = THRESHOLD
) -> CopyFigures:
    """Compute the metrics of a system from its scores for all pairs."""
    truth = relevance_of(material)
    edits = np.array([video.edit for video in material.gallery])
    families = np.array([video.edit_family or "" for video in material.gallery])
    placed = place_segments(pair_scores, material) if pair_scores.segments is not None else []

    def group(name: str, family: str | None = None) -> GroupFigures:
        columns = (edits == name) | (families == name) | np.array(name == EVERYTHING)
        places = [segment for segment in placed if name in (segment.edit, segment.edit_family, EVERYTHING)]
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
    """Average precisions as defined in :mod:`vidkin.metric.measures`; equal scores rank in column order."""
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
    """Mean precision at the relevant entries of one list; nan if there are none."""
    ranked = relevant[valid][np.argsort(-scores[valid], kind="stable")]
    hits = np.flatnonzero(ranked)
    return float((np.arange(1, len(hits) + 1) / (hits + 1)).mean()) if len(hits) else float("nan")


def summarize_sound_rules(
    pair_scores: PairScores, material: CopyMaterial, *, threshold: float = THRESHOLD
) -> tuple[CopyFigures, ...]:
    """Compute the metrics of the queries with sound for each rule of :func:`vidkin.index.query.sound.score_by`:
    picture, sound, either and both; empty if no query has sound."""
    rows = [row for row, query in enumerate(material.queries) if query.heard is not None]
    if pair_scores.sound is None or not rows:
        return ()
    queries = tuple(material.queries[row] for row in rows)
    families = {query.recording.family for query in queries}
    # Queries without sound are left out, and their copies would have no match.
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

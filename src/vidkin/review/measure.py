"""Train and use a scorer from verdicts on top of the index's own score, and suggest which pairs to judge next.

Only fitting, in :mod:`vidkin.review.measure_head`, needs torch.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import check_regular_file
from vidkin._base.registry import name_missing_parts
from vidkin._base.values import JSON_LIMITS, Result, check_at_least, parse_json, read_bounded
from vidkin.errors import InvalidArgumentError
from vidkin.index import Index, VideoRecord
from vidkin.index.storage.files import writing
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.opening import folder_of, refuse_links
from vidkin.index.storage.place import Place
from vidkin.match.reviewed import (
    MEASURE_FILE,
    ReviewedScorer,
    ReviewMeasure,
    describe_video_whole,
    pair_numbers,
)
from vidkin.review.labels import REVIEW_FOLDER, Labels, PairLabel, is_held_back

_logger = logging.getLogger(__name__)

Judgment = Literal["better", "no clear difference", "worse"]

_RUNS_FILE = "runs.jsonl"

_GRADES = {"different": 0, "same kind": 1, "same": 2}

_STEPS = 300

# Bootstrap draws for the interval, and the share cut off on each side.
_DRAWS, _TAIL = 1000, 0.05

# Maximum number of videos averaged for the center.
_MAX_VIDEOS = 1000


@dataclass(frozen=True, slots=True)
class MeasureReview(Result):
    """Result of training on verdicts, measured on held-back pairs.

    The figures are shares of pairs of verdicts with different grades (same over same kind over different) that the
    score orders correctly; .5 is chance. Videos of held-back pairs can also be in training pairs.

    Attributes:
        trained_on: Number of training verdicts.
        held_back: Number of verdicts held back to measure the figures.
        before: Figure of the index's own scorer.
        after: Figure of the trained scorer.
        low, high: 90 % interval of ``after - before``, over draws of the held-back verdicts.
        judgment: ``better`` if the whole interval is above 0, ``worse`` if it is below.
        right: Share of held-back verdicts that the scorer predicts correctly.
        missing: Number of verdicts on videos that are no longer in the index.
        path: File of the scorer.
    """

    trained_on: int
    held_back: int
    before: float
    after: float
    low: float
    high: float
    judgment: Judgment
    right: float
    missing: int
    path: str


@check_arguments
def train_measure(index: Index, *, on_progress: Callable[[int, int], None] | None = None) -> MeasureReview:
    """Train a scorer on the verdicts of an index and store it with them; :func:`use_measure` puts it to use.

    A third of the verdicts is held back; a verdict always stays in the same part.

    Args:
        index: Index with verdicts.
        on_progress: Callback that receives (steps done, total number of steps); a step is a pair read or a training
            step.

    Raises:
        InvalidArgumentError: Too few verdicts: the training part and the held-back part each need two kinds.
        MissingPartError: torch is not installed.
    """
    with name_missing_parts("training on verdicts"):
        from vidkin.review.measure_head import fit_measure

    refuse_links(index.path, REVIEW_FOLDER)
    labels = Labels.open(index.path).pairs
    records = _records_by_content(index)
    usable = [label for label in labels if label.first in records and label.second in records]
    held_back = np.array([is_held_back(label.first, label.second) for label in usable], dtype=bool)
    grades = np.array([_GRADES[label.verdict] for label in usable], dtype=np.int64)
    for name, part in (("for the training", grades[~held_back]), ("to be held back", grades[held_back])):
        if len(set(part.tolist())) < 2:
            raise InvalidArgumentError(
                f"verdicts must be of two kinds or more {name}, got {len(part)} of "
                f"{len(set(part.tolist()))} (a third is held back); judge more pairs"
            )
    total = len(usable) + _STEPS

    def report(done: int) -> None:
        if on_progress is not None:
            on_progress(done, total)

    center = video_vectors(index, list(records.values())[:_MAX_VIDEOS]).mean(axis=0)
    numbers, ones, others = _read_pairs(index, usable, records, center, report)
    measure, cosines = fit_measure(
        (numbers, ones, others),
        grades,
        trained=~held_back,
        center=center,
        fingerprint=index.manifest.fingerprint,
        steps=_STEPS,
        on_step=lambda step: report(len(usable) + step),
    )
    seen = np.concatenate([numbers[:, :2], cosines[:, None]], axis=1)
    chances = [measure.grade(row) for row in seen.tolist()]
    scores = np.array([sum(chance) / 2 for chance in chances], dtype=np.float32)
    guesses = np.array([sum(value >= 0.5 for value in chance) for chance in chances])
    before, after = (ordering(values[held_back], grades[held_back]) for values in (numbers[:, 0], scores))
    low, high = interval_of_difference(numbers[held_back, 0], scores[held_back], grades[held_back])
    measure.write(index.path / MEASURE_FILE)
    review = MeasureReview(
        trained_on=int((~held_back).sum()),
        held_back=int(held_back.sum()),
        before=before,
        after=after,
        low=low,
        high=high,
        judgment=judge_difference(low, high),
        right=float((guesses == grades)[held_back].mean()),
        missing=len(labels) - len(usable),
        path=str(index.path / MEASURE_FILE),
    )
    store_review(index.path, "measure", review)
    return review


@check_arguments
def use_measure(place: Place, *, use: bool) -> None:
    """Switch searches of an index to the scorer trained last, or back to its own.

    Raises:
        InvalidArgumentError: No scorer has been trained, or it was trained on other features.
        CollectionLockedError: Another process is writing.
    """
    with place.exclusive(5.0):
        manifest = Manifest.read(place)
        if use and ReviewMeasure.read(folder_of(place) / MEASURE_FILE).fingerprint != manifest.fingerprint:
            raise InvalidArgumentError("the scorer was trained on other features; train it again")
        replace(manifest, reviewed=use).write(place)


def store_review(index: Path, kind: Literal["measure", "cuts"], review: Result) -> None:
    """Add a training to the log that :func:`read_reviews` reads."""
    path = index / REVIEW_FOLDER / _RUNS_FILE
    with writing(path):
        if os.path.lexists(path):
            check_regular_file(path)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **review.to_dict()}) + "\n")


@check_arguments
def read_reviews(index: Path) -> list[dict[str, Any]]:
    """Past trainings on the verdicts of an index, oldest first: ``kind`` and the fields of the review.

    Truncated lines and lines that do not describe a training are skipped; so is a file that is not text or exceeds the
    limit of JSON files.
    """
    path = index / REVIEW_FOLDER / _RUNS_FILE
    try:
        lines = read_bounded(path, JSON_LIMITS).splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        _logger.warning("%s: past trainings are not shown: %s", path, error)
        return []
    runs = []
    for line in lines:
        with contextlib.suppress(ValueError):
            runs.append(parse_json(line))
    return [run for run in runs if _is_review(run)]


def _is_review(run: object) -> bool:
    """Whether a line describes a training; an index, and so this file, may come from an untrusted source."""
    if not isinstance(run, dict) or run.get("kind") not in ("measure", "cuts"):
        return False
    counts = all(type(run.get(name)) is int for name in ("trained_on", "held_back"))
    figures: tuple[Any, ...] = (run.get("before"), run.get("after"), run.get("low", 0), run.get("high", 0))
    judged = run.get("judgment") in get_args(Judgment)
    return counts and judged and all(type(value) in (int, float) and math.isfinite(value) for value in figures)


def judge_difference(low: float, high: float) -> Judgment:
    """Judge an interval of the difference: ``better`` above 0, ``worse`` below 0."""
    if low > 0:
        return "better"
    return "worse" if high < 0 else "no clear difference"


def ordering(scores: NDArray[np.floating], grades: NDArray[np.integer]) -> float:
    """Share of pairs with different grades whose scores are in the same order; ties count half, NaN if there are none.

    Args:
        scores: [N].
        grades: [N] integers, higher for more similar pairs.
    """
    above = grades[:, None] > grades[None]
    pairs = int(above.sum())
    if not pairs:
        return float("nan")
    higher = (scores[:, None] > scores[None]) & above
    equal = (scores[:, None] == scores[None]) & above
    return (int(higher.sum()) + 0.5 * int(equal.sum())) / pairs


def interval_of_difference(
    before: NDArray[np.floating], after: NDArray[np.floating], grades: NDArray[np.integer]
) -> tuple[float, float]:
    """90 % bootstrap interval of how much higher :func:`ordering` is with the scores after than before.

    Args:
        before, after: [N] scores of the same pairs.
        grades: [N] integers, higher for more similar pairs.
    """
    draw = random.Random(0)
    differences = []
    for _ in range(_DRAWS):
        drawn = np.array(draw.choices(range(len(grades)), k=len(grades)))
        if len(set(grades[drawn].tolist())) > 1:
            figures = (ordering(values[drawn], grades[drawn]) for values in (after, before))
            differences.append(next(figures) - next(figures))
    differences.sort()
    return differences[int(_TAIL * len(differences))], differences[int((1 - _TAIL) * len(differences))]


def _read_pairs(
    index: Index,
    labels: Sequence[PairLabel],
    records: Mapping[str, VideoRecord],
    center: NDArray[np.float32],
    report: Callable[[int], None],
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Pair features [N, 3] from the index's own scorer, and centered descriptors [N, D] of both videos of each pair."""
    scorer = index.scorer
    inner = scorer.inner if isinstance(scorer, ReviewedScorer) else scorer
    rows, ones, others = [], [], []
    for done, label in enumerate(labels, start=1):
        one, other = (index.store.read(records[content].id) for content in (label.first, label.second))
        scores = inner.score(one, [other])
        rows.append(pair_numbers(one, [other], scores, center, np.ones_like(center)))
        ones.append(describe_video_whole(one) - center)
        others.append(describe_video_whole(other) - center)
        report(done)
    return np.concatenate(rows), np.stack(ones), np.stack(others)


# Pairs are drawn from at most this many videos at a time.
_MAX_DRAWN = 400

# Ranks of the neighbors to draw: likely copies (1), similar videos, and any video (0).
_RANKS = (1, 1, 2, 4, 8, 0)


@dataclass(frozen=True, slots=True)
class SuggestedPair(Result):
    """Two videos that have not been judged yet.

    Attributes:
        first, second: Records of the two videos.
        similarity: Cosine of their centered mean descriptors, in [-1, 1].
    """

    first: VideoRecord
    second: VideoRecord
    similarity: float


@check_arguments
def suggest_pairs(index: Index, labels: Labels, *, limit: int = 10) -> list[SuggestedPair]:
    """Suggest pairs that have not been judged, from similar to dissimilar, so that every kind of verdict occurs.

    The draw depends only on the number of verdicts, so the same pairs are suggested until one is judged.

    Args:
        index: Index with features.
        labels: Labels given so far.
        limit: Maximum number of pairs.
    """
    check_at_least(1, limit=limit)
    draw = random.Random(len(labels.pairs))
    records = list(_records_by_content(index).values())
    if len(records) > _MAX_DRAWN:
        records = draw.sample(records, _MAX_DRAWN)
    if len(records) < 2:
        return []
    vectors = video_vectors(index, records)
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -2.0)
    order = np.argsort(-similarity, axis=1, kind="stable")
    judged = {(label.first, label.second) for label in labels.pairs}
    suggestions: list[SuggestedPair] = []
    # Draws can hit judged pairs; the bound ends the loop when few or no pairs are left.
    for _ in range(50 * limit):
        rank = draw.choice(_RANKS)
        position = draw.randrange(len(records))
        last = len(records) - 2
        other = int(order[position, min(rank - 1, last) if rank else draw.randint(0, last)])
        first, second = sorted((records[position], records[other]), key=lambda record: record.content_hash)
        if (first.content_hash, second.content_hash) not in judged:
            judged.add((first.content_hash, second.content_hash))
            suggestions.append(SuggestedPair(first, second, float(similarity[position, other])))
        if len(suggestions) == limit:
            break
    return suggestions


def _records_by_content(index: Index) -> dict[str, VideoRecord]:
    """Map each content hash to a video that has features."""
    return {
        record.content_hash: record
        for record in index.videos()
        if record.status == "ok" and record.frames and record.content_hash
    }


def video_vectors(index: Index, records: list[VideoRecord]) -> NDArray[np.float32]:
    """Mean descriptors [N, D] of videos."""
    return np.stack([describe_video_whole(index.store.read(record.id)) for record in records])

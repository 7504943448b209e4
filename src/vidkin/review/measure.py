"""Train and use a scorer that refines an index's scores based on verdicts, and suggest pairs to judge next.

Only fitting (:mod:`vidkin.review.measure_head`) requires torch.
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

# Number of bootstrap samples for the confidence interval, and the fraction cut off on each side.
_SAMPLES, _TAIL = 1000, 0.05

# Maximum number of videos to average for the center.
_MAX_VIDEOS = 1000


@dataclass(frozen=True, slots=True)
class MeasureReview(Result):
    """Result of training on verdicts, evaluated on held-out pairs.

    ``before`` and ``after`` are ranking accuracies: among held-out verdicts with different grades (same > same kind >
    different), the fraction that the scores rank correctly; 0.5 is chance. Videos in held-out pairs may also occur in
    training pairs.

    Attributes:
        trained_on: Number of training verdicts.
        held_back: Number of held-out verdicts used for evaluation.
        before: Ranking accuracy of the index's own scorer.
        after: Ranking accuracy of the trained scorer.
        low, high: 90 % bootstrap confidence interval of ``after - before``.
        judgment: ``better`` if the whole interval is above 0, ``worse`` if it is below 0.
        right: Fraction of held-out verdicts that the scorer predicts correctly.
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
    """Train a scorer on the verdicts in an index and store it in the index; :func:`use_measure` enables it.

    A third of the verdicts is held out; the split never changes.

    Args:
        index: Index with verdicts.
        on_progress: Callback that receives (steps done, total number of steps); reading a pair counts as a step.

    Raises:
        InvalidArgumentError: There are too few verdicts: the training and the held-out verdicts must both include at
            least two kinds.
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
    for name, part in (("training", grades[~held_back]), ("held-out", grades[held_back])):
        if len(set(part.tolist())) < 2:
            raise InvalidArgumentError(
                f"the {name} verdicts must include at least two kinds, got {len(set(part.tolist()))} in {len(part)} "
                "verdicts (a third of all verdicts is held out); judge more pairs"
            )
    total = len(usable) + _STEPS

    def report(done: int) -> None:
        if on_progress is not None:
            on_progress(done, total)

    center = video_vectors(index, list(records.values())[:_MAX_VIDEOS]).mean(axis=0)
    features, ones, others = _read_pairs(index, usable, records, center, report)
    measure, cosines = fit_measure(
        (features, ones, others),
        grades,
        trained=~held_back,
        center=center,
        fingerprint=index.manifest.fingerprint,
        steps=_STEPS,
        on_step=lambda step: report(len(usable) + step),
    )
    features = np.concatenate([features[:, :2], cosines[:, None]], axis=1)
    probabilities = [measure.grade(row) for row in features.tolist()]
    scores = np.array([sum(pair) / 2 for pair in probabilities], dtype=np.float32)
    predictions = np.array([sum(value >= 0.5 for value in pair) for pair in probabilities])
    before, after = (ordering(values[held_back], grades[held_back]) for values in (features[:, 0], scores))
    low, high = interval_of_difference(features[held_back, 0], scores[held_back], grades[held_back])
    measure.write(index.path / MEASURE_FILE)
    review = MeasureReview(
        trained_on=int((~held_back).sum()),
        held_back=int(held_back.sum()),
        before=before,
        after=after,
        low=low,
        high=high,
        judgment=judge_difference(low, high),
        right=float((predictions == grades)[held_back].mean()),
        missing=len(labels) - len(usable),
        path=str(index.path / MEASURE_FILE),
    )
    store_review(index.path, "measure", review)
    return review


@check_arguments
def use_measure(place: Place, *, use: bool) -> None:
    """Switch searches of an index to the most recently trained scorer, or back to the index's own scorer.

    Raises:
        InvalidArgumentError: No scorer has been trained, or it was trained on different features.
        CollectionLockedError: Another process is writing.
    """
    with place.exclusive(5.0):
        manifest = Manifest.read(place)
        if use and ReviewMeasure.read(folder_of(place) / MEASURE_FILE).fingerprint != manifest.fingerprint:
            raise InvalidArgumentError("the scorer was trained on different features; train it again")
        replace(manifest, reviewed=use).write(place)


def store_review(index: Path, kind: Literal["measure", "cuts"], review: Result) -> None:
    """Append a training run to the log read by :func:`read_reviews`."""
    path = index / REVIEW_FOLDER / _RUNS_FILE
    with writing(path):
        if os.path.lexists(path):
            check_regular_file(path)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **review.to_dict()}) + "\n")


@check_arguments
def read_reviews(index: Path) -> list[dict[str, Any]]:
    """Read past training runs on the verdicts in an index, oldest first: ``kind`` and the fields of the review.

    Truncated and invalid lines are skipped. A file that is not text, or exceeds the size limit for JSON, is ignored.
    """
    path = index / REVIEW_FOLDER / _RUNS_FILE
    try:
        lines = read_bounded(path, JSON_LIMITS).splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        _logger.warning("%s: past training runs are not shown: %s", path, error)
        return []
    runs = []
    for line in lines:
        with contextlib.suppress(ValueError):
            runs.append(parse_json(line))
    return [run for run in runs if _is_review(run)]


def _is_review(run: object) -> bool:
    """Whether a line describes a training run; the index, and therefore the log, may come from an untrusted source."""
    if not isinstance(run, dict) or run.get("kind") not in ("measure", "cuts"):
        return False
    counts = all(type(run.get(name)) is int for name in ("trained_on", "held_back"))
    metrics: tuple[Any, ...] = (run.get("before"), run.get("after"), run.get("low", 0), run.get("high", 0))
    judged = run.get("judgment") in get_args(Judgment)
    return counts and judged and all(type(value) in (int, float) and math.isfinite(value) for value in metrics)


def judge_difference(low: float, high: float) -> Judgment:
    """Return ``better`` if the confidence interval of a difference is above 0, and ``worse`` if it is below 0."""
    if low > 0:
        return "better"
    return "worse" if high < 0 else "no clear difference"


def ordering(scores: NDArray[np.floating], grades: NDArray[np.integer]) -> float:
    """Compute the fraction of item pairs with different grades that the scores rank correctly; ties count half.

    The result is NaN if all grades are equal.

    Args:
        scores: [N] scores.
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
    """Compute the 90 % bootstrap confidence interval of the increase of :func:`ordering` from ``before`` to ``after``.

    Args:
        before, after: [N] scores of the same pairs.
        grades: [N] integers, higher for more similar pairs.
    """
    generator = random.Random(0)
    differences = []
    for _ in range(_SAMPLES):
        sample = np.array(generator.choices(range(len(grades)), k=len(grades)))
        if len(set(grades[sample].tolist())) > 1:
            accuracies = (ordering(values[sample], grades[sample]) for values in (after, before))
            differences.append(next(accuracies) - next(accuracies))
    differences.sort()
    return differences[int(_TAIL * len(differences))], differences[int((1 - _TAIL) * len(differences))]


def _read_pairs(
    index: Index,
    labels: Sequence[PairLabel],
    records: Mapping[str, VideoRecord],
    center: NDArray[np.float32],
    report: Callable[[int], None],
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Compute pair features [N, 3] from the index's own scorer, and centered descriptors [N, D] of the first and the
    second videos."""
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


# Maximum number of videos from which pairs are sampled.
_MAX_SAMPLED = 400

# Ranks of the neighbors to sample: likely copies (1), similar videos, and any video (0).
_RANKS = (1, 1, 2, 4, 8, 0)


@dataclass(frozen=True, slots=True)
class SuggestedPair(Result):
    """Two videos whose similarity has not been judged yet.

    Attributes:
        first, second: Records of the two videos.
        similarity: Cosine similarity of the centered mean descriptors, in [-1, 1].
    """

    first: VideoRecord
    second: VideoRecord
    similarity: float


@check_arguments
def suggest_pairs(index: Index, labels: Labels, *, limit: int = 10) -> list[SuggestedPair]:
    """Suggest unjudged pairs, both similar and dissimilar, so that all kinds of verdicts occur; most similar first.

    The seed is the number of verdicts, so that the same pairs are suggested until one is judged.

    Args:
        index: Index with features.
        labels: Existing labels.
        limit: Maximum number of pairs.
    """
    check_at_least(1, limit=limit)
    generator = random.Random(len(labels.pairs))
    records = list(_records_by_content(index).values())
    if len(records) > _MAX_SAMPLED:
        records = generator.sample(records, _MAX_SAMPLED)
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
    # Samples may be pairs that were already judged; the bound ends the loop when few or no pairs are left.
    for _ in range(50 * limit):
        rank = generator.choice(_RANKS)
        position = generator.randrange(len(records))
        last = len(records) - 2
        other = int(order[position, min(rank - 1, last) if rank else generator.randint(0, last)])
        first, second = sorted((records[position], records[other]), key=lambda record: record.content_hash)
        if (first.content_hash, second.content_hash) not in judged:
            judged.add((first.content_hash, second.content_hash))
            suggestions.append(SuggestedPair(first, second, float(similarity[position, other])))
        if len(suggestions) == limit:
            break
    return sorted(suggestions, key=lambda pair: -pair.similarity)


def _records_by_content(index: Index) -> dict[str, VideoRecord]:
    """Map each content hash to the record of a video with features."""
    return {
        record.content_hash: record
        for record in index.videos()
        if record.status == "ok" and record.frames and record.content_hash
    }


def video_vectors(index: Index, records: list[VideoRecord]) -> NDArray[np.float32]:
    """Compute the mean descriptors [N, D] of videos."""
    return np.stack([describe_video_whole(index.store.read(record.id)) for record in records])

"""A similarity measure trained on verdicts, on top of the score of an index."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vidkin._base.values import Result, check_at_least, parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.index import Index, VideoRecord
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.opening import open_place, refuse_links
from vidkin.models.engine import take_steps
from vidkin.models.runner import StepStore
from vidkin.review.labels import REVIEW_FOLDER, Labels, PairLabel, is_held_back
from vidkin.similarity.reviewed import (
    MEASURE_FILE,
    ReviewedScorer,
    ReviewMeasure,
    describe_video_whole,
    pair_numbers,
)

Judgment = Literal["better", "no clear difference", "worse"]

_RUNS_FILE = "runs.jsonl"

_GRADES = {"different": 0, "same kind": 1, "same": 2}

_STEPS, _RATE = 300, 0.05

# Regularization: pulls the weights of dimensions toward 1, and the coefficients toward 0.
_HOLD, _SMALL = 0.5, 0.002

# Bootstrap draws for the interval, and the share left out on each side.
_DRAWS, _TAIL = 1000, 0.05

# Number of videos whose mean is the center.
_MOST_VIDEOS = 1000


@dataclass(frozen=True, slots=True)
class MeasureReview(Result):
    """Result of training on verdicts, measured on held-back pairs.

    The figure is the share of pairs of verdicts of different grades (same over same kind over different) that the score
    puts in the right order; .5 is chance. Videos of held-back pairs can be in other pairs of the training.

    Attributes:
        trained_on: Number of verdicts of the training.
        held_back: Number of verdicts that the figures are measured on.
        before: Figure of the index's own scorer.
        after: Figure of the trained measure.
        low, high: 90 % interval of ``after - before``, over draws of the held-back verdicts.
        judgment: ``better`` if the whole interval is above 0, ``worse`` if it is below.
        right: Share of held-back verdicts that the measure predicts correctly.
        missing: Number of verdicts on videos that are no longer in the index.
        path: File of the measure.
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


def train_measure(index: Index, *, on_progress: Callable[[int, int], None] | None = None) -> MeasureReview:
    """Train a measure on the verdicts of an index and store it beside them; it is used after :func:`use_measure`.

    A third of the verdicts is held back, always the same ones, however many come later.

    Args:
        index: Index with verdicts.
        on_progress: Callback that receives (steps done, total number of steps); a step is a pair read or a training
            step.

    Raises:
        InvalidArgumentError: Too few verdicts: both parts, training and held back, need two different ones.
    """
    refuse_links(index.path, REVIEW_FOLDER)
    labels = Labels.open(index.path).pairs
    records = _records_by_content(index)
    usable = [label for label in labels if label.first in records and label.second in records]
    held = [is_held_back(label.first, label.second) for label in usable]
    grades = torch.tensor([_GRADES[label.verdict] for label in usable])
    held_back = torch.tensor(held, dtype=torch.bool)
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

    center = video_vectors(index, list(records.values())[:_MOST_VIDEOS]).mean(0)
    numbers, ones, others = _read_pairs(index, usable, records, center, report)
    model = _Head(len(center))
    batch = numbers[~held_back], ones[~held_back], others[~held_back], grades[~held_back]
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.0)
    StepStore().follow(
        take_steps(model, _objective, optimizer, repeat(batch, _STEPS)),
        model,
        optimizer,
        on_step=lambda step, terms: report(len(usable) + step),
    )
    measure = model.measure(index.manifest.fingerprint, center)
    with torch.no_grad():
        seen = numbers.clone()
        seen[:, 2] = model.cosines(ones, others)
    chances = [measure.grade(row) for row in seen.tolist()]
    scores = torch.tensor([sum(chance) / 2 for chance in chances])
    guesses = torch.tensor([sum(value >= 0.5 for value in chance) for chance in chances])
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
        right=float((guesses == grades)[held_back].double().mean()),
        missing=len(labels) - len(usable),
        path=str(index.path / MEASURE_FILE),
    )
    store_review(index.path, "measure", review)
    return review


def use_measure(index: Path, *, use: bool) -> None:
    """Switch searches of an index to the measure trained last, or back to its own scorer.

    Raises:
        InvalidArgumentError: No measure has been trained, or it was trained on other features.
        CollectionLockedError: Another process is writing.
    """
    place = open_place(index)
    with place.exclusive(5.0):
        manifest = Manifest.read(place)
        if use and ReviewMeasure.read(index / MEASURE_FILE).fingerprint != manifest.fingerprint:
            raise InvalidArgumentError("the measure was trained on other features; train it again")
        replace(manifest, reviewed=use).write(place)


def store_review(index: Path, kind: Literal["measure", "cuts"], review: Result) -> None:
    """Add a training to those that :func:`read_reviews` gives."""
    with (index / REVIEW_FOLDER / _RUNS_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": kind, **review.to_dict()}) + "\n")


def read_reviews(index: Path) -> list[dict[str, Any]]:
    """Past trainings on the verdicts of an index, oldest first: ``kind`` and the fields of the review.

    A line that an interruption cut short is left out.
    """
    try:
        lines = (index / REVIEW_FOLDER / _RUNS_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    runs = []
    for line in lines:
        with contextlib.suppress(ValueError):
            runs.append(parse_json(line))
    return [run for run in runs if isinstance(run, dict) and run.get("kind") in ("measure", "cuts")]


def judge_difference(low: float, high: float) -> Judgment:
    """Judgment from an interval of the difference: ``better`` above 0, ``worse`` below 0."""
    if low > 0:
        return "better"
    return "worse" if high < 0 else "no clear difference"


def ordering(scores: Tensor, grades: Tensor) -> float:
    """Share of pairs with different grades whose scores are in the same order; ties count half, NaN if there are none.

    Args:
        scores: [N].
        grades: [N] integers, higher for more similar pairs.
    """
    above = grades[:, None] > grades[None]
    right = (scores[:, None] > scores[None]).double() + 0.5 * (scores[:, None] == scores[None]).double()
    return float(right[above].mean())


def interval_of_difference(before: Tensor, after: Tensor, grades: Tensor) -> tuple[float, float]:
    """90 % interval of how much higher :func:`ordering` is with other scores, by drawing the pairs with replacement.

    Args:
        before, after: [N] scores of the same pairs.
        grades: [N] integers, the higher the more alike.
    """
    draw = random.Random(0)
    differences = []
    for _ in range(_DRAWS):
        places = torch.tensor(draw.choices(range(len(grades)), k=len(grades)))
        if len(set(grades[places].tolist())) > 1:
            figures = (ordering(values[places], grades[places]) for values in (after, before))
            differences.append(next(figures) - next(figures))
    differences.sort()
    return differences[int(_TAIL * len(differences))], differences[int((1 - _TAIL) * len(differences))]


class _Head(nn.Module):
    """Weights of dimensions, coefficients of the numbers, and two thresholds."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.scales = nn.Parameter(torch.zeros(dimensions))
        self.raw = nn.Parameter(torch.full((3,), 2.0))
        self.kind = nn.Parameter(torch.tensor(2.0))
        self.gap = nn.Parameter(torch.tensor(1.0))

    def cosines(self, ones: Tensor, others: Tensor) -> Tensor:
        """[N], weighted, of centered descriptors [N, D]."""
        weights = self.scales.exp()
        return torch.cosine_similarity(ones * weights, others * weights)

    def thresholds(self) -> tuple[Tensor, Tensor]:
        """Thresholds of ``same kind`` and of ``same``."""
        return self.kind, self.kind + nn.functional.softplus(self.gap)

    def measure(self, fingerprint: str, center: Tensor) -> ReviewMeasure:
        """The measure in the form that is stored."""
        first, second, third = nn.functional.softplus(self.raw.detach()).tolist()
        kind, same = (float(value.detach()) for value in self.thresholds())
        weights = self.scales.detach().exp().tolist()
        return ReviewMeasure(fingerprint, tuple(center.tolist()), tuple(weights), (first, second, third), kind, same)


def _objective(model: _Head, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> Mapping[str, Tensor]:
    """Ordinal regression: each threshold is a binary decision with both answers weighted equally."""
    numbers, ones, others, grades = batch
    columns = torch.cat([numbers[:, :2], model.cosines(ones, others)[:, None]], dim=1)
    total = columns @ nn.functional.softplus(model.raw)
    loss = _HOLD * model.scales.square().mean() * len(model.scales) ** 0.5
    loss = loss + _SMALL * model.raw.square().sum()
    for level, limit in enumerate(model.thresholds(), start=1):
        answers = (grades >= level).float()
        yes, no = answers.sum(), (1 - answers).sum()
        if yes == 0 or no == 0:
            continue
        weights = answers / yes + (1 - answers) / no
        losses = nn.functional.binary_cross_entropy_with_logits(total - limit, answers, reduction="none")
        loss = loss + (losses * weights).sum() / 2
    return {"loss": loss}


def _read_pairs(
    index: Index,
    labels: Sequence[PairLabel],
    records: Mapping[str, VideoRecord],
    center: Tensor,
    report: Callable[[int], None],
) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers [N, 3] by the index's own scorer, and centered descriptors [N, D] of either side."""
    scorer = index.scorer
    inner = scorer.inner if isinstance(scorer, ReviewedScorer) else scorer
    rows, ones, others = [], [], []
    for done, label in enumerate(labels, start=1):
        one, other = (index.store.read(records[content].id) for content in (label.first, label.second))
        scores = inner.score(one, [other])
        rows.append(pair_numbers(one, [other], scores, center, torch.ones_like(center)))
        ones.append(describe_video_whole(one) - center)
        others.append(describe_video_whole(other) - center)
        report(done)
    return torch.cat(rows), torch.stack(ones), torch.stack(others)


# Which pairs of an index a person should judge next.


# Number of videos that pairs are drawn from at a time; a small index is used whole.
_MOST_DRAWN = 400

# Ranks of neighbors from which pairs are drawn: likely copies, similar videos, and any others.
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


def suggest_pairs(index: Index, labels: Labels, *, limit: int = 10) -> list[SuggestedPair]:
    """Suggest pairs that have not been judged, from similar to dissimilar, so that all verdicts occur.

    The draw depends only on the number of verdicts: the same pairs are suggested until one is judged.

    Args:
        index: Index with features.
        labels: Labels given so far.
        limit: Maximum number of pairs.
    """
    check_at_least(1, limit=limit)
    draw = random.Random(len(labels.pairs))
    records = list(_records_by_content(index).values())
    if len(records) > _MOST_DRAWN:
        records = draw.sample(records, _MOST_DRAWN)
    if len(records) < 2:
        return []
    vectors = video_vectors(index, records)
    vectors = torch.nn.functional.normalize(vectors - vectors.mean(0), dim=-1)
    similarity = vectors @ vectors.T
    order = similarity.fill_diagonal_(-2.0).argsort(dim=1, descending=True)
    judged = {(label.first, label.second) for label in labels.pairs}
    suggestions: list[SuggestedPair] = []
    # Some draws hit a judged pair; after many in a row nothing is left.
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
    """Content hash -> a video with it that has features."""
    return {
        record.content_hash: record
        for record in index.videos()
        if record.status == "ok" and record.frames and record.content_hash
    }


def video_vectors(index: Index, records: list[VideoRecord]) -> torch.Tensor:
    """[N, D]: mean descriptors of videos."""
    return torch.stack([describe_video_whole(index.store.read(record.id)) for record in records])

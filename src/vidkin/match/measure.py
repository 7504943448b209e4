"""Everything that one comparison of two videos says, as some thirty named numbers along the lines that match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin.match.frame_map import Vectors, frame_map
from vidkin.match.lines import AlignedLine, find_lines

__all__ = ["NUMBERS", "Measured", "Sequenced", "measure"]

# Calibrated similarity from which on frames speak for a match: unrelated ones lie around 0.
_SPEAKS = 0.25
# Seconds on both sides of a line that belong to it; what lies farther shows another moment.
_BESIDE = 2.0
# Frames of a line whose pairs tell whether both sides change alike.
_PAIRS = 48

NUMBERS = (
    "evidence",
    "excess",
    "cosine",
    "low",
    "high",
    "middle",
    "seconds",
    "query coverage",
    "target coverage",
    "lines",
    "all coverage",
    "speed",
    "best mean",
    "best high",
    "back mean",
    "highest",
    "sharpness",
    "elsewhere",
    "query still",
    "target still",
    "changes agree",
    "changes differ",
    "on line",
    "off line",
    "query level",
    "target level",
    "information",
    "query frames",
    "target frames",
    "second",
)
"""Names of the numbers, in their order."""


@dataclass(frozen=True, slots=True)
class Sequenced:
    """The frames of one video for a comparison.

    Attributes:
        vectors: [T, D] float32 unit vectors.
        times: [T] seconds.
        levels: [T] similarity of unrelated frames.
        information: [T] in [0, 1].
    """

    vectors: Vectors
    times: NDArray[np.float64]
    levels: NDArray[np.float32]
    information: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True, slots=True)
class Measured:
    """A comparison.

    Attributes:
        lines: Where they match, strongest first.
        numbers: [len(NUMBERS)] float32.
    """

    lines: tuple[AlignedLine, ...]
    numbers: NDArray[np.float32]


@check_arguments
def measure(query: Sequenced, target: Sequenced) -> Measured:
    """Compare two videos, both in the same pose."""
    similarity = frame_map(query.vectors, target.vectors, query.levels, target.levels)
    weights = np.minimum(query.information[:, None], target.information[None])
    evidence = (similarity - _SPEAKS) * np.where(similarity > _SPEAKS, weights, 1.0)
    lines = find_lines(evidence.astype(np.float32), query.times, target.times)
    numbers = dict.fromkeys(NUMBERS, 0.0)
    numbers |= _of_whole(similarity, query, target)
    if lines:
        numbers |= _of_lines(lines, query, target)
        numbers |= _of_best(lines[0], similarity, query, target)
    return Measured(tuple(lines), np.array([numbers[name] for name in NUMBERS], np.float32))


def _of_whole(similarity: NDArray[np.float32], query: Sequenced, target: Sequenced) -> dict[str, float]:
    best = similarity.max(axis=1)
    return {
        "best mean": float(best.mean()),
        "best high": float(np.quantile(best, 0.9)),
        "highest": float(similarity.max()),
        "query level": float(query.levels.mean()),
        "target level": float(target.levels.mean()),
        "query frames": float(np.log(len(query))),
        "target frames": float(np.log(len(target))),
    }


def _of_lines(lines: Sequence[AlignedLine], query: Sequenced, target: Sequenced) -> dict[str, float]:
    rows, columns = np.zeros(len(query), np.bool_), np.zeros(len(target), np.bool_)
    for line in lines:
        rows[line.rows] = True
        inside = line.columns[line.columns >= 0]
        columns[inside.min() : inside.max() + 1] = True
    return {
        "lines": float(np.log(len(lines))),
        "all coverage": float(max(rows.mean(), columns.mean())),
        "second": lines[1].evidence / lines[0].evidence if len(lines) > 1 else 0.0,
    }


def _of_best(
    line: AlignedLine, similarity: NDArray[np.float32], query: Sequenced, target: Sequenced
) -> dict[str, float]:
    inside = line.columns >= 0
    rows, columns = line.rows[inside], line.columns[inside]
    values = np.sort(similarity[rows, columns])
    seconds = float(query.times[rows[-1]] - query.times[rows[0]]) + _period(query.times)
    part = similarity[rows]
    # What the same frames are similar to elsewhere in the target, and the target's own frames in the query.
    far = np.abs(target.times[None] - target.times[columns][:, None]) > _BESIDE * max(1.0, line.speed)
    elsewhere = np.where(far, part, -1.0).max(axis=1)
    has_far = far.any(axis=1)
    back = similarity[:, np.unique(columns)].max(axis=0)
    peaks = np.abs(target.times[part.argmax(axis=1)] - target.times[columns]) <= _BESIDE / 2
    return {
        "evidence": float(np.log1p(line.evidence)),
        "excess": float(values.mean()),
        "cosine": float(np.einsum("nd,nd->n", query.vectors[rows], target.vectors[columns]).mean()),
        "low": float(np.quantile(values, 0.1)),
        "middle": float(np.median(values)),
        "high": float(np.quantile(values, 0.9)),
        "seconds": float(np.log(seconds)),
        "query coverage": len(rows) / len(query),
        "target coverage": float(len(np.unique(columns)) / len(target)),
        "speed": float(abs(np.log(line.speed))),
        "back mean": float(back.mean()),
        "sharpness": float((values.mean() - elsewhere[has_far].mean()) if has_far.any() else 0.0),
        "elsewhere": float(elsewhere[has_far].mean() if has_far.any() else 0.0),
        "on line": float(peaks.mean()),
        "off line": float(has_far.mean()),
        "information": float(np.minimum(query.information[rows], target.information[columns]).mean()),
        **_of_changes(query.vectors[rows], target.vectors[columns]),
    }


def _of_changes(query: Vectors, target: Vectors) -> dict[str, float]:
    """How much each side changes along the line, and whether they change at the same moments and as much."""
    picked = np.unique(np.linspace(0, len(query) - 1, _PAIRS).astype(np.intp))
    first, second = np.triu_indices(len(picked), 1)
    if not len(first):
        return {"query still": 1.0, "target still": 1.0, "changes agree": 0.0, "changes differ": 0.0}
    own = (query[picked] @ query[picked].T)[first, second]
    other = (target[picked] @ target[picked].T)[first, second]
    spreads = own.std() * other.std()
    agree = float(((own - own.mean()) * (other - other.mean())).mean() / max(float(spreads), 1e-3))
    return {
        "query still": float(own.mean()),
        "target still": float(other.mean()),
        "changes agree": agree,
        "changes differ": float(np.abs(own - other).mean()),
    }


def _period(times: NDArray[np.float64]) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 1.0

"""Pair features of two compared videos: named statistics of the map and its matching lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.match.lines import AlignedLine
from vidkin.match.maps import Vectors
from vidkin.match.pose import compare_shapes
from vidkin.similarity.contracts import WHOLE, Box

__all__ = ["NUMBERS", "Chain", "Measured", "Part", "Sequenced", "measure_numbers"]

# Frames within this many seconds of a line belong to it; frames farther away show a different moment.
_NEARBY = 2.0
# Number of frames sampled along a line to compare how both sides change over time; more would not change the mean.
_SAMPLED_FRAMES = 48

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
    "backwards",
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
    "query area",
    "target area",
    "shapes agree",
    "shapes agree upright",
    "shapes change alike",
    "query shapes change",
    "target shapes change",
)
"""Names of the pair features, in the order of :attr:`Measured.numbers`."""


@dataclass(frozen=True, slots=True, eq=False)
class Sequenced:
    """The frames of one view of a video, as input to a comparison.

    Attributes:
        vectors: [T, D] unit vectors.
        times: [T] seconds.
        levels: [T] mean similarity to unrelated frames, see :func:`levels`.
        information: [T] in [0, 1].
        box: The region of the frame that the vectors describe. An inset, or the area inside a border, is a separate
            view in addition to the whole frame.
        thumbnails: [T, 8, 8] luma of that region; None if not computed.
    """

    vectors: Vectors
    times: NDArray[np.float64]
    levels: NDArray[np.float32]
    information: NDArray[np.float32]
    box: Box = WHOLE
    thumbnails: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def period(self) -> float:
        """Median seconds between consecutive frames; 1 for a single frame."""
        return float(np.median(np.diff(self.times))) if len(self.times) > 1 else 1.0

    def cut(self, first: int, end: int) -> Sequenced:
        """The frames from ``first`` (inclusive) to ``end`` (exclusive)."""
        return Sequenced(
            self.vectors[first:end],
            self.times[first:end],
            self.levels[first:end],
            self.information[first:end],
            self.box,
            None if self.thumbnails is None else self.thumbnails[first:end],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Result of a comparison.

    Attributes:
        lines: Matching lines, strongest first.
        similarities: Mean calibrated similarity along each line.
        numbers: [len(NUMBERS)] float32, the pair features.
    """

    lines: tuple[AlignedLine, ...]
    similarities: tuple[float, ...]
    numbers: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A rectangle of the map.

    Attributes:
        similarity: [Tq, Tt] calibrated similarity.
        first_row, first_column: Position of its top-left cell in the whole map.
    """

    similarity: NDArray[np.float32]
    first_row: int
    first_column: int


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A line, and the pieces it was joined from, each with its part of the map."""

    line: AlignedLine
    pieces: tuple[tuple[Part, AlignedLine], ...]


def measure_numbers(
    parts: Sequence[Part],
    chains: Sequence[Chain],
    query: Sequenced,
    target: Sequenced,
) -> NDArray[np.float32]:
    """Compute the pair features `NUMBERS` from the map, from all lines, and along the strongest line.

    Args:
        parts: The computed parts of the map; elsewhere, similarity counts as 0, the value for unrelated frames.
        chains: Lines, strongest first.
        query, target: The compared frames.
    """
    numbers = dict.fromkeys(NUMBERS, 0.0)
    numbers |= _describe_map(parts, query, target)
    numbers["query area"], numbers["target area"] = _log_area(query.box), _log_area(target.box)
    if chains:
        numbers |= _describe_lines(chains, query, target)
        numbers |= _describe_best(chains[0], query, target)
    return np.array([numbers[name] for name in NUMBERS], np.float32)


def _log_area(box: Box) -> float:
    left, top, right, bottom = box
    return float(np.log(max((right - left) * (bottom - top), 1e-3)))


def _describe_map(parts: Sequence[Part], query: Sequenced, target: Sequenced) -> dict[str, float]:
    best = np.zeros(len(query), np.float32)
    is_known = np.zeros(len(query), np.bool_)
    for part in parts:
        rows = slice(part.first_row, part.first_row + len(part.similarity))
        highest = part.similarity.max(axis=1)
        best[rows] = np.where(is_known[rows], np.maximum(best[rows], highest), highest)
        is_known[rows] = True
    return {
        "best mean": float(best.mean()),
        "best high": float(np.quantile(best, 0.9)),
        "highest": float(best.max()),
        "query level": float(query.levels.mean()),
        "target level": float(target.levels.mean()),
        "query frames": float(np.log(len(query))),
        "target frames": float(np.log(len(target))),
    }


def _describe_lines(chains: Sequence[Chain], query: Sequenced, target: Sequenced) -> dict[str, float]:
    rows, columns = np.zeros(len(query), np.bool_), np.zeros(len(target), np.bool_)
    for chain in chains:
        rows[chain.line.rows] = True
        inside = chain.line.columns[chain.line.columns >= 0]
        columns[inside.min() : inside.max() + 1] = True
    lines = [chain.line for chain in chains]
    return {
        "lines": float(np.log(len(lines))),
        "all coverage": float(max(rows.mean(), columns.mean())),
        "second": lines[1].evidence / lines[0].evidence if len(lines) > 1 else 0.0,
    }


def _describe_best(chain: Chain, query: Sequenced, target: Sequenced) -> dict[str, float]:
    line = chain.line
    inside = line.columns >= 0
    rows, columns = line.rows[inside], line.columns[inside]
    pieces = [_describe_piece(part, piece, query, target) for part, piece in chain.pieces]
    values, elsewhere, has_far, back, peaks = (np.concatenate(each) for each in zip(*pieces, strict=True))
    seconds = float(query.times[rows[-1]] - query.times[rows[0]]) + query.period
    cosines = np.einsum("nd,nd->n", query.vectors[rows], target.vectors[columns], dtype=np.float32)
    return {
        "evidence": float(np.log1p(line.evidence)),
        "excess": float(values.mean()),
        "cosine": float(cosines.mean()),
        "low": float(np.quantile(values, 0.1)),
        "middle": float(np.median(values)),
        "high": float(np.quantile(values, 0.9)),
        "seconds": float(np.log(seconds)),
        "query coverage": len(rows) / len(query),
        "target coverage": float(len(np.unique(columns)) / len(target)),
        "speed": float(abs(np.log(abs(line.speed)))),
        "backwards": float(line.speed < 0),
        "back mean": float(back.mean()),
        "sharpness": float((values.mean() - elsewhere[has_far].mean()) if has_far.any() else 0.0),
        "elsewhere": float(elsewhere[has_far].mean() if has_far.any() else 0.0),
        "on line": float(peaks.mean()),
        "off line": float(has_far.mean()),
        "information": float(np.minimum(query.information[rows], target.information[columns]).mean()),
        **_describe_changes(query.vectors[rows], target.vectors[columns]),
        **_describe_shapes(query, rows, target, columns),
    }


def _describe_shapes(
    query: Sequenced, rows: NDArray[np.intp], target: Sequenced, columns: NDArray[np.intp]
) -> dict[str, float]:
    """Agreement of thumbnails along the line, and of their changes over time: two takes from the same camera always
    look similar, but their moving objects are in different positions."""
    if query.thumbnails is None or target.thumbnails is None:
        return {}
    shapes = compare_shapes(query.thumbnails[rows], target.thumbnails[columns])
    return {
        "shapes agree": shapes.agreement,
        "shapes agree upright": shapes.upright,
        "shapes change alike": shapes.change,
        "query shapes change": float(np.log1p(shapes.query_moves)),
        "target shapes change": float(np.log1p(shapes.target_moves)),
    }


def _describe_piece(part: Part, line: AlignedLine, query: Sequenced, target: Sequenced) -> tuple[NDArray[Any], ...]:
    """Five arrays for a line in one part of the map: similarity along the line; for each row, the highest similarity
    far from the line, and whether there are such cells; the highest similarity of each target frame; and for each row,
    whether its maximum is on the line."""
    inside = line.columns >= 0
    rows, columns = line.rows[inside] - part.first_row, line.columns[inside] - part.first_column
    similarity = part.similarity[rows]
    times = target.times[part.first_column : part.first_column + part.similarity.shape[1]]
    far = np.abs(times[None] - times[columns][:, None]) > _NEARBY * max(1.0, abs(line.speed))
    return (
        part.similarity[rows, columns],
        np.where(far, similarity, -1.0).max(axis=1),
        np.asarray(far.any(axis=1)),
        part.similarity[:, np.unique(columns)].max(axis=0),
        np.abs(times[similarity.argmax(axis=1)] - times[columns]) <= _NEARBY / 2,
    )


def _describe_changes(query: Vectors, target: Vectors) -> dict[str, float]:
    """How much each side changes along the line, and how well the changes agree in timing and amount."""
    picked = np.unique(np.linspace(0, len(query) - 1, _SAMPLED_FRAMES).astype(np.intp))
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

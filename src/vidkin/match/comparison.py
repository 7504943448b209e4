"""Comparison of two videos: the frame similarity map near the most-voted offsets, its lines, and pair features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.match.lines import MAX_GAP, AlignedLine, find_lines
from vidkin.match.maps import frame_map
from vidkin.match.measure import Chain, Measured, Part, Sequenced, measure_numbers
from vidkin.match.windows import MapWindow, find_windows

__all__ = ["MIN_SIMILARITY", "compare", "compare_views"]

MIN_SIMILARITY = 0.05
"""Minimum calibrated similarity of two frames to count as evidence of a match; unrelated frames are around 0."""
# Minimum frame similarity in an unedited copy. If even the most similar frames are below twice this value, the minimum
# is half of their similarity instead.
_PLAIN_SIMILARITY = 0.25

# Number of view pairs to compare in detail: those with the most similar frames.
_MAX_VIEWS = 2
# Number of most similar frames that decide whether a view pair is worth comparing.
_ALIKE_FRAMES = 4


@check_arguments
def compare_views(
    query: Sequence[Sequenced], target: Sequence[Sequenced], *, least_alike: float = 0.2
) -> Iterator[tuple[Measured, Sequenced, Sequenced]]:
    """Compare the views of two videos: their whole frames, and boxes within them that may contain another video.

    View pairs are ranked by the mean similarity of each frame to its best match in the other view; the top two are
    compared in detail.

    Args:
        query, target: The views of each video.
        least_alike: Minimum mean similarity of the four most similar frames. View pairs below it are skipped, because
            they rarely reach a score of 0.2.

    Yields:
        Each comparison with its query and target frames, most promising first; nothing if few frames are similar.
    """
    query, target = (tuple(side for side in sides if len(side)) for sides in (query, target))
    if not query or not target:
        return
    # Most views have few frames, so one matrix product over all query views is faster.
    vectors, levels = np.concatenate([one.vectors for one in query]), np.concatenate([one.levels for one in query])
    starts = np.cumsum([0, *map(len, query)])
    rows = []
    for other in target:
        similarity = np.maximum(frame_map(vectors, other.vectors, levels, other.levels), 0.0)
        of_query, of_target = similarity.max(axis=1), np.maximum.reduceat(similarity, starts[:-1], axis=0)
        of_views = np.array([_means(of_query[first:end, None])[0] for first, end in pairwise(starts)])
        rows.append(np.maximum(of_views, _means(of_target.T)))
    means, alike = np.moveaxis(np.array(rows), 2, 0)
    # Rounded: of pairs that are equally similar, such as the views of identical frames, the whole frames come first.
    order = np.argsort(-means.round(3), axis=None, kind="stable")
    pairs = [divmod(place, len(query)) for place in order.tolist()]
    for column, row in [pair for pair in pairs if alike[pair] >= least_alike][:_MAX_VIEWS]:
        one, other = query[row], target[column]
        similarity = frame_map(one.vectors, other.vectors, one.levels, other.levels)
        yield compare(one, other, find_windows(one, other, similarity, MIN_SIMILARITY)), one, other


def _means(best: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean similarity [V, 2] over all T frames, and over only the most similar ones, from values [T, V]."""
    alike = np.sort(best, axis=0)[-_ALIKE_FRAMES:]
    return np.stack([best.mean(axis=0), alike.mean(axis=0)], axis=1)


@check_arguments
def compare(
    query: Sequenced,
    target: Sequenced,
    near: Sequence[MapWindow] | None = None,
) -> Measured:
    """Compare two videos.

    Args:
        query: Frames of the first video.
        target: Frames of the second video.
        near: Windows to compare (see :func:`find_windows`), which bound the cost for long files. Lines that continue in
            the next window are joined. None compares every pair of frames.

    Raises:
        InvalidArgumentError: A video has no frames, or a window is empty or exceeds the videos.
    """
    if not len(query) or not len(target):
        raise InvalidArgumentError(f"both videos must have frames, got {len(query)} and {len(target)}")
    parts: list[Part] = []
    pieces: list[tuple[Part, AlignedLine]] = []
    for window in near if near is not None else (MapWindow(0, len(query), 0, len(target)),):
        is_inside = window.query_end <= len(query) and window.target_end <= len(target)
        if not (
            is_inside and 0 <= window.query_first < window.query_end and 0 <= window.target_first < window.target_end
        ):
            raise InvalidArgumentError(
                f"{window} must not be empty and must lie within {len(query)} query and {len(target)} target frames"
            )
        part, lines = _compare_window(query, target, window)
        parts.append(part)
        pieces += [(part, line) for line in lines]
    chains = _join(pieces, query, target)
    return Measured(
        tuple(chain.line for chain in chains),
        tuple(_mean_similarity(chain) for chain in chains),
        measure_numbers(parts, chains, query, target),
    )


def _compare_window(query: Sequenced, target: Sequenced, window: MapWindow) -> tuple[Part, list[AlignedLine]]:
    """Return the similarity map of a window, and its lines with frame positions relative to the whole videos."""
    some = query.cut(window.query_first, window.query_end)
    other = target.cut(window.target_first, window.target_end)
    similarity = frame_map(some.vectors, other.vectors, some.levels, other.levels)
    weights = np.minimum(some.information[:, None], other.information[None])
    highest = float(similarity.max())
    if highest <= MIN_SIMILARITY:
        return Part(similarity, window.query_first, window.target_first), []
    above = similarity - np.float32(min(_PLAIN_SIMILARITY, highest / 2))
    evidence = above * np.where(above > 0, weights, np.float32(1.0))
    lines = [
        AlignedLine(
            line.speed,
            line.offset,
            line.rows + window.query_first,
            np.where(line.columns >= 0, line.columns + window.target_first, -1),
            line.evidence,
        )
        for line in find_lines(evidence, some.times, other.times)
    ]
    return Part(similarity, window.query_first, window.target_first), lines


def _join(pieces: Sequence[tuple[Part, AlignedLine]], query: Sequenced, target: Sequenced) -> list[Chain]:
    """Join lines that continue in neighboring windows; return the resulting lines, strongest first."""
    chains: list[list[tuple[Part, AlignedLine]]] = []
    for part, line in sorted(pieces, key=lambda piece: int(piece[1].rows[0])):
        for chain in chains:
            if chain[-1][0] is not part and _continues(chain[-1][1], line, query, target):
                chain.append((part, line))
                break
        else:
            chains.append([(part, line)])
    joined = [Chain(_merge_lines([line for _, line in chain], query, target), tuple(chain)) for chain in chains]
    return sorted(joined, key=lambda chain: -chain.line.evidence)


def _continues(line: AlignedLine, after: AlignedLine, query: Sequenced, target: Sequenced) -> bool:
    start = float(query.times[after.rows[0]])
    if not 0 < start - query.times[line.rows[-1]] <= MAX_GAP + query.period or line.speed * after.speed < 0:
        return False
    expected, actual = (each.offset + each.speed * start for each in (line, after))
    # Each line may be off by one frame.
    return abs(expected - actual) <= 2 * max(query.period, target.period)


def _merge_lines(lines: Sequence[AlignedLine], query: Sequenced, target: Sequenced) -> AlignedLine:
    if len(lines) == 1:
        return lines[0]
    rows = np.concatenate([line.rows for line in lines])
    columns = np.concatenate([line.columns for line in lines])
    speed, offset = lines[0].speed, lines[0].offset
    if any(line.speed != 1.0 for line in lines):
        inside = columns >= 0
        speed, offset = (
            float(value) for value in np.polyfit(query.times[rows[inside]], target.times[columns[inside]], 1)
        )
    return AlignedLine(speed, offset, rows, columns, sum(line.evidence for line in lines))


def _mean_similarity(chain: Chain) -> float:
    values = []
    for part, line in chain.pieces:
        inside = line.columns >= 0
        values.append(part.similarity[line.rows[inside] - part.first_row, line.columns[inside] - part.first_column])
    return float(np.concatenate(values).mean())

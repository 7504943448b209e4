"""What changes at once in the same regions of two pictures, however much of them is covered or blended over.

Shapes: V views of a video, of which K are regions that both videos have; n and m frames; D dimension.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import unchecked
from vidkin.similarity.alignment import align
from vidkin.similarity.contracts import PairScore
from vidkin.similarity.evidence import (
    MOST_KEPT,
    ComparedVideo,
    Evidence,
    ScoreSettings,
    count_different,
    count_moving,
    find_news,
    match_frames,
    stretch_score,
)

# Called for every pair of videos.
_align = unchecked(align)

# How many of the regions count, least of them that both videos must have in common, least number of frames, and
# segments looked at.
_REGIONS_COUNTED, _FEWEST_REGIONS, _FEWEST_FRAMES, _SEGMENTS_LOOKED_AT = 8, 12, 5, 2
# Size of a change of a descriptor that is as likely noise, the brightness of the map, and the least seconds above its
# threshold.
_NOISE, _BRIGHT, _LEAST_SECONDS = 0.05, 2.0, 1.0
# Share of the regions that have to move for all of the agreement to count.
_LEAST_MOVING = 0.15
# Tolerance in shares of the picture within which two boxes are the same.
_SAME_REGION = 0.02


def score_changes(
    query: ComparedVideo, targets: Sequence[ComparedVideo], settings: ScoreSettings, mirrored: bool
) -> list[PairScore | None]:
    """See :meth:`vidkin.similarity.CopyScorer.score_changes`; None if no stretch of both changes together."""
    seconds = [min(_described_seconds(query), _described_seconds(target)) for target in targets]
    results: list[PairScore | None] = [None] * len(targets)
    window, changes = 0, None
    # Of one length after the other: the query's changes over windows of that length are computed once.
    for place in sorted(range(len(targets)), key=seconds.__getitem__):
        target = targets[place]
        views = _shared_regions(query, target)
        if len(views) < _FEWEST_REGIONS:
            continue
        wanted = _window(query, seconds[place])
        if changes is None or wanted != window:
            window, changes = wanted, _region_changes(query, wanted)
        others = _region_changes(target, _window(target, seconds[place]))
        results[place] = _score_changes(query, target, views, (changes, others), settings, mirrored)
    return results


def _score_changes(
    query: ComparedVideo,
    target: ComparedVideo,
    views: NDArray[np.int64],
    changes: tuple[_Changes, _Changes],
    settings: ScoreSettings,
    mirrored: bool,
) -> PairScore | None:
    least = np.float32(math.sqrt(_LEAST_MOVING * len(views)))
    # Of regions that stand still nothing is expected, if some others move.
    sizes = [np.maximum(np.sqrt(side.energy[:, views].sum(axis=1)), least) for side in changes]
    one, other = (
        (side.values if len(views) == side.values.shape[1] else side.values[:, views]).reshape(len(side.values), -1)
        for side in changes
    )
    frame_map = np.clip(one @ other.T * (np.float32(_BRIGHT) / sizes[0][:, None] / sizes[1]), 0, 1)
    first, second = query.seen, target.seen
    if least_seconds(frame_map - settings.region_threshold, first.period, second.period) < _LEAST_SECONDS:
        return None
    segments = _align(
        frame_map,
        first.timestamps,
        second.timestamps,
        query_weights=first.information,
        target_weights=second.information,
        threshold=settings.region_threshold,
        maximum_segments=_SEGMENTS_LOOKED_AT,
        mirrored=mirrored,
    )
    news = find_news(first, settings.still), find_news(second, settings.still)
    ends = [math.inf if side.features.end is None else side.features.end for side in (query, target)]
    best, kept = 0.0, []
    for segment in segments:
        rows, columns = match_frames(first, second, segment)
        certainty = _certainty(query, target, views, (rows, columns), settings)
        flat = np.full(frame_map.shape, certainty, np.float32)
        score = Evidence.of(flat, first, second, rows, columns, news).score(1.0, settings)
        if score > 0:
            best = max(best, score)
            kept.append(replace(segment.cut(*ends), score=stretch_score(certainty)))
    if not kept:
        return None
    shown = of_every_frame(frame_map, 0, query.described, len(query.whole))
    shown = of_every_frame(shown, 1, target.described, len(target.whole))
    return PairScore(best, tuple(sorted(kept, key=lambda segment: -segment.score)), shown)


def _certainty(
    query: ComparedVideo,
    target: ComparedVideo,
    views: NDArray[np.int64],
    matched: tuple[NDArray[np.int64], NDArray[np.int64]],
    settings: ScoreSettings,
) -> float:
    """How certain it is that a stretch shows the same, in [0, 1], from described frames of both that match."""
    first, second = (
        values - values.mean(0)
        for values in (
            _region_values(side)[places][:, views] for side, places in zip((query, target), matched, strict=True)
        )
    )
    frames = min(count_different(matched[1]), count_moving(first), count_moving(second))
    if frames < _FEWEST_FRAMES:
        return 0.0
    correlations = _correlations(first, second, settings)
    for here, there in _mirror_images(query, views):
        # What is alike on both sides agrees in a mirror image, too; but the left side agrees more with the right one.
        if correlations[here].mean() < _correlations(first[:, here], second[:, there], settings).mean():
            return 0.0
    rho = float(np.sort(correlations)[-_REGIONS_COUNTED:].mean())
    return min(1.0, max(0.0, (rho - settings.region_chance / math.sqrt(frames - 1)) / settings.region_full))


def _correlations(
    first: NDArray[np.float32], second: NDArray[np.float32], settings: ScoreSettings
) -> NDArray[np.float32]:
    """Correlations [K] of changes [n, K, D], less where hardly anything changes."""
    energies = [np.einsum("nkd,nkd->k", change, change) for change in (first, second)]
    least = np.minimum(*energies) / len(first)
    correlations = np.einsum("nkd,nkd->k", first, second) / np.sqrt(energies[0] * energies[1] + 1e-9)
    return np.asarray(correlations * (least**2 / (least**2 + settings.region_energy**2)))


def _mirror_images(
    side: ComparedVideo, views: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each way to flip a picture, places in ``views`` of regions that this moves, and of those it moves them to."""
    assert side.features.boxes is not None
    boxes = side.features.boxes[side.described[0]].astype(np.float32)
    whole, boxes = boxes[0], boxes[views]
    for axes in ((0,), (1,), (0, 1)):
        flipped = boxes.copy()
        for axis in axes:
            flipped[:, [axis, axis + 2]] = whole[axis] + whole[axis + 2] - boxes[:, [axis + 2, axis]]
        same = np.abs(boxes[:, None] - flipped).max(axis=2) < _SAME_REGION
        np.fill_diagonal(same, False)
        here, there = np.nonzero(same)
        if len(here):
            yield here, there


def _region_values(side: ComparedVideo) -> NDArray[np.float32]:
    """Descriptors [n, V, D] of all views in the described frames."""
    values: NDArray[np.float32] = side.features.values[side.described]
    return values.reshape(*values.shape[:2], -1)


@dataclass(frozen=True, slots=True)
class _Changes:
    """Directions in which every view differs from its mean over a window of frames; short where that may be noise.

    Attributes:
        values: [n, V, D] float32.
        energy: [n, V] float32, their squared lengths.
    """

    values: NDArray[np.float32]
    energy: NDArray[np.float32]


def _described_seconds(side: ComparedVideo) -> float:
    return len(side.described) * side.part_period


def _window(side: ComparedVideo, seconds: float) -> int:
    """Frames over which the mean of a video is taken that is compared with one of so many seconds."""
    return max(_FEWEST_FRAMES, round(seconds / side.part_period))


def _region_changes(side: ComparedVideo, window: int) -> _Changes:
    """Kept where the window is the whole video, as it is for one that is compared with longer ones."""
    features, count = side.features, len(side.described)
    if window < count or features.values.nbytes > MOST_KEPT:
        return _changes_over(_region_values(side), window)
    return features.once(_region_changes, lambda: _changes_over(_region_values(side), count))


def _changes_over(values: NDArray[np.float32], window: int) -> _Changes:
    """See :class:`_Changes`, for descriptors [n, V, D]."""
    if window >= len(values):
        change = values - values.mean(axis=0)
    else:
        sums = np.zeros((len(values) + 1, *values.shape[1:]))
        for place, row in enumerate(values):  # a fifth of the time of `cumsum`, which goes down columns
            np.add(sums[place], row, out=sums[place + 1])
        means = np.subtract(sums[window:], sums[:-window])
        means /= window
        first = np.clip(np.arange(len(values)) - window // 2, 0, len(values) - window)
        change = values - means.astype(np.float32)[first]
    length = np.sqrt(np.einsum("nvd,nvd->nv", change, change))
    length += np.float32(_NOISE)
    change /= length[:, :, None]
    return _Changes(change, np.square(1 - np.float32(_NOISE) / length))


def _shared_regions(query: ComparedVideo, target: ComparedVideo) -> NDArray[np.int64]:
    """Views that are the same part of both pictures."""
    one, other = _placed_regions(query), _placed_regions(target)
    count = min(len(one), len(other))
    return np.flatnonzero(np.abs(one[:count] - other[:count]).max(axis=1, initial=0.0) < _SAME_REGION)


def _placed_regions(side: ComparedVideo) -> NDArray[np.float32]:
    """Boxes [V, 4] of the views as shares of the whole picture, none without parts."""
    features = side.features
    if features.boxes is None or not len(side.described):
        return np.zeros((0, 4), np.float32)
    first = features.boxes[side.described[0]].astype(np.float32)

    def place() -> NDArray[np.float32]:
        corner, size = first[0, [0, 1, 0, 1]], np.tile(first[0, 2:] - first[0, :2], 2)
        # A view that does not exist is nowhere near any other.
        placed = np.where(first.any(axis=1, keepdims=True), (first - corner) / np.maximum(size, 1e-6), np.nan)
        return np.asarray(placed, np.float32)

    return features.once(_placed_regions, place)


def least_seconds(excess: NDArray[np.float32], period: float, other_period: float) -> NDArray[np.float32]:
    """The smaller of two sums over evidence [..., n, T]: the best cells of rows and of columns, in seconds."""
    rows = np.maximum(excess.max(-1), 0).sum(-1) * np.float32(period)
    columns = np.maximum(excess.max(-2), 0).sum(-1) * np.float32(other_period)
    return np.asarray(np.minimum(rows, columns))


def of_every_frame(
    frame_map: NDArray[np.float32], axis: int, described: NDArray[np.int64], count: int
) -> NDArray[np.float32]:
    """The map with all ``count`` frames along an axis: those not described repeat the nearest described one."""
    if len(described) == count:
        return frame_map
    nearest = np.abs(np.arange(count)[:, None] - described).argmin(1)
    return np.asarray(frame_map.take(nearest, axis))

"""Precision, recall, F-score and average precision of copied segments, and average precision of events in time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class SegmentScores:
    """Mean segment precision and recall over video pairs.

    Attributes:
        precision: Value in [0, 1]; NaN if no pair has predictions.
        recall: Value in [0, 1]; NaN if no pair has true segments.
    """

    precision: float
    recall: float

    @property
    def f_score(self) -> float:
        """Harmonic mean of precision and recall; 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total != 0 else 0.0


@check_arguments
def segment_precision_recall(predicted: torch.Tensor, truth: torch.Tensor) -> tuple[float, float]:
    """Precision and recall of the copied segments of one video pair (VCSL; He et al., CVPR 2022).

    A segment is a box in the plane (query time, reference time). On each axis, precision is the length of the
    predicted boxes that is covered by their intersections with true boxes, divided by the total length of the
    predicted boxes. The precisions of the two axes are multiplied. For recall, the roles of the boxes are swapped.
    Several short boxes along one long copy are therefore as good as a single long box.

    Args:
        predicted: [N, 4] boxes (query start, reference start, query end, reference end) in seconds.
        truth: [M, 4] boxes.

    Returns:
        (precision, recall) in [0, 1]: (1, 0) if there are no predictions but true boxes, (0, 1) if there are
        predictions but no true boxes, (1, 1) if there are neither.

    Raises:
        InvalidArgumentError: A tensor is not [N, 4], or a box ends before it starts.
    """
    boxes, true_boxes = _boxes("predicted", predicted), _boxes("truth", truth)
    if len(boxes) == 0 or len(true_boxes) == 0:
        return float(len(boxes) == 0), float(len(true_boxes) == 0)
    return _coverage(boxes, true_boxes), _coverage(true_boxes, boxes)


@check_arguments
def segment_scores(
    predicted: Sequence[torch.Tensor],
    truth: Sequence[torch.Tensor],
    *,
    average: Literal["micro", "macro"] = "micro",
    groups: Sequence[Hashable] | None = None,
) -> SegmentScores:
    """Segment precision and recall over many video pairs.

    Args:
        predicted: Predicted boxes [N, 4] of each pair in seconds, see `segment_precision_recall`.
        truth: True boxes [M, 4] of each pair.
        average: ``"micro"``: precision is averaged over pairs that have predictions, recall over pairs that have
            true boxes. ``"macro"``: the mean over groups of the mean over all pairs in a group, where a pair without
            predictions has precision 1 and a pair without true boxes has recall 1.
        groups: For macro, the query set of each pair; by default, each pair is its own group.

    Raises:
        InvalidArgumentError: Lengths differ, or a box is invalid.
    """
    check_choice("average", average, ("micro", "macro"))
    if len(predicted) != len(truth) or (groups is not None and len(groups) != len(truth)):
        raise InvalidArgumentError(
            f"predicted, truth and groups must have the same length, got {len(predicted)}, {len(truth)} and "
            f"{'none' if groups is None else len(groups)}"
        )
    pairs = [segment_precision_recall(p, t) for p, t in zip(predicted, truth, strict=True)]
    if average == "micro":
        return SegmentScores(
            _mean([pair[0] for pair, boxes in zip(pairs, predicted, strict=True) if len(boxes)]),
            _mean([pair[1] for pair, boxes in zip(pairs, truth, strict=True) if len(boxes)]),
        )
    members: dict[Hashable, list[tuple[float, float]]] = {}
    for number, pair in enumerate(pairs):
        members.setdefault(number if groups is None else groups[number], []).append(pair)
    return SegmentScores(
        _mean([_mean([pair[0] for pair in group]) for group in members.values()]),
        _mean([_mean([pair[1] for pair in group]) for group in members.values()]),
    )


@check_arguments
def segment_f_score(
    predicted: Sequence[torch.Tensor],
    truth: Sequence[torch.Tensor],
    *,
    average: Literal["micro", "macro"] = "micro",
    groups: Sequence[Hashable] | None = None,
) -> float:
    """Harmonic mean of segment precision and recall in [0, 1]; arguments as for `segment_scores`."""
    return segment_scores(predicted, truth, average=average, groups=groups).f_score


@check_arguments
def segment_average_precision(
    predicted: Sequence[torch.Tensor], scores: Sequence[torch.Tensor], truth: Sequence[torch.Tensor]
) -> float:
    """Average precision of copied segments over many video pairs (VSC2022; Pizzi et al., CVIU 2024).

    The boxes of all pairs form one list in descending order of score. After each group of equal scores, on each axis:
    ``P`` = length of the true boxes covered by the boxes so far / total length of the boxes so far, ``R`` = the same
    covered length / total length of all true boxes. Lengths are those of unions within a pair, summed over pairs.
    ``AP`` is the sum of ``sqrt(P_q P_r)`` times the increase of ``sqrt(R_q R_r)``.

    Args:
        predicted: Predicted boxes [N, 4] of each pair in seconds, see `segment_precision_recall`.
        scores: Scores [N] of the boxes of each pair, higher is more certain.
        truth: True boxes [M, 4] of each pair.

    Returns:
        A float in [0, 1]; NaN if there are no true boxes.

    Raises:
        InvalidArgumentError: Lengths differ, or a box is invalid.
    """
    if not len(predicted) == len(scores) == len(truth):
        raise InvalidArgumentError(
            f"predicted, scores and truth must have the same length, got {len(predicted)}, {len(scores)} and "
            f"{len(truth)}"
        )
    predictions = [_boxes("predicted", boxes) for boxes in predicted]
    true_boxes = [_boxes("truth", boxes) for boxes in truth]
    for boxes, values in zip(predictions, scores, strict=True):
        if tuple(values.shape) != (len(boxes),):
            raise InvalidArgumentError(f"scores must be [{len(boxes)}], one per box, got {list(values.shape)}")
    lengths = [sum(_union_along(boxes, axis) for boxes in true_boxes) for axis in (0, 1)]
    if min(lengths, default=0) <= 0:
        return float("nan")
    ranked = sorted(
        ((float(value), pair, row) for pair, values in enumerate(scores) for row, value in enumerate(values)),
        key=lambda item: -item[0],
    )
    rows: dict[int, list[int]] = {}
    covered: dict[int, list[tuple[float, float]]] = {}
    total, recall = 0.0, 0.0
    sums = [(0.0, 0.0), (0.0, 0.0)]
    for position, (score, pair, row) in enumerate(ranked):
        rows.setdefault(pair, []).append(row)
        before = covered.get(pair, [(0.0, 0.0), (0.0, 0.0)])
        covered[pair] = [_overlap(predictions[pair][rows[pair]], true_boxes[pair], axis) for axis in (0, 1)]
        sums = [
            (held[0] + new[0] - old[0], held[1] + new[1] - old[1])
            for held, new, old in zip(sums, covered[pair], before, strict=True)
        ]
        if position + 1 < len(ranked) and ranked[position + 1][0] == score:
            continue
        (met_query, all_query), (met_reference, all_reference) = sums
        reached = (met_query / lengths[0] * met_reference / lengths[1]) ** 0.5
        total += (met_query / all_query * met_reference / all_reference) ** 0.5 * (reached - recall)
        recall = reached
    return total


def _overlap(boxes: torch.Tensor, truth: torch.Tensor, axis: int) -> tuple[float, float]:
    """Return the length that boxes share with the true boxes they intersect, and the length of the boxes, both as
    unions."""
    low = torch.maximum(boxes[:, None, :2], truth[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], truth[None, :, 2:])
    real = truth[(high > low).all(dim=2).any(dim=0)]
    own, others = _union_along(boxes, axis), _union_along(real, axis)
    return own + others - _union_along(torch.cat([boxes, real]), axis), own


def _union_along(boxes: torch.Tensor, axis: int) -> float:
    return _union_length(boxes[:, axis].tolist(), boxes[:, 2 + axis].tolist())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _boxes(name: str, boxes: torch.Tensor) -> torch.Tensor:
    boxes = boxes.detach().double().cpu()
    if boxes.numel() == 0:
        return boxes.reshape(0, 4)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InvalidArgumentError(f"{name} must be [N, 4] boxes, got {list(boxes.shape)}")
    if bool((boxes[:, 2:] <= boxes[:, :2]).any()):
        raise InvalidArgumentError(
            f"{name} must contain boxes (query start, reference start, query end, reference end) that end after they "
            "start"
        )
    return boxes


def _coverage(boxes: torch.Tensor, others: torch.Tensor) -> float:
    """Compute the fraction of the boxes' length that the others cover, multiplied over the two axes."""
    low = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    meets = (high > low).all(dim=2)
    share = 1.0
    for axis in (0, 1):
        covered = sum(
            _union_length(low[box, meets[box], axis].tolist(), high[box, meets[box], axis].tolist())
            for box in range(len(boxes))
        )
        share *= covered / (boxes[:, 2 + axis] - boxes[:, axis]).sum().item()
    return share


def _union_length(starts: list[float], ends: list[float]) -> float:
    total, reached = 0.0, float("-inf")
    for start, end in sorted(zip(starts, ends, strict=True)):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


@check_arguments
def temporal_average_precision(
    times: torch.Tensor,
    confidences: torch.Tensor,
    truth: torch.Tensor,
    *,
    tolerance: float | Sequence[float],
    videos: torch.Tensor | None = None,
    truth_videos: torch.Tensor | None = None,
    interpolation: Literal["none", "eleven-point"] = "none",
) -> float:
    """Average precision of spotted moments (SoccerNet, CVPRW 2018; v2 2021).

    Predictions for all videos form one list in descending order of confidence (ties in the given order). A prediction
    is correct if the nearest unmatched event in its video satisfies |t - t'| <= tolerance / 2; it then matches that
    event. Otherwise, it is a false positive. AP = sum of the precisions at correct predictions / number of events.

    Args:
        times: [P] predicted times in seconds.
        confidences: [P] floating point, any range.
        truth: [E] times of the labeled events in seconds.
        tolerance: Full width delta of the window in seconds; for several values, the result is the mean of their APs
            ("average mAP"; SoccerNet uses 5, 10, ..., 60).
        videos: [P] integers, the video of each prediction; default: all in one video.
        truth_videos: [E] integers, the video of each event.
        interpolation: ``"none"``: the area under the step curve. ``"eleven-point"``: the mean over recall 0, 0.1,
            ..., 1 of the best precision at that recall or higher, as in SoccerNet's published results.

    Returns:
        A float in [0, 1]; NaN if there are no events.

    Raises:
        InvalidArgumentError: Shapes do not match, or a tolerance is negative.
    """
    check_choice("interpolation", interpolation, ("none", "eleven-point"))
    videos = torch.zeros_like(times, dtype=torch.int64) if videos is None else videos
    truth_videos = torch.zeros_like(truth, dtype=torch.int64) if truth_videos is None else truth_videos
    for name, one, other in (
        ("confidences", confidences, times),
        ("videos", videos, times),
        ("truth_videos", truth_videos, truth),
    ):
        if one.shape != other.shape or other.ndim != 1:
            raise InvalidArgumentError(
                f"{name} must be one per time, got {list(one.shape)} for times {list(other.shape)}"
            )
    if bool(confidences.isnan().any()):
        raise InvalidArgumentError("confidences must not contain NaN, which cannot be ranked")
    widths = list(tolerance) if isinstance(tolerance, Sequence) else [tolerance]
    if not widths or min(widths) < 0:
        raise InvalidArgumentError(f"tolerance must be at least 0 s, got {tolerance}")
    if len(truth) == 0:
        return float("nan")
    order = confidences.sort(descending=True, stable=True).indices
    spotted = list(zip(videos[order].tolist(), times[order].double().tolist(), strict=True))
    events: dict[int, list[float]] = {}
    for video, time in zip(truth_videos.tolist(), truth.double().tolist(), strict=True):
        events.setdefault(video, []).append(time)
    values = []
    for width in widths:
        free = {video: list(times) for video, times in events.items()}
        hits = []
        for video, time in spotted:
            left = free.get(video, [])
            nearest = min(range(len(left)), key=lambda e: abs(left[e] - time), default=None)
            hit = nearest is not None and abs(left[nearest] - time) <= width / 2
            if nearest is not None and hit:
                left.pop(nearest)
            hits.append(hit)
        right = torch.tensor(hits, dtype=torch.bool)
        precision, hits_so_far = right.cumsum(0).double() / torch.arange(1, len(right) + 1), right.cumsum(0)
        if interpolation == "none":
            values.append((precision * right).sum().item() / len(truth))
            continue
        # Comparing recall in integers, found * 10 >= step * events, avoids rounding.
        reached = [hits_so_far * 10 >= step * len(truth) for step in range(11)]
        values.append(sum(precision[ranks].max().item() if bool(ranks.any()) else 0.0 for ranks in reached) / 11)
    return sum(values) / len(values)

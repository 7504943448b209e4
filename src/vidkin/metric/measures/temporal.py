"""Average precision of events in time, as action spotting measures it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from vidkin._base.checks import check_choice
from vidkin.errors import InvalidArgumentError

__all__ = ["temporal_average_precision"]


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

    Predictions of all videos form one list in order of falling confidence (ties in the given order). Each
    takes the nearest event of its video that is still free, if |t - t'| <= tolerance / 2, and is then correct;
    otherwise it is a false alarm. AP = sum over correct predictions of precision there / number of events.

    Args:
        times: [P] seconds.
        confidences: [P] floating point, any range.
        truth: [E] seconds of the labeled events.
        tolerance: Full width delta of the window in seconds; several give the mean of their APs ("average
            mAP", SoccerNet uses 5, 10, ..., 60).
        videos: [P] integers, the video of each prediction; default all of one video.
        truth_videos: [E] integers.
        interpolation: ``"none"``: the area under the steps. ``"eleven-point"``: the mean over recall 0, .1,
            ..., 1 of the best precision at that recall or more, which SoccerNet's published figures use.

    Returns:
        A float in [0, 1]; nan when there is no event.

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
        raise InvalidArgumentError("confidences must not hold NaN, which cannot be ranked")
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
        # Recall is compared in whole events: found * 10 >= step * events has no rounding.
        reached = [hits_so_far * 10 >= step * len(truth) for step in range(11)]
        values.append(
            sum(precision[ranks].max().item() if bool(ranks.any()) else 0.0 for ranks in reached) / 11
        )
    return sum(values) / len(values)

"""Scores of unrelated training videos, which set the scale of a comparator's scores beside background photographs."""

from __future__ import annotations

from itertools import groupby

import torch

from vidkin.models.comparator.comparator import Comparator
from vidkin.training.clips.batch import make_batch
from vidkin.training.clips.data import ClipData

__all__ = ["raise_unrelated"]

# Fewer videos say little about the 99th percentile of their pairs; more cost the square of their number.
_FEWEST, _MOST = 12, 64


@torch.no_grad()
def raise_unrelated(
    unrelated: tuple[float, float], comparator: Comparator, data: ClipData
) -> tuple[float, float]:
    """Raise the scores of unrelated photographs to those of unrelated training videos, where these are higher.

    A clip of each of up to 64 videos is compared with those of all others. Pairs closer to the median score of a clip
    with itself than to ``u`` are left out: copies that the folder holds say nothing about unrelated videos.

    Args:
        unrelated: Median m and 99th percentile u of photographs, raw scores in [-1, 1].
        comparator: The trained comparator, on the CPU.
        data: Its training videos.

    Returns:
        m, and the larger of u and the 99th percentile of the pairs; unchanged with fewer than 12 videos.
    """
    median, high = unrelated
    windows = [next(own) for _, own in groupby(data.windows, key=lambda window: window.video)]
    if len(windows) < _FEWEST:
        return unrelated
    chosen = (
        [windows[position * len(windows) // _MOST] for position in range(_MOST)]
        if len(windows) > _MOST
        else windows
    )
    stored = data.stored
    clips = [
        data.maker.describe(data.maker.edit(window, 0, [window]))
        if stored is None
        else stored[window.number][0]
        for window in chosen
    ]
    batch = make_batch(clips)
    training = comparator.training
    scores = comparator.eval()(batch.values, batch.lengths).scores * 2 - 1
    comparator.train(training)
    pairs = scores[batch.relevance == 0]
    pairs = pairs[pairs < (high + float(scores.diagonal().median())) / 2]
    return median, max(high, float(pairs.quantile(0.99))) if len(pairs) else high

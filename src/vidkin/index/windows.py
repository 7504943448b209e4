"""Which frames are taken of a video, and how alike neighbours become windows for the first stage of search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.index.storage.contract import WindowVectors

if TYPE_CHECKING:
    from vidkin.index.storage.contract import StoredFeatures
    from vidkin.similarity import FrameFeatures

__all__ = ["frame_vectors", "query_rate", "sampling_rate", "window_vectors"]

# A short video is sampled more densely until it has so many frames, but not beyond so many a second.
_FEWEST_FRAMES = 8
_DENSEST_RATE = 4.0
# A query has up to so many frames, so that one of them is near each frame of a target that moves fast.
_QUERY_FRAMES = 90


def sampling_rate(duration: float, base: float = 1.0) -> float:
    """Frames per second at which a video is sampled: ``base``, and more for very short videos.

    A video (or stretch of one) that would have fewer than 8 frames is sampled so that it has 8, at no more
    than 4 frames per second: a 4 s clip at 2, a 2 s clip and all shorter ones at 4.

    Args:
        duration: Seconds; 0 or less means unknown and very short.
        base: Frames per second for ordinary videos, above 0.
    """
    if not base > 0:
        raise InvalidArgumentError(f"the sampling rate is {base}, allowed is a number above 0")
    if duration * base >= _FEWEST_FRAMES:
        return base
    densest = max(_DENSEST_RATE, base)
    return densest if duration <= 0 else min(densest, _FEWEST_FRAMES / duration)


def query_rate(duration: float, base: float = 1.0) -> float:
    """Frames per second at which a query is sampled: more densely than what is stored, up to 90 frames.

    The frames of two copies are taken at different moments, up to half a period apart, and a moving camera has gone
    on by then. A query of 22 s or less is sampled at 4 frames per second, a minute at 1.5, 90 s at ``base``.

    Args:
        duration: Seconds; 0 or less means unknown and very short.
        base: Frames per second for ordinary videos, above 0.
    """
    least = sampling_rate(duration, base)
    densest = max(_DENSEST_RATE, base)
    return densest if duration <= 0 else max(least, min(densest, _QUERY_FRAMES / duration))


def frame_vectors(values: torch.Tensor) -> torch.Tensor:
    """Regions [T, R, D] to one unit vector a frame [T, D]: their mean, normalised; zero where all are zero."""
    return torch.nn.functional.normalize(values.float().mean(dim=1), dim=-1)


def window_vectors(
    features: StoredFeatures | FrameFeatures,
    *,
    alike: float = 0.9,
    longest: float = 10.0,
    least_information: float = 0.05,
) -> WindowVectors:
    """Merge runs of alike frames, so that a still minute costs the first stage six vectors and not sixty.

    A frame joins the open window if its vector (:func:`frame_vectors`) has a cosine of at least ``alike``
    with the window's mean so far and the window stays within ``longest`` seconds; otherwise it opens the
    next one. A frame with less than ``least_information`` belongs to no window and closes the open one.
    A window's vector is the normalised mean of its frames; it ends when the frame after its last begins
    (the last frame of a video lasts as long as the one before).

    Args:
        features: T frames of R regions with D dimensions; D is the dimension E of the windows.
        alike: Cosine in [-1, 1]; higher makes more windows.
        longest: Seconds.
        least_information: In [0, 1]; 0 gives black frames windows too.
    """
    values = features.values if features.values.ndim == 3 else features.values[:, 0]
    vectors = frame_vectors(values)
    starts = features.timestamps.double()
    ends = _frame_ends(starts)
    usable = ((features.information >= least_information) & (vectors.norm(dim=-1) > 0.5)).tolist()
    seconds = list(zip(starts.tolist(), ends.tolist(), strict=True))
    spans: list[tuple[int, int]] = []
    total: torch.Tensor | None = None
    for at, vector in enumerate(vectors):
        if not usable[at]:
            total = None
            continue
        if total is not None and (
            seconds[at][1] - seconds[spans[-1][0]][0] <= longest + 1e-6
            # vector . mean / |mean|, with the sum in place of the mean.
            and float(vector @ total) >= alike * float(total.norm())
        ):
            total = total + vector
            spans[-1] = (spans[-1][0], at)
        else:
            total = vector
            spans.append((at, at))
    first = torch.tensor([span[0] for span in spans], dtype=torch.int64)
    last = torch.tensor([span[1] for span in spans], dtype=torch.int64)
    return WindowVectors(_means(vectors, first, last), starts[first], ends[last], first, last)


def _frame_ends(starts: torch.Tensor) -> torch.Tensor:
    if len(starts) == 0:
        return starts
    final = starts[-1] - starts[-2] if len(starts) > 1 else torch.zeros((), dtype=torch.float64)
    return torch.cat([starts[1:], (starts[-1] + final)[None]])


def _means(vectors: torch.Tensor, first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    parts = [
        vectors[start : end + 1].mean(dim=0) for start, end in zip(first.tolist(), last.tolist(), strict=True)
    ]
    if not parts:
        return torch.zeros((0, vectors.shape[-1]))
    return torch.nn.functional.normalize(torch.stack(parts), dim=-1)

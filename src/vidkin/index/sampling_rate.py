"""Sampling rates of indexed videos and of queries."""

from __future__ import annotations

import math

from vidkin.errors import InvalidArgumentError

__all__ = ["part_rate", "query_rate", "sampling_rate"]

# A short video is sampled more densely until it has this many frames, up to this many per second.
_FEWEST_FRAMES = 8
_DENSEST_RATE = 4.0
# A query has about this many frames, so that one of them is near each frame of a fast-moving target.
_QUERY_FRAMES = 90
_MINUTE = 60.0


def sampling_rate(duration: float, base: float = 1.0) -> float:
    """Frames per second at which to sample a video: ``base``, or more for very short videos.

    A video (or stretch of one) that would have fewer than 8 frames is sampled at two or four times ``base``, so that it
    has 8, at no more than 4 frames per second: a 7 s clip at 2, a 3 s clip and all shorter ones at 4. Whole multiples:
    a copy that is a little longer or shorter is then seen at the same moments.

    Args:
        duration: Duration in seconds; 0 or less means unknown and very short.
        base: Frames per second for ordinary videos, above 0.

    Raises:
        InvalidArgumentError: The base is not above 0.
    """
    if not base > 0:
        raise InvalidArgumentError(f"base sampling rate must be above 0, got {base}")
    if duration * base >= _FEWEST_FRAMES:
        return base
    densest = max(_DENSEST_RATE, base)
    if duration <= 0:
        return densest
    doublings = math.ceil(math.log2(_FEWEST_FRAMES / (duration * base)))
    return float(min(densest, base * 2**doublings))


def query_rate(duration: float, base: float = 1.0) -> float:
    """Frames per second at which a query is sampled: more densely than the collection, up to 120 frames.

    The frames of two copies are sampled at different moments, up to half a period apart, and a moving camera has moved
    on by then. A query of 25 s or less is sampled at 4 frames per second, 30 s at 3, a minute at 2, more at ``base``:
    always a whole multiple of :func:`sampling_rate`, so that among the frames of a query are those that the collection
    has of the same video.

    Args:
        duration: Duration in seconds; 0 or less means unknown and very short.
        base: Frames per second for ordinary videos, above 0.

    Raises:
        InvalidArgumentError: The base is not above 0.
    """
    least = sampling_rate(duration, base)
    if duration <= 0:
        return least
    multiple = min(
        math.floor(_QUERY_FRAMES / (duration * least) + 0.5), int(max(_DENSEST_RATE, base) / least)
    )
    return least * max(1, multiple)


def part_rate(duration: float) -> float | None:
    """Frames per second for which parts of the picture of a stored video are described; None for every frame.

    There are twenty parts to one whole: from a minute on, every second frame is enough to agree on a match.
    """
    return 0.5 if duration >= _MINUTE else None

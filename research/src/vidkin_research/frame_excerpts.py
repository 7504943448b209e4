"""Excerpts of a fixed number of consecutive frames from every video of a collection."""

from __future__ import annotations

from dataclasses import replace

from vidkin._base.values import check_at_least
from vidkin.datasets import LabelledItem, LabelledSet
from vidkin.errors import InvalidArgumentError
from vidkin.media import probe

__all__ = ["make_frame_excerpts"]


def make_frame_excerpts(labelled: LabelledSet, *, count: int, frames: int) -> LabelledSet:
    """Divide every video into excerpts of consecutive frames, spread evenly from its start to its end.

    Excerpts keep labels, group and split of their video, so that a split stays without leakage; they overlap if the
    video is short. A video with fewer frames stays whole, as a single item.

    Args:
        labelled: A set of kind ``"video"``.
        count: Number of excerpts per video, at least 2.
        frames: Number of consecutive frames in an excerpt, at least 1, counted at the frame rate stated by the file.

    Returns:
        The collection with ``count`` items for each video.

    Raises:
        InvalidArgumentError: The set does not hold videos, or a number is out of range.
        MediaError: A video cannot be read.
    """
    if labelled.kind != "video":
        raise InvalidArgumentError(
            f"{labelled.name} must contain videos to make excerpts, got items of kind {labelled.kind}"
        )
    check_at_least(2, count=count)
    check_at_least(1, frames=frames)
    items: list[LabelledItem] = []
    for item in labelled.items:
        info = probe(item.path)
        rate = info.frame_rate
        end = info.duration if item.end is None else min(item.end, info.duration)
        spare = round((end - item.start) * rate) - frames
        if spare < 0:
            items.append(item)
            continue
        # With more excerpts than positions, some would occur twice.
        places = sorted({round(spare * number / (count - 1)) for number in range(count)})
        # Limits are halfway between two frames, so that rounding of times has no effect.
        items += [
            replace(
                item,
                start=max(item.start, item.start + (place - 0.5) / rate),
                end=item.start + (place + frames - 0.5) / rate,
            )
            for place in places
        ]
    return labelled.with_items(items)

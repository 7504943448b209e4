"""Excerpts of the videos of a labelled collection, as items of their own."""

from __future__ import annotations

from dataclasses import replace

from vidkin.datasets.labelled import LabelledItem, LabelledSet
from vidkin.errors import InvalidArgumentError
from vidkin.media import probe

__all__ = ["make_excerpts"]


def make_excerpts(labelled: LabelledSet, *, count: int, frames: int) -> LabelledSet:
    """Every video becomes some excerpts of consecutive frames, spread evenly from its start to its end.

    Excerpts keep labels, group and split of their video, so that a split stays without leakage; they overlap where the
    video is short. A video with fewer frames than that stays whole, once.

    Args:
        labelled: Of kind ``"video"``.
        count: Excerpts of a video, 2 or more.
        frames: Consecutive frames of an excerpt, 1 or more, by the frame rate that the file tells.

    Returns:
        The collection with ``count`` items for each video.

    Raises:
        InvalidArgumentError: The items are no videos, or a number is out of range.
        MediaError: A video cannot be read.
    """
    if labelled.kind != "video":
        raise InvalidArgumentError(f"excerpts are made of videos, {labelled.name} is of kind {labelled.kind}")
    if count < 2 or frames < 1:
        raise InvalidArgumentError(
            f"count is {count} and frames {frames}, allowed are 2 or more excerpts of 1 frame or more"
        )
    return labelled.with_items(
        excerpt for item in labelled.items for excerpt in _excerpts(item, count, frames)
    )


def _excerpts(item: LabelledItem, count: int, frames: int) -> list[LabelledItem]:
    info = probe(item.path)
    rate = info.frame_rate
    end = info.duration if item.end is None else min(item.end, info.duration)
    spare = round((end - item.start) * rate) - frames
    if spare < 0:
        return [item]
    # An excerpt more than there are places would stand twice.
    places = sorted({round(spare * number / (count - 1)) for number in range(count)})
    # Halfway between two frames, so that rounding of times changes none.
    return [
        replace(
            item,
            start=max(item.start, item.start + (place - 0.5) / rate),
            end=item.start + (place + frames - 0.5) / rate,
        )
        for place in places
    ]

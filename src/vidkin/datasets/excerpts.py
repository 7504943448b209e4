"""Shorter items cut out of labelled videos."""

from __future__ import annotations

from dataclasses import replace

from vidkin.datasets.labelled import LabelledItem, LabelledSet
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import probe

__all__ = ["excerpts", "middle_excerpt"]


def excerpts(labelled: LabelledSet, count: int, *, share: float = 0.5) -> LabelledSet:
    """Every video as ``count`` items of ``share`` of its length each, evenly spread from its start to its end.

    They overlap where ``count * share`` is above 1. Labels, groups and splits stay, so that excerpts of a video are
    positives of each other and on one side of a split. A file that cannot be read stays whole, for its reader to tell.

    Args:
        labelled: Of kind ``video``.
        count: 1 or more; of one the middle is taken.
        share: Above 0, up to 1.

    Raises:
        InvalidArgumentError: The set holds no videos, or a number is out of range.
    """
    if labelled.kind != "video":
        raise InvalidArgumentError(
            f"{labelled.name} holds items of kind {labelled.kind}; only videos have excerpts"
        )
    if count < 1 or not 0 < share <= 1:
        raise InvalidArgumentError(
            f"count is {count} and share {share}, allowed are 1 or more, and above 0 up to 1"
        )
    items = []
    for item in labelled.items:
        try:
            end = item.end if item.end is not None else probe(item.path).duration
        except MediaError:
            items.append(item)
            continue
        length = (end - item.start) * share
        for number in range(count):
            place = number / (count - 1) if count > 1 else 0.5
            start = item.start + place * (end - item.start - length)
            items.append(replace(item, start=start, end=start + length))
    return labelled.with_items(items)


def middle_excerpt(item: LabelledItem, seconds: float) -> LabelledItem:
    """The middle of a video in this length; a shorter one as it is.

    Raises:
        MediaError: The file cannot be read.
    """
    end = item.end if item.end is not None else probe(item.path).duration
    spare = (end - item.start - seconds) / 2
    return item if spare <= 0 else replace(item, start=item.start + spare, end=end - spare)

"""Shorter items cut out of labeled videos."""

from __future__ import annotations

from dataclasses import replace

from vidkin._base.values import check_at_least
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import probe


def make_excerpts(labelled: LabelledSet, count: int, *, share: float = 0.5) -> LabelledSet:
    """Divide every video into ``count`` items of ``share`` of its length each, spread evenly from its start to its
    end.

    They overlap if ``count * share`` is above 1. Labels, groups and splits stay, so that excerpts of a video are
    positives of each other and on one side of a split. A file that cannot be read stays whole; the cause is reported
    when it is read.

    Args:
        labelled: A set of kind ``video``.
        count: Number of excerpts per video, at least 1; a single one is the middle.
        share: Length of an excerpt as a share of the video, above 0 and at most 1.

    Raises:
        InvalidArgumentError: The set does not hold videos, or a number is out of range.
    """
    _require_videos(labelled)
    check_at_least(1, count=count)
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"share must be above 0 and at most 1, got {share}")
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


def make_frame_excerpts(labelled: LabelledSet, *, count: int, frames: int) -> LabelledSet:
    """Divide every video into excerpts of consecutive frames, spread evenly from its start to its end.

    Excerpts keep labels, group and split of their video, so that a split stays without leakage; they overlap if the
    video is short. A video with fewer frames than that stays whole, once.

    Args:
        labelled: A set of kind ``"video"``.
        count: Excerpts per video, 2 or more.
        frames: Number of consecutive frames in an excerpt, at least 1, counted at the frame rate stated by the file.

    Returns:
        The collection with ``count`` items for each video.

    Raises:
        InvalidArgumentError: The set does not hold videos, or a number is out of range.
        MediaError: A video cannot be read.
    """
    _require_videos(labelled)
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
        # With more excerpts than places some would occur twice.
        places = sorted({round(spare * number / (count - 1)) for number in range(count)})
        # Halfway between two frames, so that rounding of times changes none.
        items += [
            replace(
                item,
                start=max(item.start, item.start + (place - 0.5) / rate),
                end=item.start + (place + frames - 0.5) / rate,
            )
            for place in places
        ]
    return labelled.with_items(items)


def middle_excerpt(item: LabelledItem, seconds: float) -> LabelledItem:
    """The middle of a video in this length; a shorter video is returned unchanged.

    Raises:
        MediaError: The file cannot be read.
    """
    end = item.end if item.end is not None else probe(item.path).duration
    spare = (end - item.start - seconds) / 2
    return item if spare <= 0 else replace(item, start=item.start + spare, end=end - spare)


def _require_videos(labelled: LabelledSet) -> None:
    if labelled.kind != "video":
        raise InvalidArgumentError(
            f"{labelled.name} must hold videos to have excerpts, got items of kind {labelled.kind}"
        )

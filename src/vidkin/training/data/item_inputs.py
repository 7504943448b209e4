"""Read labeled items as the input of an encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from vidkin.datasets import LabelledItem, LabelledSet, middle_excerpt, read_item
from vidkin.errors import MediaError
from vidkin.models import EncoderConfig

__all__ = ["read_frames_at_rate", "read_input", "read_inputs"]


def read_input(item: LabelledItem, kind: str, config: EncoderConfig) -> tuple[NDArray[np.uint8], int]:
    """(frames [T, S, S, 3], number of real frames); missing frames repeat the last; an image is [S, S, 3].

    Raises:
        MediaError: The file cannot be read.
    """
    assert kind in ("image", "video", "strokes")
    if not config.takes_clips:
        frames = None if kind == "image" else 1
        images = read_item(item, kind, size=config.size, frames=frames, fit=config.fit)  # type: ignore[arg-type]
        return (images if kind == "image" else images[0]), 1
    if config.seconds is not None and kind == "video":
        item = middle_excerpt(item, config.seconds)
    images = read_item(
        item,
        kind,  # type: ignore[arg-type]
        size=config.size,
        frames=config.frames,
        rate=config.rate,
        fit=config.fit,
    )
    missing = np.repeat(images[-1:], config.frames - len(images), axis=0)
    return np.concatenate([images, missing]), len(images)


def read_frames_at_rate(
    item: LabelledItem, kind: str, config: EncoderConfig, *, most: int | None = None
) -> NDArray[np.uint8]:
    """Frames [T, S, S, 3] of an item at ``config.rate``, from its start to its end, or the first ``most`` of them.

    Raises:
        MediaError: The file cannot be read.
    """
    return read_item(item, kind, size=config.size, frames=most, rate=config.rate, fit=config.fit)  # type: ignore[arg-type]


def read_inputs(
    labelled: LabelledSet, config: EncoderConfig, *, threads: int, whole: bool = False
) -> Iterator[tuple[NDArray[np.uint8], int] | MediaError]:
    """Yield the result of :func:`read_input`, or the error it raised, for every item in order.

    With ``whole``, the result is all frames of the item at the rate, and their number.
    """

    def read_whole(item: LabelledItem) -> tuple[NDArray[np.uint8], int]:
        images = read_frames_at_rate(item, labelled.kind, config)
        return images, len(images)

    def read_clip(item: LabelledItem) -> tuple[NDArray[np.uint8], int]:
        return read_input(item, labelled.kind, config)

    read_one: Callable[[LabelledItem], tuple[NDArray[np.uint8], int]] = read_whole if whole else read_clip

    def read(item: LabelledItem) -> tuple[NDArray[np.uint8], int] | MediaError:
        try:
            return read_one(item)
        except MediaError as error:
            return error

    if threads == 1:
        yield from map(read, labelled.items)
        return
    # In pieces, because a pool that gets all items at once would hold the frames of all in memory.
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for start in range(0, len(labelled), 4 * threads):
            yield from pool.map(read, labelled.items[start : start + 4 * threads])

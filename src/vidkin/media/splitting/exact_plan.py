"""Plan which frames of a piece are copied and which are encoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vidkin.media.splitting.pictures import StoredPictures

__all__ = ["PieceStretch", "decoding_times", "plan_piece"]


class PieceStretch(NamedTuple):
    """Consecutive frames of a piece.

    Attributes:
        start: The first one.
        end: The first one after them.
        is_copied: Their packets are copied; otherwise the frames are encoded.
    """

    start: int
    end: int
    is_copied: bool


def plan_piece(stored: StoredPictures | None, start: int, end: int) -> list[PieceStretch]:
    """The stretches of the frames from ``start`` up to ``end``, in order.

    Packets are copied from the first key frame that needs nothing from before, as far as they need nothing from behind
    the piece; what is before and after is encoded. Where the two cannot follow each other in one stream, all of it is.

    Args:
        stored: The packets; None if nothing can be copied.
        start: First frame.
        end: First frame after the piece.
    """
    if stored is None:
        return [PieceStretch(start, end, False)]
    stretches: list[PieceStretch] = []
    frame = start
    while frame < end:
        place = int(np.searchsorted(stored.entries, frame))
        entry = int(stored.entries[place]) if place < len(stored.entries) else end
        last = stored.last_end(entry, end) if entry == frame else frame
        if last > frame:
            stretches.append(PieceStretch(frame, last, True))
            frame = last
            continue
        if entry == frame:  # nothing can be copied here
            entry = int(stored.entries[place + 1]) if place + 1 < len(stored.entries) else end
        stretches.append(PieceStretch(frame, min(entry, end), False))
        frame = min(entry, end)
    if len(stretches) > 1 and not stored.is_mixable:
        return [PieceStretch(start, end, False)]
    return stretches


def decoding_times(shown: Sequence[int]) -> list[int]:
    """Times of decoding that increase and are never after those of presentation.

    Args:
        shown: Times of presentation in the order of decoding, all different, in units of the stream.
    """
    times = sorted(shown)
    ranks = {time: rank for rank, time in enumerate(times)}
    # So many pictures must be decoded before they are shown.
    delay = max((place - ranks[time] for place, time in enumerate(shown)), default=0)
    step = max(1, round((times[-1] - times[0]) / (len(times) - 1))) if len(times) > 1 else 1
    return [*(times[0] - step * (delay - place) for place in range(delay)), *times[: len(times) - delay]]

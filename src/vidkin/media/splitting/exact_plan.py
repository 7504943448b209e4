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
        start: The first frame.
        end: The first frame after the stretch.
        is_copied: Whether packets are copied; otherwise frames are encoded.
    """

    start: int
    end: int
    is_copied: bool


def plan_piece(stored: StoredPictures | None, start: int, end: int) -> list[PieceStretch]:
    """Divide the frames from ``start`` up to ``end`` into stretches, in order.

    Packets are copied from the first key frame that needs nothing from before, as far as they need nothing from after
    the piece; frames before and after are encoded. If the two kinds cannot follow each other in one stream, all frames
    are encoded.

    Args:
        stored: Packets of the video; None if nothing can be copied.
        start: First frame of the piece.
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
    """Decoding times that increase and are never after the presentation times.

    Args:
        shown: Presentation times in the order of decoding, all different, in units of the stream.
    """
    times = sorted(shown)
    ranks = {time: rank for rank, time in enumerate(times)}
    # Number of pictures that must be decoded before the first is shown.
    delay = max((place - ranks[time] for place, time in enumerate(shown)), default=0)
    step = max(1, round((times[-1] - times[0]) / (len(times) - 1))) if len(times) > 1 else 1
    return [*(times[0] - step * (delay - place) for place in range(delay)), *times[: len(times) - delay]]

"""Sources, scenes and edits held out from training, chosen before any image was gathered."""

from __future__ import annotations

import zlib
from fnmatch import fnmatch

from vidkin_research.copies.halves import HALVES

__all__ = ["HELD_BACK_EDITS", "is_held_back_clip", "is_held_back_photo", "is_held_back_video"]

HELD_BACK_EDITS = ("filmed_screen", "split_four", "sticker_45", "night")
"""Names in the copy benchmark's `EDITS` that no training edit imitates. The other training edits also differ from the
benchmark in strengths, positions and combinations, and share no transforms with it."""

# Held out: every sixth scene of `clips`; one in ten photographs of collections without a split, by a checksum of the
# name; the held-back half of `videos` in the copy benchmark; and all of `shots`, the edited films.
_SCENES, _SCENE = 6, 5
_ONE_IN = 10


def is_held_back_clip(scene: int) -> bool:
    """Whether a scene in the folder `clips` is held out for evaluation."""
    return scene % _SCENES == _SCENE


def is_held_back_photo(name: str) -> bool:
    """Whether a photograph from a collection without a test split is held out for evaluation."""
    return zlib.crc32(name.encode()) % _ONE_IN == 0


def is_held_back_video(name: str) -> bool:
    """Whether a video, given its path in the folder `videos`, is in the held-back half of the copy benchmark."""
    return any(fnmatch(name, pattern) for pattern in HALVES["held-back"])

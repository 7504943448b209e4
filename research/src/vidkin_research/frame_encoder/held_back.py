"""Sources, scenes and kinds of edits excluded from training, chosen before any image was gathered."""

from __future__ import annotations

import zlib
from fnmatch import fnmatch

from vidkin_research.copies.halves import HALVES

__all__ = ["HELD_BACK_EDITS", "is_held_back_clip", "is_held_back_photo", "is_held_back_video"]

HELD_BACK_EDITS = ("filmed_screen", "split_four", "sticker_45", "night")
"""Names in `EDITS` of the copy benchmark that no training edit imitates. Training edits have strengths, positions and
combinations of their own, and share no transforms with the benchmark."""

# Held back: every sixth scene of `clips`; one in ten photographs without a split, by the checksum of the name; the
# held-back half of `videos` in the copy benchmark; and all of `shots`, the edited films.
_SCENES, _SCENE = 6, 5
_SHARE = 10


def is_held_back_clip(scene: int) -> bool:
    """Whether a scene of the folder `clips` is held back for evaluation."""
    return scene % _SCENES == _SCENE


def is_held_back_photo(name: str) -> bool:
    """Whether a photograph of a collection without a test split is held back for evaluation."""
    return zlib.crc32(name.encode()) % _SHARE == 0


def is_held_back_video(name: str) -> bool:
    """Whether a video, by its path in the folder `videos`, belongs to the held-back half of the copy benchmark."""
    return any(fnmatch(name, pattern) for pattern in HALVES["held-back"])

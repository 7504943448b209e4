"""What training never sees, decided before the first picture was gathered: sources, scenes and kinds of edits."""

from __future__ import annotations

import zlib
from fnmatch import fnmatch

from vidkin_research.copies.halves import HALVES

__all__ = ["HELD_BACK_EDITS", "is_held_back_clip", "is_held_back_photo", "is_held_back_video"]

HELD_BACK_EDITS = ("filmed_screen", "split_four", "sticker_45", "night")
"""Names in `EDITS` of the copy benchmark that no edit of training imitates. The other kinds of training have strengths,
places and combinations of their own, and call none of those transforms."""

# Of the scenes of `clips`, every sixth; of photographs without a split of their own, one in ten by the checksum of
# the name. Of `videos` the held-back half of the copy benchmark, and all of `shots`, the edited films.
_SCENES, _SCENE = 6, 5
_SHARE = 10


def is_held_back_clip(scene: int) -> bool:
    """Whether a scene of the folder `clips` is kept for measuring."""
    return scene % _SCENES == _SCENE


def is_held_back_photo(name: str) -> bool:
    """Whether a photograph of a collection without a test split is kept for measuring."""
    return zlib.crc32(name.encode()) % _SHARE == 0


def is_held_back_video(name: str) -> bool:
    """Whether a video, by its path in the folder `videos`, belongs to the held-back half of the copy benchmark."""
    return any(fnmatch(name, pattern) for pattern in HALVES["held-back"])

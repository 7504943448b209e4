"""Pictures that move, by their bytes: animated WebP and PNG, and where the video of a motion photo begins."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress

from vidkin._base.files import open_regular_file

_HEAD = 1 << 12
_PHOTOGRAPHS = frozenset({".jpg", ".jpeg", ".heic", ".heif", ".hif"})
# Bytes of the box that begins an MP4 file: its length, its kind, a brand, a version, and compatible brands.
_SHORTEST_BRAND_BOX, _LONGEST_BRAND_BOX = 16, 256
# A video is looked for in so many bytes; photographs are smaller.
_MOST = 1 << 30


def is_animated(path: str) -> bool:
    """Whether a WebP or PNG file says that it has several frames; False for what cannot be read."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in (".webp", ".png", ".apng"):
        return False
    head = b""
    with suppress(OSError, ValueError), open_regular_file(path) as file:
        head = file.read(_HEAD)
    if ending == ".webp":
        return head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and bool(head[20] & 2)
    # Its frames are announced before the first picture.
    return head[:8] == b"\x89PNG\r\n\x1a\n" and b"acTL" in head.partition(b"IDAT")[0]


def find_motion(path: str) -> int | None:
    """Where the MP4 file in a motion photo (JPEG or HEIC) begins; None if there is none.

    Phones append it to the photograph, or put it into a box at its end.
    """
    if os.path.splitext(path)[1].lower() not in _PHOTOGRAPHS:
        return None
    with suppress(OSError, ValueError), open_regular_file(path) as file:
        size = min(os.fstat(file.fileno()).st_size, _MOST)
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
            if content[:2] != b"\xff\xd8" and content[4:8] != b"ftyp":
                return None
            # A HEIC file begins with such a box itself.
            place = content.find(b"ftyp", 8)
            while place >= 0:
                if _is_video(content, place - 4):
                    return place - 4
                place = content.find(b"ftyp", place + 4)
    return None


def _is_video(content: mmap.mmap, start: int) -> bool:
    """Whether boxes follow each other from here on, and one of them lists the frames of a video."""
    length = int.from_bytes(content[start : start + 4], "big")
    if not _SHORTEST_BRAND_BOX <= length <= _LONGEST_BRAND_BOX:
        return False
    place = start
    while place + 8 <= len(content):
        length = int.from_bytes(content[place : place + 4], "big")
        kind = content[place + 4 : place + 8]
        if length == 1:
            length = int.from_bytes(content[place + 8 : place + 16], "big")
        if kind == b"moov":
            return place + length <= len(content)
        if length < 8:
            return False
        place += length
    return False

"""Recognize animated WebP and PNG images, and find the video in a motion photo, from the bytes of the file."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress

from vidkin._base.files import open_regular_file

_HEAD_BYTES = 1 << 12
_PHOTOGRAPHS = frozenset({".jpg", ".jpeg", ".heic", ".heif", ".hif"})
# Size limits of the first box of an MP4 file: length, type, brand, version, and compatible brands.
_MIN_BRAND_BOX, _MAX_BRAND_BOX = 16, 256
# Maximum number of bytes to search for a video; photographs are smaller.
_MAX_SEARCHED = 1 << 30


def is_animated(path: str) -> bool:
    """Whether a WebP or PNG file declares several frames; False if it cannot be read."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in (".webp", ".png", ".apng"):
        return False
    head = b""
    with suppress(OSError, ValueError), open_regular_file(path) as file:
        head = file.read(_HEAD_BYTES)
    if suffix == ".webp":
        return head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and bool(head[20] & 2)
    # PNG declares animation (acTL) before the first image data (IDAT).
    return head[:8] == b"\x89PNG\r\n\x1a\n" and b"acTL" in head.partition(b"IDAT")[0]


def find_motion(path: str) -> int | None:
    """Find the offset of the MP4 file in a motion photo (JPEG or HEIC); None if there is none.

    Phones append the video to the photograph, or store it in a box at the end.
    """
    if os.path.splitext(path)[1].lower() not in _PHOTOGRAPHS:
        return None
    with suppress(OSError, ValueError), open_regular_file(path) as file:
        size = min(os.fstat(file.fileno()).st_size, _MAX_SEARCHED)
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
            if content[:2] != b"\xff\xd8" and content[4:8] != b"ftyp":
                return None
            # Start at byte 8, because a HEIC file itself begins with such a box.
            offset = content.find(b"ftyp", 8)
            while offset >= 0:
                if _is_video(content, offset - 4):
                    return offset - 4
                offset = content.find(b"ftyp", offset + 4)
    return None


def _is_video(content: mmap.mmap, start: int) -> bool:
    """Whether a sequence of boxes starts here that includes the index of a video (``moov``)."""
    length = int.from_bytes(content[start : start + 4], "big")
    if not _MIN_BRAND_BOX <= length <= _MAX_BRAND_BOX:
        return False
    offset = start
    while offset + 8 <= len(content):
        length = int.from_bytes(content[offset : offset + 4], "big")
        kind = content[offset + 4 : offset + 8]
        if length == 1:
            length = int.from_bytes(content[offset + 8 : offset + 16], "big")
        if kind == b"moov":
            return offset + length <= len(content)
        if length < 8:
            return False
        offset += length
    return False

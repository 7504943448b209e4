"""Whether a file is there, and whether two hold the same, without reading all of large ones where that is safe."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from vidkin._base.files import open_regular_file

__all__ = ["ContentHash", "content_hash", "has_same_bytes", "is_gone"]

_CHUNK = 1 << 20
_MOST_SAMPLED = 3 * _CHUNK
# Names of codecs of variable bit rate. Files of any others (raw, DV, Y4M, transport streams of constant rate) may have
# exactly the same length as a different film.
_VARIABLE_CODECS = (
    *(b"avc1", b"avc3", b"hvc1", b"hev1", b"vp08", b"vp09", b"av01", b"mp4v"),  # MP4, QuickTime
    *(b"V_MPEG4/", b"V_MPEGH/", b"V_VP8", b"V_VP9", b"V_AV1"),  # Matroska, WebM
    *(b"H264", b"h264", b"X264", b"x264", b"XVID", b"xvid", b"DIVX", b"divx", b"DX50", b"FMP4"),  # AVI
    *(b"W\0M\0V\x003\0", b"WMV1", b"WMV2", b"WMV3", b"WVC1"),  # ASF
)


@dataclass(frozen=True, slots=True)
class ContentHash:
    """Identifies the content of a file.

    Attributes:
        text: 32 hexadecimal digits.
        is_whole: Whether it covers all bytes, so that equal hashes mean equal files. Otherwise a different file can be
            crafted with the same hash: call :func:`has_same_bytes` before relying on it.
    """

    text: str
    is_whole: bool


def content_hash(path: str, size: int, *, whole: bool = False) -> ContentHash:
    """Hash of the content of a file: blake2b of its size and all its bytes.

    Of videos above 3 MiB in codecs of variable rate only the first, middle and last MiB are read. Files of exactly
    the same length that differ only in between then have the same hash; encoders do not produce such files.

    Args:
        path: A regular file; pipes and devices are refused.
        size: Number of its bytes; no more are read.
        whole: Read all bytes in any case.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with open_regular_file(path) as file:
        places = (0, (size - _CHUNK) // 2, size - _CHUNK)
        if size > _MOST_SAMPLED and not whole:
            parts = [_read(file.fileno(), place, _CHUNK) for place in places]
            if any(name in part for part in (parts[0], parts[-1]) for name in _VARIABLE_CODECS):
                for part in parts:
                    digest.update(part)
                return ContentHash(digest.hexdigest(), is_whole=False)
        for place in range(0, size, _CHUNK):
            digest.update(_read(file.fileno(), place, min(_CHUNK, size - place)))
    return ContentHash(digest.hexdigest(), is_whole=True)


def has_same_bytes(path: str, other: str) -> bool:
    """Whether two regular files have the same bytes; False if one of them cannot be read."""
    try:
        with open_regular_file(path) as first, open_regular_file(other) as second:
            states = os.fstat(first.fileno()), os.fstat(second.fileno())
            if os.path.samestat(*states):
                return True
            size = states[0].st_size
            if size != states[1].st_size:
                return False
            return all(
                _read(first.fileno(), place, _CHUNK) == _read(second.fileno(), place, _CHUNK)
                for place in range(0, size, _CHUNK)
            )
    except OSError:
        return False


def is_gone(path: str) -> bool:
    """Whether nothing exists at the path any more. False if uncertain (a folder that may not be read)."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _read(descriptor: int, place: int, count: int) -> bytes:
    """Read this many bytes from ``place``, fewer only at the end of the file."""
    parts = []
    while count > 0 and (part := os.pread(descriptor, count, place)):
        parts.append(part)
        place += len(part)
        count -= len(part)
    return b"".join(parts)

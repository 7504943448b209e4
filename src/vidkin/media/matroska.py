"""Check whether a Matroska or WebM file is intact, without decoding it.

Demuxers skip to the next part they understand without reporting anything. The file itself reveals damage: every part
states its length (RFC 8794, EBML; RFC 9559, Matroska), so overwritten headers and missing bytes are detected. Clusters
with a checksum, which FFmpeg writes into Matroska but not into WebM, reveal every changed byte.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

from vidkin.media.containers import MOST_DAMAGED, MOST_PARTS, FileLengths

_HEADER, _SEGMENT, _CLUSTER, _TRACKS = 0x1A45DFA3, 0x18538067, 0x1F43B675, 0x1654AE6B
_CHECKSUM, _VOID = 0xBF, 0xEC
# Seek head, information, tracks, cues, tags, chapters, attachments.
_PARTS = frozenset(
    {0x114D9B74, 0x1549A966, _TRACKS, _CLUSTER, 0x1C53BB6B, 0x1254C367, 0x1043A770, 0x1941A469} | {_CHECKSUM, _VOID}
)
_TRACK, _TRACK_NUMBER = 0xAE, 0xD7
_SIMPLE_BLOCK, _BLOCK_GROUP = 0xA3, 0xA0
# Time, silent tracks, position, size of the cluster before, encrypted block.
_IN_CLUSTER = frozenset({0xE7, 0x5854, 0xA7, 0xAB, 0xAF, _SIMPLE_BLOCK, _BLOCK_GROUP, _CHECKSUM, _VOID})
_CLUSTER_BYTES = _CLUSTER.to_bytes(4, "big")
# An identifier has at most 4 bytes, and a length at most 8.
_HEAD = 12
# A length beyond this many bytes behind the end says nothing but that it is wrong.
_MOST_MISSING = 1 << 44
# Larger parts are not examined.
_MOST_BYTES = 64 * 2**20
_LOOK = 2**20


def examine_matroska(file: BinaryIO, size: int, on_read: Callable[[], None]) -> FileLengths:
    """What the lengths and checksums of a Matroska file say, see :mod:`vidkin.media.containers`.

    Clusters without a length, as in a live stream, are examined block by block.
    """
    head = _read_head(file, 0, size)
    if head is None or head[0] != _HEADER or head[2] is None:
        return FileLengths()
    segment = _read_head(file, head[2], size)
    if segment is None or segment[0] != _SEGMENT:
        return FileLengths()
    end = size if segment[2] is None else min(size, segment[2])
    findings = _count_clusters(file, segment[1], end, on_read)
    missing = 0 if segment[2] is None or segment[2] > size + _MOST_MISSING else max(0, segment[2] - size)
    return replace(findings, missing=missing or findings.missing)


def _count_clusters(file: BinaryIO, place: int, end: int, on_read: Callable[[], None]) -> FileLengths:
    """Number of clusters in a segment, and number of those that changed after they were written.

    Counting ends at `MOST_DAMAGED`.
    """
    tracks: frozenset[int] = frozenset()
    count, damaged, before, is_whole = 0, 0, place, True
    first, is_open, missing = None, False, 0
    for _ in range(MOST_PARTS):
        if place >= end or damaged > MOST_DAMAGED:
            break
        on_read()
        name, begin, after = _read_head(file, place, end) or (0, 0, None)
        if name not in _PARTS and not (is_open and name in _IN_CLUSTER):
            # If bytes are missing, the next cluster comes earlier than the last one states.
            damaged += is_whole
            first = before if first is None else first
            found = _find_cluster(file, before + 1, end)
            if found is None:
                break
            place, before, is_whole, is_open = found, found, True, False
            continue
        if after is None:
            if name != _CLUSTER:
                break
            # Its blocks follow, each with a length; the next cluster ends it.
            count, is_open, is_whole = count + 1, True, True
            before, place = place, begin
            continue
        if is_open and name in _IN_CLUSTER:
            missing = max(missing, after - end)
            place = after
            continue
        is_open = False
        if name == _CLUSTER:
            count += 1
            is_whole = after <= end and _is_whole(_read(file, begin, after), tracks)
            damaged += not is_whole
            first = place if first is None and not is_whole else first
        elif name == _TRACKS and after <= end:
            tracks = _track_numbers(_read(file, begin, after))
        before, place = place, after
    is_plausible = missing <= _MOST_MISSING
    return FileLengths(damaged, first, missing if is_plausible else 0, max(count, damaged))


def _is_whole(content: bytes | None, tracks: frozenset[int]) -> bool:
    """Whether the parts of a cluster fill it, its blocks belong to known tracks, and its checksum, if any, is
    right."""
    place, is_first = 0, True
    while content is not None and place < len(content):
        name, begin, after = _parse_head(content, place) or (0, 0, None)
        if name not in _IN_CLUSTER or after is None or after > len(content):
            return False
        if name == _CHECKSUM and is_first:
            # The checksum covers everything that follows it.
            if int.from_bytes(content[begin:after], "little") != zlib.crc32(memoryview(content)[after:]):
                return False
        elif name == _SIMPLE_BLOCK:
            track = _parse_number(content, begin)
            if track is None or (tracks and track[0] not in tracks):
                return False
        place, is_first = after, False
    return True


def _track_numbers(content: bytes | None) -> frozenset[int]:
    """The numbers of all tracks; none if they cannot be parsed."""
    numbers = set()
    for name, begin, after in _children(content or b""):
        if name == _TRACK and content is not None:
            for inner, first, last in _children(content[begin:after]):
                if inner == _TRACK_NUMBER:
                    numbers.add(int.from_bytes(content[begin + first : begin + last], "big"))
    return frozenset(numbers)


def _children(content: bytes) -> list[tuple[int, int, int]]:
    """Identifier, start and end of each part of this content, up to the first that does not state its length."""
    children, place = [], 0
    while (head := _parse_head(content, place)) is not None and head[2] is not None:
        children.append((head[0], head[1], head[2]))
        place = head[2]
    return children


def _find_cluster(file: BinaryIO, place: int, end: int) -> int | None:
    """Where the next cluster begins, at ``place`` or later."""
    while place < end:
        block = _read(file, place, min(place + _LOOK, end)) or b""
        found = block.find(_CLUSTER_BYTES)
        if found >= 0:
            return place + found
        place += max(1, len(block) - len(_CLUSTER_BYTES) + 1) if len(block) > len(_CLUSTER_BYTES) else _LOOK
    return None


def _read(file: BinaryIO, begin: int, end: int) -> bytes | None:
    """These bytes of the file; None if there are too many to examine."""
    if end - begin > _MOST_BYTES:
        return None
    if begin >= end:  # perhaps farther away than any file reaches, which seeking refuses
        return b""
    file.seek(begin)
    parts, left = [], end - begin
    while left > 0 and (part := file.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _read_head(file: BinaryIO, place: int, end: int) -> tuple[int, int, int | None] | None:
    """Identifier of the part at a place, and the start and end of its content (end None: not stated)."""
    head = _parse_head(_read(file, place, min(place + _HEAD, end)) or b"", 0)
    if head is None:
        return None
    return head[0], place + head[1], None if head[2] is None else place + head[2]


def _parse_head(content: bytes, place: int) -> tuple[int, int, int | None] | None:
    """Same as :func:`_read_head` for bytes; None if there is no part."""
    if place >= len(content) or content[place] < 0x10:
        return None
    begin = place + 9 - content[place].bit_length()
    number = _parse_number(content, begin)
    if number is None:
        return None
    size, after = number
    is_unknown = size == (1 << 7 * (after - begin)) - 1
    return int.from_bytes(content[place:begin], "big"), after, None if is_unknown else after + size


def _parse_number(content: bytes, place: int) -> tuple[int, int] | None:
    """A number of variable length, and the place after it."""
    if place >= len(content) or not content[place]:
        return None
    length = 9 - content[place].bit_length()
    if place + length > len(content):
        return None
    value = int.from_bytes(content[place : place + length], "big")
    return value & (1 << 7 * length) - 1, place + length

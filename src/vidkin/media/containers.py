"""Check whether a file is whole by the lengths that its container states, without decoding it.

Every container divides its file into parts and states their lengths, and often the size of the whole. Where bytes are
missing or headers were overwritten, a part does not begin where the one before it ends; where the end is missing, a
length reaches beyond it. What lies inside a part is not examined, but for the index of MP4 and of AVI, whose frames are
counted. Matroska has a module of its own, because its parts can have checksums.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import Result

# A file of nothing but headers would keep us busy for hours.
MOST_PARTS = 1_000_000
MOST_DAMAGED = 1_000
_LOOK = 1 << 20
# Packets of a transport stream: plain, with a time stamp in front (M2TS), with sums behind.
_TS_SIZES = ((188, 0), (192, 4), (204, 0))
_TS_SYNC = 0x47
# Name of a piece of AVI that holds a frame: number of the stream, and whether it is compressed.
_AVI_FRAME = re.compile(rb"\d\dd[bc]")
# Packets of a transport stream that are read at once, and of those examined: 19 GB.
_TS_PACKETS, _MOST_TS_PACKETS = 5_000, 100_000_000
# Marks in a row that show where packets lie, and packets within which they are looked for again.
_TS_IN_A_ROW, _TS_SEARCHED = 8, 64
# A larger index is not examined; that of a film of three hours has 10 MB.
_MOST_INDEX_BYTES = 16 << 20
# Boxes that hold the tables of a track (ISO/IEC 14496-12, 8.3 to 8.7).
_MP4_TABLE_PATH = (b"mdia", b"minf", b"stbl")
# GUIDs of ASF (Advanced Systems Format specification, 10.1 and 10.2).
_ASF_HEADER = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_ASF_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_ASF_DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")
# Boxes of MP4 that hold pictures, or whose lengths say where they are.
_MP4_BOXES = frozenset(
    {b"mdat", b"moov", b"moof", b"free", b"skip", b"wide", b"ftyp", b"styp", b"sidx", b"mfra", b"udta"}
)


@dataclass(frozen=True, slots=True)
class FileLengths(Result):
    """What the lengths stated by a container say about its file.

    Attributes:
        parts: Number of places where a part does not begin where it should, or changed after it was written; at most
            `MOST_DAMAGED` and a few.
        first: Byte offset of the first of them; None if there is none.
        missing: Number of bytes by which the file is shorter than it states, 0 if it is whole or states nothing.
        total: Number of parts of the file, 0 if they were not counted.
        index: What is wrong with the index of its frames, as a clause; "" if nothing is.
    """

    parts: int = 0
    first: int | None = None
    missing: int = 0
    total: int = 0
    index: str = ""


Examiner = Callable[[BinaryIO, int, Callable[[], None]], FileLengths]
"""Examines (open file, its size, callback for every part read)."""


def examine_mp4(file: BinaryIO, size: int, on_read: Callable[[], None]) -> FileLengths:
    """Boxes of MP4 and QuickTime (ISO/IEC 14496-12, 4.2), those of the top level, and the tables of samples."""
    place, before, is_fragmented, index = 0, b"", False, ""
    for _ in range(MOST_PARTS):
        head = _read(file, place, 16)
        if len(head) < 8:
            break
        on_read()
        kind, length = head[4:8], int.from_bytes(head[:4], "big")
        if length == 1 and len(head) == 16:
            length = int.from_bytes(head[8:], "big")
        if length == 0:  # the last box, which reaches to the end
            break
        if length < 8 or not _is_text(kind):
            # Anything may follow the last box, but not a piece of a fragmented film.
            is_hole = before == b"mdat" and is_fragmented
            return FileLengths(parts=int(is_hole), first=place if is_hole else None, index=index)
        if place + length > size:
            return FileLengths(missing=place + length - size if kind in _MP4_BOXES else 0)
        if kind == b"moov" and length <= _MOST_INDEX_BYTES:
            index = _check_samples(_read(file, place + (16 if head[:4] == b"\0\0\0\1" else 8), length - 8), size)
        is_fragmented |= kind == b"moof"
        place, before = place + length, kind
    return FileLengths(index=index)


def _check_samples(movie: bytes, size: int) -> str:
    """What is wrong with the tables of samples of a movie box whose file has this size; "" if they agree."""
    for kind, track in _boxes(movie):
        if kind != b"trak":
            continue
        for name in _MP4_TABLE_PATH:
            track = next((content for kind, content in _boxes(track) if kind == name), b"")
            if name == b"minf" and _is_elsewhere(track):
                track = b""
        found = _check_tables(dict(_boxes(track)), size)
        if found:
            return found
    return ""


def _check_tables(tables: dict[bytes, bytes], size: int) -> str:
    """The same for the tables of one track."""
    sizes = tables.get(b"stsz", b"")
    if len(sizes) < 12:
        return ""  # compact sizes, or none
    fixed, count = int.from_bytes(sizes[4:8], "big"), int.from_bytes(sizes[8:12], "big")
    if not count:
        return ""  # a fragmented film
    stated = _numbers(sizes[12:], 4, 1) if not fixed else None
    if stated is not None and len(stated) < count:
        return f"{count:,} samples are stated, {len(stated):,} have a size"
    runs = _numbers(tables.get(b"stts", b"")[8:], 4, 2)
    timed = int(runs[0::2].sum()) if len(runs) else 0
    if timed < count:
        return f"{count:,} samples have a size, {timed:,} a time"
    offsets = _numbers(tables[b"co64"][8:], 8, 1) if b"co64" in tables else _numbers(tables.get(b"stco", b"")[8:], 4, 1)
    in_chunks = _samples_of_chunks(_numbers(tables.get(b"stsc", b"")[8:], 4, 3).reshape(-1, 3), len(offsets))
    if in_chunks is None or int(in_chunks.sum()) < count:
        stored = 0 if in_chunks is None else int(in_chunks.sum())
        return f"{count:,} samples have a size, {stored:,} a place"
    ends = np.minimum(np.cumsum(in_chunks), count)
    bytes_before = np.concatenate([[0], np.cumsum(stated[:count])]) if stated is not None else None
    lengths = np.diff(ends if bytes_before is None else bytes_before[ends], prepend=0) * (fixed or 1)
    # Of sound with samples of a fixed size, that size can be another one than that of the bytes stored.
    beyond = int(((offsets + (lengths if not fixed else 0) > size) & (lengths > 0)).sum())
    if beyond:
        return f"{beyond:,} of {len(offsets):,} pieces of a track lie beyond the end of the file"
    return ""


def _samples_of_chunks(runs: NDArray[np.int64], chunks: int) -> NDArray[np.int64] | None:
    """Number of samples of each chunk, from the table sample-to-chunk; None if the table is not in order."""
    if not len(runs) or runs[0, 0] != 1 or (np.diff(runs[:, 0]) <= 0).any():
        return None
    within = runs[runs[:, 0] <= chunks]
    lengths = np.diff(within[:, 0], append=chunks + 1)
    return np.repeat(within[:, 1], lengths)


def _boxes(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content of each box in these bytes, up to the first that does not fit."""
    place = 0
    while place + 8 <= len(content):
        length = int.from_bytes(content[place : place + 4], "big")
        if length < 8 or place + length > len(content):
            return
        yield content[place + 4 : place + 8], content[place + 8 : place + length]
        place += length


def _is_elsewhere(media: bytes) -> bool:
    """Whether the samples of a track may lie in another file (data references, ISO/IEC 14496-12, 8.7.2)."""
    references = b"".join(inner for kind, outer in _boxes(media) if kind == b"dinf" for _, inner in _boxes(outer))
    return any(content[3:4] != b"\1" for _, content in _boxes(references[8:]))


def _numbers(content: bytes, width: int, columns: int) -> NDArray[np.int64]:
    """Unsigned numbers of ``width`` bytes each, in whole rows of so many."""
    whole = len(content) // (width * columns) * (width * columns)
    return np.frombuffer(content[:whole], f">u{width}").astype(np.int64)


def examine_avi(file: BinaryIO, size: int, on_read: Callable[[], None]) -> FileLengths:
    """Chunks of AVI (Microsoft, AVI RIFF file reference; OpenDML extensions): those inside ``movi``, too."""
    place, end, damaged, first = 0, 0, 0, None
    frames, index = 0, b""
    for _ in range(MOST_PARTS):
        head = _read(file, place, 12)
        if len(head) < 8:
            break
        on_read()
        kind, length = head[:4], int.from_bytes(head[4:8], "little")
        # The index is that of the first RIFF.
        frames += not index and _AVI_FRAME.fullmatch(kind) is not None
        if kind == b"idx1" and length <= _MOST_INDEX_BYTES and place + 8 + length <= size:
            index = index or _read(file, place + 8, length)
        if kind == b"RIFF":
            end = place + 8 + length
            place += 12
        elif place >= end and damaged == 0:
            break  # behind the last RIFF anything may follow
        elif kind == b"LIST" and head[8:12] in (b"movi", b"rec "):
            place += 12
        elif not _is_text(kind) or (place + 8 + length > end and place + 8 + length > size):
            if place + 8 + length > size and _is_text(kind):
                break  # the piece at which the file ends
            if place % 2 == 0 and _is_text(_read(file, place - 1, 4)):
                place -= 1  # the chunk before was not padded
                continue
            damaged, first = damaged + 1, place if first is None else first
            break
        else:
            place += 8 + length + length % 2
    listed = sum(_AVI_FRAME.fullmatch(index[at : at + 4]) is not None for at in range(0, len(index) - 15, 16))
    is_short = not damaged and frames < listed
    said = f"{listed:,} frames are listed, {frames:,} are there" if is_short else ""
    return FileLengths(parts=damaged, first=first, missing=max(0, end - size), index=said)


def examine_asf(file: BinaryIO, size: int, on_read: Callable[[], None]) -> FileLengths:
    """Objects of ASF, and the packets of its data, all of which have the size that the header states."""
    place, packet_size, is_live = 0, 0, False
    for _ in range(64):
        head = _read(file, place, 24)
        if len(head) < 24:
            break
        kind, length = head[:16], int.from_bytes(head[16:24], "little")
        if length < 24:
            break
        if kind == _ASF_HEADER:
            content = _read(file, place, min(length, _LOOK))
            at = content.find(_ASF_PROPERTIES)
            if at >= 0 and at + 104 <= len(content):
                flags, least, most = (int.from_bytes(content[at + n : at + n + 4], "little") for n in (88, 92, 96))
                is_live = bool(flags & 1)
                packet_size = least if least == most else 0
        elif kind == _ASF_DATA:
            if is_live or not 64 <= packet_size <= _LOOK:
                break
            return _asf_packets(file, place + 50, place + length, size, packet_size, on_read)
        place += length
    return FileLengths()


def _asf_packets(
    file: BinaryIO, begin: int, end: int, size: int, packet_size: int, on_read: Callable[[], None]
) -> FileLengths:
    """Whether packets begin as the first one does, with the mark of their error correction."""
    mark = _read(file, begin, 3)
    damaged, first, total = 0, None, 0
    if mark == b"\x82\x00\x00":
        for place in range(begin, min(end, size) - packet_size + 1, packet_size):
            on_read()
            total += 1
            if _read(file, place, 3) != mark:
                damaged, first = damaged + 1, place if first is None else first
            if damaged > MOST_DAMAGED or total > MOST_PARTS:
                break
        # The index that follows begins elsewhere if bytes of the last packet are missing.
        behind = _read(file, end, 24)
        if not damaged and len(behind) == 24 and not 24 <= int.from_bytes(behind[16:], "little") <= size - end:
            damaged, first = 1, max(begin, end - packet_size)
    return FileLengths(parts=damaged, first=first, missing=max(0, end - size), total=total)


def examine_flv(file: BinaryIO, size: int, on_read: Callable[[], None]) -> FileLengths:
    """Tags of FLV (Adobe, Video file format specification 10, E.3 and E.4)."""
    head = _read(file, 0, 9)
    if len(head) < 9:
        return FileLengths()
    place, total = int.from_bytes(head[5:9], "big") + 4, 0
    for _ in range(MOST_PARTS):
        tag = _read(file, place, 11)
        if len(tag) < 11:
            break
        on_read()
        total += 1
        if tag[0] & 0x1F not in (8, 9, 18) or tag[0] & 0xC0 or any(tag[8:11]):
            return FileLengths(parts=1, first=place, total=total)
        place += 11 + int.from_bytes(tag[1:4], "big") + 4
        if place - 4 > size:
            return FileLengths(missing=place - 4 - size, total=total)
    return FileLengths(total=total)


def examine_ps(file: BinaryIO, size: int, on_read: Callable[[], None]) -> FileLengths:
    """Packs and packets of an MPEG program stream (ISO/IEC 11172-1, 13818-1)."""
    place, damaged, first, total = 0, 0, None, 0
    if _read(file, 0, 4) != b"\0\0\1\xba":
        return FileLengths()  # a stream without packs
    for _ in range(MOST_PARTS):
        head = _read(file, place, 14)
        if len(head) < 4:
            break
        on_read()
        total += 1
        code, length = head[3], int.from_bytes(head[4:6], "big")
        if head[:3] == b"\0\0\1" and code == 0xBA:
            place += 14 + (head[13] & 7) if len(head) == 14 and head[4] >> 6 == 1 else 12
        elif head[:3] == b"\0\0\1" and code == 0xB9:
            place += 4
        elif head[:3] == b"\0\0\1" and code >= 0xBB:
            place += 6 + length
        elif not any(head):
            place += len(head) - 3  # stuffing
        elif head[0] == 0 and head[:4] != b"\0\0\1":
            place += 1
        else:
            damaged, first = damaged + 1, place if first is None else first
            found = _find(file, b"\0\0\1\xba", place + 1, size)
            if found is None or damaged > MOST_DAMAGED:
                break
            place = found
    return FileLengths(parts=damaged, first=first, missing=max(0, place - size), total=total)


def examine_ts(file: BinaryIO, size: int, on_read: Callable[[], None]) -> FileLengths:
    """Packets of an MPEG transport stream (ISO/IEC 13818-1, 2.4.3) up to its end.

    Every packet begins with the same byte. What is missing between two whole packets, the demuxer says by their
    counters. Files have whole packets.
    """
    grid = _ts_grid(_read(file, 0, 64 * 1024))
    on_read()
    if grid is None:
        return FileLengths()
    place, packet_size, lead = grid
    damaged, first, total = 0, None, 0
    while place < size and damaged <= MOST_DAMAGED and total <= _MOST_TS_PACKETS:
        content = _read(file, place, packet_size * _TS_PACKETS)
        on_read()
        marks = np.frombuffer(content, np.uint8)[lead::packet_size]
        wrong = np.flatnonzero(marks != _TS_SYNC)
        total += len(marks)
        if not len(wrong):
            place += packet_size * _TS_PACKETS
            continue
        begin = place + int(wrong[0]) * packet_size
        first = begin if first is None else first
        if (marks[-_TS_IN_A_ROW:] == _TS_SYNC).all():
            damaged += len(wrong)
            place += packet_size * _TS_PACKETS
            continue
        # Bytes are missing or were added: the packets go on elsewhere.
        damaged += 1
        found = _ts_grid_after(content, int(wrong[0]) * packet_size, packet_size, lead)
        if found is None:
            break
        place += found
    # What follows the last packet is the begin of another one, or the packets do not lie in a grid.
    excess = (size - place) % packet_size
    return FileLengths(parts=damaged, first=first, missing=packet_size - excess if excess else 0, total=total)


def _ts_grid_after(content: bytes, place: int, packet_size: int, lead: int) -> int | None:
    """Where packets of this size go on, at ``place`` or soon after; None if they do not."""
    marks = np.frombuffer(content, np.uint8) == _TS_SYNC
    for begin in range(place, min(place + _TS_SEARCHED * packet_size, len(content))):
        row = marks[begin + lead :: packet_size][:_TS_IN_A_ROW]
        if len(row) >= 3 and row.all():
            return begin
    return None


def _ts_grid(content: bytes) -> tuple[int, int, int] | None:
    """Where packets begin, their size and the bytes before their mark; None if these are no packets."""
    for packet_size, lead in _TS_SIZES:
        for begin in range(min(packet_size, len(content))):
            marks = content[begin + lead :: packet_size][:_TS_IN_A_ROW]
            if len(marks) >= 3 and marks == bytes([_TS_SYNC]) * len(marks):
                return begin, packet_size, lead
    return None


def examine_gif(file: BinaryIO, size: int, on_read: Callable[[], None]) -> FileLengths:
    """Blocks of GIF (version 89a, 18 to 27)."""
    head = _read(file, 0, 13)
    if len(head) < 13:
        return FileLengths()
    place, total = 13 + _table_size(head[10]), 0
    while total < MOST_PARTS:
        kind = _read(file, place, 10)
        on_read()
        total += 1
        if not kind or kind[0] == 0x3B:
            break
        if kind[0] == 0x2C and len(kind) == 10:
            place += 11 + _table_size(kind[9])
        elif kind[0] == 0x21:
            place += 2
        else:
            return FileLengths(parts=1, first=place, total=total)
        while length := int.from_bytes(_read(file, place, 1), "big"):
            place += 1 + length
            total += 1
        place += 1
    return FileLengths(missing=max(0, place - size), total=total)


def _table_size(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


EXAMINERS: dict[str, Examiner] = {
    "mov": examine_mp4,
    "avi": examine_avi,
    "asf": examine_asf,
    "flv": examine_flv,
    "mpeg": examine_ps,
    "mpegts": examine_ts,
    "gif": examine_gif,
}
"""By the first of the names that FFmpeg has for a format."""


def _is_text(kind: bytes) -> bool:
    """Whether these four bytes can be the name of a part."""
    return len(kind) == 4 and all(0x20 <= byte < 0x7F or byte == 0xA9 for byte in kind)


def _read(file: BinaryIO, place: int, count: int) -> bytes:
    if place < 0 or place > file.seek(0, os.SEEK_END):
        return b""
    file.seek(place)
    return file.read(count)


def _find(file: BinaryIO, wanted: bytes, place: int, end: int) -> int | None:
    """Where these bytes are, at ``place`` or later."""
    while place < end:
        block = _read(file, place, _LOOK)
        found = block.find(wanted)
        if found >= 0:
            return place + found
        if len(block) <= len(wanted):
            return None
        place += len(block) - len(wanted) + 1
    return None

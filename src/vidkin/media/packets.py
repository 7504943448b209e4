"""Compare the compressed frames of two files packet by packet, independent of their containers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import av.error

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin.media.reader import media_error, open_video

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.stream import VideoStream

# Position, in the decoder configuration record, of the size of the length fields; see ISO/IEC 14496-15.
_LENGTH_OFFSETS = {"h264": 4, "hevc": 21}
# Types of NAL units without image data: parameter sets, delimiters, end markers, filler data, supplemental information.
# They are ignored, because some containers store them elsewhere.
_NON_FRAME_UNITS = {"h264": {6, 7, 8, 9, 10, 11, 12}, "hevc": {32, 33, 34, 35, 36, 37, 38, 39, 40}}
# Maximum number of packets to search in the second file for the first packet of the first file.
_MAX_SEARCHED = 200_000


@dataclass(frozen=True, slots=True)
class SamePackets:
    """Two files with the same compressed frames.

    Attributes:
        is_whole: Whether the files have the same frames; otherwise, the first has a run of the frames of the second.
        other_container: Whether the container formats of the files differ.
        start: Start of the first file within the second, in seconds.
    """

    is_whole: bool
    other_container: bool
    start: float


@check_arguments
def compare_packets(first: PathLike, second: PathLike) -> SamePackets | None:
    """Check, without decoding, whether a file has the same compressed frames as another file, or a run of them.

    NAL units of H.264 and HEVC are compared without framing, and units without image data are ignored, so that MP4,
    Matroska, MPEG-TS and AVI can be compared. Re-encoded files differ in the first packet, and reading stops there.

    Args:
        first: The file that may be a cut of the second.
        second: The other file.

    Returns:
        How the files are related; None if they do not have the same frames.

    Raises:
        MediaError: One of the files cannot be read.
    """
    with ExitStack() as stack:
        one, other = (stack.enter_context(open_video(path, threads=1)) for path in (first, second))
        if one[1].codec_context.codec.canonical_name != other[1].codec_context.codec.canonical_name:
            return None
        other_container = one[0].format.name != other[0].format.name
        try:
            return _compare(_hash_packets(*one), _hash_packets(*other), other_container)
        except av.error.FFmpegError as error:
            raise media_error(str(first), error) from error


def _compare(
    one: Iterator[tuple[bytes, float]], other: Iterator[tuple[bytes, float]], other_container: bool
) -> SamePackets | None:
    head = next(one, None)
    if head is None:
        return None
    base: float | None = None
    for position, (content, time) in enumerate(other):
        base = time if base is None else base
        if content == head[0]:
            is_whole = position == 0
            for left, right in zip_longest(one, other):
                if left is None:
                    # The second file has further frames.
                    is_whole = False
                    break
                if right is None or left[0] != right[0]:
                    return None
            return SamePackets(is_whole, other_container, max(0.0, time - base))
        if position == _MAX_SEARCHED:
            break
    return None


def _hash_packets(container: InputContainer, stream: VideoStream) -> Iterator[tuple[bytes, float]]:
    """Yield the hash of the image data of each packet in decoding order, and its time in seconds."""
    name = stream.codec_context.codec.canonical_name
    record = stream.codec_context.extradata or b""
    offset = _LENGTH_OFFSETS.get(name)
    size = (record[offset] & 3) + 1 if offset is not None and len(record) > offset and record[0] == 1 else 0
    for packet in container.demux(stream):
        if not packet.size:
            continue
        content = bytes(packet)
        digest = hashlib.blake2b(digest_size=16)
        if name not in _NON_FRAME_UNITS:
            digest.update(content)
        else:
            for unit in _split_by_length(content, size) if size else _split_by_start_codes(content):
                kind = unit[0] & 31 if name == "h264" else unit[0] >> 1 & 63
                if kind not in _NON_FRAME_UNITS[name]:
                    digest.update(unit.rstrip(b"\0"))
                    digest.update(b"|")
        time = packet.pts if packet.pts is not None else packet.dts or 0
        yield digest.digest(), float(time * packet.time_base) if packet.time_base else 0.0


def _split_by_length(content: bytes, size: int) -> Iterator[bytes]:
    offset = 0
    while offset + size < len(content):
        length = int.from_bytes(content[offset : offset + size], "big")
        unit = content[offset + size : offset + size + length]
        if unit:
            yield unit
        offset += size + length


def _split_by_start_codes(content: bytes) -> Iterator[bytes]:
    """Yield the units after start codes (00 00 01)."""
    for unit in content.split(b"\0\0\1")[1:]:
        if unit.rstrip(b"\0"):
            yield unit.rstrip(b"\0")

"""Whether two files hold the same compressed pictures, packet by packet, whatever contains them."""

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

# Place in the decoder configuration record of the number of bytes in a length, see ISO/IEC 14496-15.
_LENGTH_PLACES = {"h264": 4, "hevc": 21}
# Kinds of units that carry no picture: parameter sets, delimiters, ends, filler, supplemental information. Containers
# keep some of them elsewhere.
_NO_PICTURE = {"h264": {6, 7, 8, 9, 10, 11, 12}, "hevc": {32, 33, 34, 35, 36, 37, 38, 39, 40}}
# Packets of the longer file among which the first one of the other is looked for.
_MOST_SEARCHED = 200_000


@dataclass(frozen=True, slots=True)
class SamePackets:
    """Two files with the same compressed pictures.

    Attributes:
        is_whole: Whether both have all of them; otherwise the first file has some of the second, in a row.
        other_container: Whether the formats of the files differ.
        start: Seconds of the second file at which the first one begins.
    """

    is_whole: bool
    other_container: bool
    start: float


@check_arguments
def compare_packets(first: PathLike, second: PathLike) -> SamePackets | None:
    """Whether a file has all compressed pictures of another one, or a run of them: nothing is decoded.

    Units of H.264 and HEVC are compared without their framing and without those that carry no picture, so that MP4,
    Matroska, MPEG-TS and AVI can be compared. Files that were encoded again differ in the first packet, and no more is
    read than is needed to see that.

    Args:
        first: The file that may be a cut of the other one.
        second: The other one.

    Returns:
        None if they do not have the same pictures.

    Raises:
        MediaError: One of the files cannot be read.
    """
    with ExitStack() as stack:
        one, other = (stack.enter_context(open_video(path, threads=1)) for path in (first, second))
        if one[1].codec_context.codec.canonical_name != other[1].codec_context.codec.canonical_name:
            return None
        other_container = one[0].format.name != other[0].format.name
        try:
            return _compare(_pictures(*one), _pictures(*other), other_container)
        except av.error.FFmpegError as error:
            raise media_error(str(first), error) from error


def _compare(
    one: Iterator[tuple[bytes, float]], other: Iterator[tuple[bytes, float]], other_container: bool
) -> SamePackets | None:
    head = next(one, None)
    if head is None:
        return None
    base: float | None = None
    for place, (content, time) in enumerate(other):
        base = time if base is None else base
        if content == head[0]:
            is_whole = place == 0
            for left, right in zip_longest(one, other):
                if left is None:
                    # The longer one goes on.
                    is_whole = False
                    break
                if right is None or left[0] != right[0]:
                    return None
            return SamePackets(is_whole, other_container, max(0.0, time - base))
        if place == _MOST_SEARCHED:
            break
    return None


def _pictures(container: InputContainer, stream: VideoStream) -> Iterator[tuple[bytes, float]]:
    """Hash of the picture of each packet in the order of decoding, and its time in seconds."""
    name = stream.codec_context.codec.canonical_name
    record = stream.codec_context.extradata or b""
    place = _LENGTH_PLACES.get(name)
    size = (record[place] & 3) + 1 if place is not None and len(record) > place and record[0] == 1 else 0
    for packet in container.demux(stream):
        if not packet.size:
            continue
        content = bytes(packet)
        digest = hashlib.blake2b(digest_size=16)
        if name not in _NO_PICTURE:
            digest.update(content)
        else:
            for unit in _units_by_length(content, size) if size else _units_by_marks(content):
                kind = unit[0] & 31 if name == "h264" else unit[0] >> 1 & 63
                if kind not in _NO_PICTURE[name]:
                    digest.update(unit.rstrip(b"\0"))
                    digest.update(b"|")
        time = packet.pts if packet.pts is not None else packet.dts or 0
        yield digest.digest(), float(time * packet.time_base) if packet.time_base else 0.0


def _units_by_length(content: bytes, size: int) -> Iterator[bytes]:
    place = 0
    while place + size < len(content):
        length = int.from_bytes(content[place : place + size], "big")
        unit = content[place + size : place + size + length]
        if unit:
            yield unit
        place += size + length


def _units_by_marks(content: bytes) -> Iterator[bytes]:
    """Units that follow start codes, 00 00 01."""
    for unit in content.split(b"\0\0\1")[1:]:
        if unit.rstrip(b"\0"):
            yield unit.rstrip(b"\0")

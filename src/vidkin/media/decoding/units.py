"""Check whether packets that are not decoded are complete.

In MP4 and Matroska the units of H.264 and HEVC are preceded by their lengths (ISO/IEC 14496-15), so damage to a packet
nearly always shows without decoding it. The parts of an AV1 packet state their lengths, too; for VP8 and VP9 only the
first bytes and the sizes stated there can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.codeccontext import VideoCodecContext
    from av.video.stream import VideoStream

__all__ = ["find_packet_check"]

# Place in the decoder configuration record of the number of bytes in a length.
_LENGTH_PLACES = {"h264": 4, "hevc": 21}
# First byte of the record of AV1: marker and version.
_AV1_RECORD = b"\x81"
_VP8_START, _VP9_SYNC = b"\x9d\x01\x2a", b"\x49\x83\x42"


def find_packet_check(decoder: VideoCodecContext) -> Callable[[Packet[VideoStream]], bool] | None:
    """A function that checks whether a packet of a stream is complete without decoding it; None if there is none."""
    name, record = decoder.codec.canonical_name, decoder.extradata or b""
    check = {"vp8": _is_vp8, "vp9": _is_vp9}.get(name)
    place = _LENGTH_PLACES.get(name)
    if place is not None and len(record) > place and record[0] == 1:
        check = partial(_ends_with_its_units, size=(record[place] & 3) + 1)
    elif name == "av1" and record.startswith(_AV1_RECORD):
        check = _ends_with_its_parts
    if check is None:
        return None
    return lambda packet: check(memoryview(packet))


def _ends_with_its_units(content: memoryview, *, size: int) -> bool:
    """Whether units preceded by lengths of ``size`` bytes, as in H.264 and HEVC, end with the packet."""
    place = 0
    while place + size <= len(content):
        place += size + int.from_bytes(content[place : place + size], "big")
    return place <= len(content)


def _ends_with_its_parts(content: memoryview) -> bool:
    """Whether the OBUs of AV1 (AV1 bitstream specification, 5.3) end with the packet."""
    place = 0
    while place < len(content):
        header = content[place]
        if header & 0x81:
            return False  # the forbidden bit, or the reserved one
        place += 2 if header & 4 else 1
        if not header & 2:
            return True  # without a size, it takes the rest
        length = 0
        for shift in range(0, 56, 7):
            if place >= len(content):
                return False
            length |= (content[place] & 0x7F) << shift
            place += 1
            if content[place - 1] < 0x80:
                break
        place += length
    return place == len(content)


def _is_vp8(content: memoryview) -> bool:
    """Whether the frame tag (RFC 6386, 9.1) names a first part that fits, and a key frame has its start code."""
    if not content:
        return True  # an omitted frame
    tag = int.from_bytes(content[:3], "little")
    head = 3 if tag & 1 else 10
    return len(content) >= head + (tag >> 5) and (head == 3 or content[3:6] == _VP8_START)


def _is_vp9(content: memoryview) -> bool:
    """Whether each frame of the packet has the marker (VP9 bitstream specification, 6.2), and a key frame its sync
    code."""
    for frame in _vp9_frames(content):
        if frame is None or frame[0] >> 6 != 2:
            return False
        is_profile_3, is_key = frame[0] & 0x30 == 0x30, frame[0] & 0x0C == 0
        if is_key and not is_profile_3 and frame[1:4] != _VP9_SYNC:
            return False
    return True


def _vp9_frames(content: memoryview) -> Iterator[memoryview | None]:
    """The frames of a packet; None for those that the index at its end (Annex B) places beyond it."""
    if not content:
        return
    marker = content[-1]
    width, count = (marker >> 3 & 3) + 1, (marker & 7) + 1
    end = len(content) - 2 - count * width
    if marker & 0xE0 != 0xC0 or end < 0 or content[end] != marker:
        yield content
        return
    place = 0
    for at in range(end + 1, len(content) - 1, width):
        size = int.from_bytes(content[at : at + width], "little")
        if place + size > end:
            yield None
        elif size:
            yield content[place : place + size]
        place += size

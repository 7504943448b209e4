"""Packets that nobody decodes: are they whole?

In MP4 and Matroska the units of H.264 and HEVC are preceded by their lengths (ISO/IEC 14496-15), so damage to a packet
nearly always shows without decoding it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.codeccontext import VideoCodecContext
    from av.video.stream import VideoStream

__all__ = ["is_whole", "length_size"]

# Where the record of the decoder's configuration says how many bytes a length has.
_PLACES = {"h264": 4, "hevc": 21}


def length_size(decoder: VideoCodecContext) -> int | None:
    """Bytes of the length before each unit of a stream; None where units have none."""
    record, place = decoder.extradata or b"", _PLACES.get(decoder.codec.canonical_name)
    if place is None or len(record) <= place or record[0] != 1:
        return None
    return (record[place] & 3) + 1


def is_whole(packet: Packet[VideoStream], size: int) -> bool:
    """Whether the units of a packet, with lengths of ``size`` bytes before them, end within it."""
    content, place = memoryview(packet), 0
    while place + size <= len(content):
        place += size + int.from_bytes(content[place : place + size], "big")
    return place <= len(content)

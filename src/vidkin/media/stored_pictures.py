"""Match the packets of a video to its frames, and find where packet copying can begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin.media.frames import DEFAULT_TIME_BASE, is_same_time

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

# Formats whose packets carry presentation times.
_TIMED_FORMATS = ("mov,", "matroska,", "mpegts", "flv")

# H.264 profiles, as named by x264.
_PROFILES = {66: "baseline", 77: "main", 100: "high", 110: "high10", 122: "high422", 244: "high444"}


@dataclass(frozen=True, slots=True, eq=False)
class StoredPictures:
    """The packets of a video, one per frame, in decoding order.

    Attributes:
        ordinals: [T] int64, position of each packet among all packets of the video (some packets are never shown).
        stamps: [T] int64, presentation times in ticks of the stream.
        ranks: [T] int64, position of each packet's frame in presentation order.
        entries: Frames at which copying can begin, increasing; the packets from such a frame on are exactly the packets
            of the frames from it on.
        barriers: Frames, increasing, preceded by packets that are never shown but would be shown if copied.
        is_mixable: Whether encoded and copied frames can be mixed in one stream.
        sets: H.264 parameter sets in MP4 and Matroska.
        profile: H.264 profile, as named by x264.
        number: An unused ID for H.264 parameter sets.
    """

    ordinals: NDArray[np.int64]
    stamps: NDArray[np.int64]
    ranks: NDArray[np.int64]
    entries: NDArray[np.int64]
    barriers: NDArray[np.int64]
    is_mixable: bool
    sets: ParameterSets | None = None
    profile: str | None = None
    number: int | None = None

    def __len__(self) -> int:
        return len(self.ranks)

    def times(self) -> NDArray[np.int64]:
        """Return the presentation times [T] of the frames, increasing."""
        times: NDArray[np.int64] = np.sort(self.stamps)
        return times

    def last_end(self, start: int, end: int) -> int:
        """Return the end (exclusive, at most ``end``) of the frames from ``start`` that can be copied: their packets
        come first and need no later packets."""
        later = self.barriers[self.barriers > start]
        end = min(end, int(later[0])) if len(later) else end
        latest = np.maximum.accumulate(self.ranks[start:end])
        closed = np.flatnonzero(latest == np.arange(start, start + len(latest)))
        return start + int(closed[-1]) + 1 if len(closed) else start


def read_stored_pictures(
    container: InputContainer, main: VideoStream, times: NDArray[np.float64]
) -> StoredPictures | None:
    """Read all packets of a video.

    Args:
        container: The open file.
        main: The file's video stream.
        times: [T] times in seconds of the decoded frames, from the first frame; later frames can be missing.

    Returns:
        The packets; None if packets cannot be matched to frames because of separate fields, frames that are not shown,
        damage, or a format that stores only decoding times.
    """
    form = _CodecForm.of(main)
    ordinals: list[int] = []
    stamps: list[int] = []
    keys: list[int] = []  # positions in both lists
    hidden: list[int] = []  # positions preceded by a packet that is never shown
    for ordinal, packet in enumerate(packet for packet in container.demux(main) if packet.size):
        if packet.has_sidedata("new_extradata") or packet.is_corrupt:
            return None
        if packet.is_discard:
            hidden.append(len(stamps))
            continue
        stamp = packet.pts if container.format.name.startswith(_TIMED_FORMATS) else packet.dts
        if stamp is None:
            return None
        if packet.is_keyframe and form.can_begin(packet):
            keys.append(len(stamps))
        ordinals.append(ordinal)
        stamps.append(stamp)
    shown = np.array(stamps, np.int64)
    order = np.argsort(shown, kind="stable")
    seconds = (shown[order] - shown[order[:1]]) * float(main.time_base or DEFAULT_TIME_BASE)
    if len(times) > len(shown) or not is_same_time(seconds[: len(times)], times).all():
        return None
    if not container.format.name.startswith(_TIMED_FORMATS) and len(keys) < len(shown):
        return None
    ranks = np.empty(len(shown), np.int64)
    ranks[order] = np.arange(len(shown))
    latest = np.maximum.accumulate(ranks)
    candidates = np.array(keys, np.int64)
    clean = (ranks[candidates] == candidates) & (np.append(-1, latest)[candidates] == candidates - 1)
    return StoredPictures(
        np.array(ordinals, np.int64),
        shown,
        ranks,
        candidates[clean],
        np.unique(np.array(hidden, np.int64)),
        form.is_mixable,
        form.sets,
        form.profile,
        form.number,
    )


class _CodecForm:
    """Properties of a codec that determine how frames can be copied and mixed."""

    def __init__(self) -> None:
        self.is_mixable = False
        self.sets: ParameterSets | None = None
        self.profile: str | None = None
        self.number: int | None = None
        self._is_h264 = False

    @staticmethod
    def of(main: VideoStream) -> _CodecForm:
        """Read the properties of a stream."""
        form = _CodecForm()
        codec = main.codec_context.codec.canonical_name
        # Key frames of these codecs need no external parameters.
        form.is_mixable = codec in ("vp8", "vp9")
        if codec == "h264":
            form._is_h264 = True
            extra = main.codec_context.extradata or b""
            form.sets = ParameterSets.parse(extra)
            if form.sets is not None:
                form._read_sets([*form.sets.sequences, *form.sets.pictures])
                form.is_mixable = form.is_mixable and form.sets.length_size == 4
        return form

    def can_begin(self, packet: Packet[Any]) -> bool:
        """Whether copying can begin at this key frame."""
        if not self._is_h264:
            return True
        size = None if self.sets is None else self.sets.length_size
        units = list(split_units(bytes(packet), size))
        refreshes = is_instant_refresh(units, with_sets=self.sets is None)
        if refreshes and self.number is None:
            self._read_sets(units)
        return refreshes

    def _read_sets(self, units: list[bytes]) -> None:
        sequences = [unit for unit in units if unit[0] & 31 == 7]
        self.number = find_free_id(units)
        self.profile = _PROFILES.get(sequences[0][1]) if sequences else None
        self.is_mixable = self.number is not None and self.profile is not None


# The parts of H.264 that are needed to mix encoded and copied frames in one stream.
#
# A decoder needs the parameter sets (NAL types 7 and 8) that frames refer to by ID. MP4 and Matroska store them once
# for the whole stream (`avcC`, ISO/IEC 14496-15, 5.3.3.1), and precede the NAL units of frames with their length. MPEG
# transport streams repeat them before frames, with NAL units separated by start codes (Annex B of ITU-T H.264).


_REFRESH, _SLICES, _SEQUENCE, _PICTURE = 5, (1, 2, 3, 4, 5), 7, 8

_START = re.compile(b"\0\0\0?\1")

# Number of possible sequence parameter sets; there can be more picture parameter sets.
_MAX_SETS = 32


@dataclass(frozen=True, slots=True)
class ParameterSets:
    """Content of an `avcC` record.

    Attributes:
        head: Version, profile, compatibility and level, one byte each.
        length_size: Number of bytes in the length field before each NAL unit.
        sequences: Sequence parameter sets.
        pictures: Picture parameter sets.
        tail: Additional bytes of the high profiles.
    """

    head: bytes
    length_size: int
    sequences: tuple[bytes, ...]
    pictures: tuple[bytes, ...]
    tail: bytes

    @property
    def profile(self) -> int:
        """Number of the H.264 profile, in 0..255 (``profile_idc`` in the standard)."""
        return self.head[1]

    @staticmethod
    def parse(record: bytes) -> ParameterSets | None:
        """Parse a record; None if the bytes are not a record (Annex B, or damaged)."""
        if len(record) < 7 or record[0] != 1:
            return None
        sets: list[list[bytes]] = [[], []]
        offset = 5
        for kind, mask in enumerate((0x1F, 0xFF)):
            count, offset = (record[offset] & mask if offset < len(record) else 0), offset + 1
            for _ in range(count):
                size = int.from_bytes(record[offset : offset + 2], "big")
                sets[kind].append(record[offset + 2 : offset + 2 + size])
                offset += 2 + size
        if offset > len(record) or not all(sets) or not all(unit for units in sets for unit in units):
            return None
        return ParameterSets(record[:4], (record[4] & 3) + 1, tuple(sets[0]), tuple(sets[1]), record[offset:])

    def join(self, units: list[bytes]) -> ParameterSets:
        """Add the parameter sets among these NAL units, and raise the level if theirs is higher."""
        sequences = tuple(unit for unit in units if unit[0] & 31 == _SEQUENCE)
        level = max([self.head[3], *(unit[3] for unit in sequences)])
        return replace(
            self,
            head=self.head[:3] + bytes([level]),
            sequences=(*self.sequences, *sequences),
            pictures=(*self.pictures, *(unit for unit in units if unit[0] & 31 == _PICTURE)),
        )

    def to_bytes(self) -> bytes:
        """Serialize the record."""
        parts = [self.head, bytes([0xFC | self.length_size - 1, 0xE0 | len(self.sequences)])]
        parts += [len(unit).to_bytes(2, "big") + unit for unit in self.sequences]
        parts.append(bytes([len(self.pictures)]))
        parts += [len(unit).to_bytes(2, "big") + unit for unit in self.pictures]
        return b"".join([*parts, self.tail])


def split_units(content: bytes, length_size: int | None) -> Iterator[bytes]:
    """Split a packet into its NAL units.

    Args:
        content: The packet.
        length_size: Number of bytes in the length field before each unit; None for start codes.
    """
    if length_size is None:
        borders = [match.span() for match in _START.finditer(content)]
        ends = [*(start for start, _ in borders[1:]), len(content)]
        for (_, start), end in zip(borders, ends, strict=True):
            if end > start:
                yield content[start:end]
        return
    offset = 0
    while offset + length_size < len(content):
        size = int.from_bytes(content[offset : offset + length_size], "big")
        offset += length_size
        if size:
            yield content[offset : offset + size]
        offset += size


def to_lengths(units: list[bytes]) -> bytes:
    """Join the NAL units of a frame, without parameter sets, each preceded by its length in four bytes."""
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units if unit[0] & 31 not in (_SEQUENCE, _PICTURE))


def is_instant_refresh(units: list[bytes], *, with_sets: bool) -> bool:
    """Whether these NAL units are an IDR frame, at which decoding can begin without earlier packets.

    Args:
        units: NAL units of one packet.
        with_sets: Whether parameter sets must be among them.
    """
    kinds = {unit[0] & 31 for unit in units}
    has_sets = {_SEQUENCE, _PICTURE} <= kinds
    return kinds.intersection(_SLICES) == {_REFRESH} and (has_sets or not with_sets)


def find_free_id(units: list[bytes]) -> int | None:
    """Find an ID below 32 that none of these parameter sets uses; None if all are taken."""
    used = set()
    for unit in units:
        if unit[0] & 31 == _SEQUENCE:
            used.add(_read_exp_golomb(unit[4:]))  # after type, profile, constraints and level
        elif unit[0] & 31 == _PICTURE:
            used.add(_read_exp_golomb(unit[1:]))
    return next((number for number in reversed(range(_MAX_SETS)) if number not in used), None)


def _read_exp_golomb(content: bytes) -> int:
    """Decode the first Exp-Golomb number (9.1 of ITU-T H.264)."""
    bits = "".join(f"{byte:08b}" for byte in content[:9])
    zeros = len(bits) - len(bits.lstrip("0"))
    return int(bits[zeros : 2 * zeros + 1] or "1", 2) - 1

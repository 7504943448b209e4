"""The parts of H.264 needed to put encoded and copied pictures into one stream.

A decoder needs the parameter sets (NAL types 7 and 8) that pictures refer to by number. MP4 and Matroska store them
once for the whole stream (`avcC`, ISO/IEC 14496-15, 5.3.3.1), with the NAL units of pictures preceded by their length;
MPEG transport streams repeat them before pictures, with NAL units separated by start codes (Annex B of ITU-T H.264).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["ParameterSets", "free_number", "is_instant_refresh", "split_units", "to_lengths"]

_REFRESH, _SLICES, _SEQUENCE, _PICTURE = 5, (1, 2, 3, 4, 5), 7, 8
_START = re.compile(b"\0\0\0?\1")
# Number of possible sequence parameter sets; more picture parameter sets are possible.
_NUMBERS = 32


@dataclass(frozen=True, slots=True)
class ParameterSets:
    """The content of an `avcC` record.

    Attributes:
        head: Version, profile, compatibility and level, one byte each.
        length_size: Number of bytes in the length before a NAL unit.
        sequences: Sequence parameter sets.
        pictures: Picture parameter sets.
        tail: Bytes added by high profiles.
    """

    head: bytes
    length_size: int
    sequences: tuple[bytes, ...]
    pictures: tuple[bytes, ...]
    tail: bytes

    @property
    def profile(self) -> int:
        """``profile_idc``."""
        return self.head[1]

    @staticmethod
    def parse(record: bytes) -> ParameterSets | None:
        """Parse a record; None if the bytes are not one (Annex B, or damaged)."""
        if len(record) < 7 or record[0] != 1:
            return None
        sets: list[list[bytes]] = [[], []]
        place = 5
        for kind, mask in enumerate((0x1F, 0xFF)):
            count, place = (record[place] & mask if place < len(record) else 0), place + 1
            for _ in range(count):
                size = int.from_bytes(record[place : place + 2], "big")
                sets[kind].append(record[place + 2 : place + 2 + size])
                place += 2 + size
        if place > len(record) or not all(sets) or not all(unit for units in sets for unit in units):
            return None
        return ParameterSets(record[:4], (record[4] & 3) + 1, tuple(sets[0]), tuple(sets[1]), record[place:])

    def join(self, units: list[bytes]) -> ParameterSets:
        """Add the parameter sets among these NAL units, and raise the level to theirs if it is higher."""
        sequences = tuple(unit for unit in units if unit[0] & 31 == _SEQUENCE)
        level = max([self.head[3], *(unit[3] for unit in sequences)])
        return replace(
            self,
            head=self.head[:3] + bytes([level]),
            sequences=(*self.sequences, *sequences),
            pictures=(*self.pictures, *(unit for unit in units if unit[0] & 31 == _PICTURE)),
        )

    def to_bytes(self) -> bytes:
        """The record as bytes."""
        parts = [self.head, bytes([0xFC | self.length_size - 1, 0xE0 | len(self.sequences)])]
        parts += [len(unit).to_bytes(2, "big") + unit for unit in self.sequences]
        parts.append(bytes([len(self.pictures)]))
        parts += [len(unit).to_bytes(2, "big") + unit for unit in self.pictures]
        return b"".join([*parts, self.tail])


def split_units(content: bytes, length_size: int | None) -> Iterator[bytes]:
    """The NAL units of a packet.

    Args:
        content: The packet.
        length_size: Number of bytes in the length before each unit; None for start codes.
    """
    if length_size is None:
        borders = [match.span() for match in _START.finditer(content)]
        ends = [*(start for start, _ in borders[1:]), len(content)]
        for (_, start), end in zip(borders, ends, strict=True):
            if end > start:
                yield content[start:end]
        return
    place = 0
    while place + length_size < len(content):
        size = int.from_bytes(content[place : place + length_size], "big")
        place += length_size
        if size:
            yield content[place : place + size]
        place += size


def to_lengths(units: list[bytes]) -> bytes:
    """The NAL units of a picture without parameter sets, each preceded by its length in four bytes."""
    return b"".join(
        len(unit).to_bytes(4, "big") + unit for unit in units if unit[0] & 31 not in (_SEQUENCE, _PICTURE)
    )


def is_instant_refresh(units: list[bytes], *, with_sets: bool) -> bool:
    """Whether these NAL units are a picture at which decoding can begin without anything from before (IDR).

    Args:
        units: NAL units of one packet.
        with_sets: Whether parameter sets must be among them.
    """
    kinds = {unit[0] & 31 for unit in units}
    has_sets = {_SEQUENCE, _PICTURE} <= kinds
    return kinds.intersection(_SLICES) == {_REFRESH} and (has_sets or not with_sets)


def free_number(units: list[bytes]) -> int | None:
    """A number below 32 that none of these parameter sets uses; None if all are taken."""
    used = set()
    for unit in units:
        if unit[0] & 31 == _SEQUENCE:
            used.add(_exp_golomb(unit[4:]))  # after the type, the profile, its constraints and the level
        elif unit[0] & 31 == _PICTURE:
            used.add(_exp_golomb(unit[1:]))
    return next((number for number in reversed(range(_NUMBERS)) if number not in used), None)


def _exp_golomb(content: bytes) -> int:
    """The first number in these bits: as many zeros as it has bits after its first one (9.1 of ITU-T H.264)."""
    bits = "".join(f"{byte:08b}" for byte in content[:9])
    zeros = len(bits) - len(bits.lstrip("0"))
    return int(bits[zeros : 2 * zeros + 1] or "1", 2) - 1

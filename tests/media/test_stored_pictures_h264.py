"""Handwritten parameter sets and NAL units of H.264."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from tests.support.videos import encode, pan
from vidkin.media.stored_pictures import (
    ParameterSets,
    find_free_id,
    is_instant_refresh,
    split_units,
    to_lengths,
)

# Types 7 and 8; after profile, constraints and level follow the exp-Golomb codes of 0 (bit 1) and 2 (bits 011).
SEQUENCE_0, PICTURE_0 = bytes([0x67, 100, 0, 20, 0b10000000, 9]), bytes([0x68, 0b11000000])
SEQUENCE_2, PICTURE_31 = bytes([0x67, 100, 0, 31, 0b01100000, 9]), bytes([0x68, 0b00000100, 0b00010000])
KEY, OTHER = bytes([0x65, 1, 2, 3]), bytes([0x41, 4])
RECORD = bytes([1, 100, 0, 20, 0xFF, 0xE1, 0, 6]) + SEQUENCE_0 + bytes([1, 0, 2]) + PICTURE_0 + b"tail"


def test_an_avcc_record_is_parsed_and_serialized() -> None:
    sets = ParameterSets.parse(RECORD)
    assert sets is not None
    assert (sets.profile, sets.length_size, sets.sequences, sets.pictures, sets.tail) == (
        100,
        4,
        (SEQUENCE_0,),
        (PICTURE_0,),
        b"tail",
    )
    assert sets.to_bytes() == RECORD


def test_avcc_record_is_parsed_and_serialized() -> None:
    sets = ParameterSets.parse(RECORD)
    assert sets is not None
    joined = ParameterSets.parse(sets.join([SEQUENCE_2, b"\x06sei", PICTURE_31]).to_bytes())
    assert joined is not None
    assert joined.sequences == (SEQUENCE_0, SEQUENCE_2)
    assert joined.pictures == (PICTURE_0, PICTURE_31)
    assert joined.head == bytes([1, 100, 0, 31])


@pytest.mark.parametrize("record", [b"", b"\0\0\0\1\x67abc", RECORD[:12], RECORD[:8]])
def test_invalid_parameter_sets_are_not_parsed(record: bytes) -> None:
    assert ParameterSets.parse(record) is None


def test_units_are_found_by_start_codes_and_by_lengths() -> None:
    units = [SEQUENCE_0, KEY, OTHER]
    coded = b"\0\0\0\1" + SEQUENCE_0 + b"\0\0\1" + KEY + b"\0\0\0\1" + OTHER
    assert list(split_units(coded, None)) == units
    assert to_lengths(units) == b"\0\0\0\4" + KEY + b"\0\0\0\2" + OTHER
    assert list(split_units(to_lengths(units), 4)) == [KEY, OTHER]
    assert list(split_units(b"\2ab\0\1c", 1)) == [b"ab", b"c"]


def test_decoding_can_begin_at_instant_refreshes() -> None:
    assert is_instant_refresh([KEY], with_sets=False)
    assert not is_instant_refresh([OTHER], with_sets=False)
    assert not is_instant_refresh([KEY, OTHER], with_sets=False)
    assert not is_instant_refresh([SEQUENCE_0, KEY], with_sets=True)
    assert is_instant_refresh([SEQUENCE_0, PICTURE_0, KEY], with_sets=True)


def test_unused_parameter_set_id_is_found() -> None:
    assert find_free_id([SEQUENCE_0, PICTURE_0]) == 31
    assert find_free_id([SEQUENCE_2, bytes([0x68, 0b00000100, 0b00000000])]) == 30


def test_parameter_sets_of_a_real_file_are_parsed(tmp_path: Path) -> None:
    path = encode(tmp_path / "clip.mp4", pan("coffee", 4, width=96, height=64))
    with av.open(str(path)) as container:
        extra = container.streams.video[0].codec_context.extradata
    assert extra is not None
    sets = ParameterSets.parse(extra)
    assert sets is not None
    assert sets.to_bytes() == extra
    assert find_free_id([*sets.sequences, *sets.pictures]) == 31

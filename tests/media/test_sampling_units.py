"""Damaged packets are recognized by their first bytes and stated lengths."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from vidkin.media.sampling import find_packet_check

# Relevant parts of configuration records: 4-byte lengths, 2-byte lengths, AV1 version 1.
AVC = bytes([1, 0, 0, 0, 0xFF])
HEVC = bytes([1, *[0] * 20, 0xFD])
AV1 = bytes([0x81, 0, 0, 0])
VP9_KEY, VP9_FRAME = bytes([0x82, 0x49, 0x83, 0x42, 7]), bytes([0x86, 7])


def is_whole(codec: str, record: bytes, packet: bytes) -> bool:
    check = find_packet_check(SimpleNamespace(codec=SimpleNamespace(canonical_name=codec), extradata=record))  # type: ignore[arg-type]
    assert check is not None
    return check(packet)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("codec", "record", "packet", "whole"),
    [
        ("h264", AVC, b"\0\0\0\2ab\0\0\0\1c", True),
        ("h264", AVC, b"\0\0\0\2ab\0\0\0\2c", False),
        ("h264", AVC, b"\0\0\0\x68ab" + bytes(100) + b"cd", False),
        ("h264", AVC, b"\0\0\0\x68abcd" + bytes(100), True),
        ("hevc", HEVC, b"\0\2ab", True),
        ("hevc", HEVC, b"\0\3ab", False),
        # Temporal delimiter, then a frame of 3 bytes; a size of 128 takes two bytes.
        ("av1", AV1, b"\x12\x00\x32\x03abc", True),
        ("av1", AV1, b"\x32\x80\x01" + b"a" * 128, True),
        ("av1", AV1, b"\x32\x80\x01" + b"a" * 127, False),
        ("av1", AV1, b"\x32\x03abc!", False),
        ("av1", AV1, b"\x30whatever", True),  # without a size, the frame takes the rest
        ("av1", AV1, b"\x36\x00\x01a", True),  # with a header extension
        ("av1", AV1, b"\xff\xff\xff\xff", False),
        ("av1", AV1, b"\x32\xff", False),
        ("av1", AV1, b"", True),
        # A three-byte tag states 2 bytes for the first partition; key frames have ten bytes including the start code.
        ("vp8", b"", bytes([1 | 2 << 5, 0, 0]) + b"ab", True),
        ("vp8", b"", bytes([1 | 3 << 5, 0, 0]) + b"ab", False),
        ("vp8", b"", bytes([2 << 5, 0, 0, 0x9D, 1, 0x2A, 8, 0, 8, 0]) + b"ab", True),
        ("vp8", b"", bytes([2 << 5, 0, 0, 0x9D, 1, 0x2B, 8, 0, 8, 0]) + b"ab", False),
        ("vp8", b"", b"", True),
        ("vp9", b"", VP9_KEY, True),
        ("vp9", b"", b"\x82\x49\x83\x43", False),
        ("vp9", b"", VP9_FRAME, True),
        ("vp9", b"", b"\xc6\x07", False),
        ("vp9", b"", b"", True),
        # A four-byte length, which may be less than that of the packet, and the identifier.
        ("prores", b"", b"\0\0\0\x0aicpfab", True),
        ("prores", b"", b"\0\0\0\x0aicpfabcd", True),
        ("prores", b"", b"\0\0\0\x0bicpfab", False),
        ("prores", b"", bytes(10), False),
        # Two frames of 5 and 2 bytes with a correct index, then an index that states 3 bytes.
        ("vp9", b"", VP9_KEY + VP9_FRAME + bytes([0xC1, 5, 2, 0xC1]), True),
        ("vp9", b"", VP9_KEY + VP9_FRAME + bytes([0xC1, 5, 3, 0xC1]), False),
        ("vp9", b"", VP9_KEY + b"\0\0" + bytes([0xC1, 5, 2, 0xC1]), False),
    ],
)
def test_complete_and_damaged_packets_are_distinguished(codec: str, record: bytes, packet: bytes, whole: bool) -> None:
    assert is_whole(codec, record, packet) is whole


@pytest.mark.parametrize(
    ("codec", "record"), [("h264", b"\0\0\0\1\x67"), ("h264", b""), ("av1", b""), ("mpeg4", b"\0\0\1\xb0")]
)
def test_other_formats_cannot_be_checked(codec: str, record: bytes) -> None:
    context = SimpleNamespace(codec=SimpleNamespace(canonical_name=codec), extradata=record)
    assert find_packet_check(context) is None  # type: ignore[arg-type]

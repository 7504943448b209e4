"""What FFmpeg says about damage, for processes whose standard error stream is a file of their own.

Decoders conceal much of what is wrong and say so only in FFmpeg's log. A callback of Python cannot read it: decoders
write from threads of their own, the callback waits for Python's lock, and Python waits for the decoder. FFmpeg's own
callback needs no lock: it writes to the standard error stream. In a worker process that stream is a file, which is
read here between two packets.
"""

from __future__ import annotations

import os
import re

import av.logging

_STDERR = 2
# Beyond this size the file is emptied: what a hostile file makes a decoder say must not fill the disk.
_MOST_BYTES = 1 << 18
# "[h264 @ 0x5581e0] error while decoding MB 3 1".
_LINE = re.compile(rb"^\[[\w,.+ -]+ @ [0-9a-fx]+\] (.+)$", re.MULTILINE)
# Said of whole files, too, where decoding begins or goes on at a key frame: after a cut, as in every recording of a
# broadcast.
_HARMLESS = re.compile(
    b"|".join(
        (
            rb"co located POCs unavailable|mmco: unref short failure|reference picture missing during reorder",
            rb"Missing reference picture|Could not find ref with POC|Error constructing the frame RPS",
            rb"First slice in a frame missing|Warning MVs not available|warning: first frame is no keyframe",
            rb"non-existing [SP]PS|[SP]PS id out of range|sps_id .* out of range|decode_slice_header error|no frame!",
            rb"number of reference frames .* exceeds max|illegal short term buffer state|SEI type .* truncated",
            rb"Application has requested|Could not find codec parameters|Increasing reorder buffer|\s*$",
        )
    )
)

_seen: int | None = None


def listen() -> None:
    """Let FFmpeg write its errors, and `take` count them.

    Only for a process that decodes one file at a time and whose standard error stream is a file that can be read,
    without a name: the log of all decoders of a process is one.
    """
    global _seen
    av.logging.restore_default_callback()
    av.logging.set_libav_level(av.logging.ERROR)
    _seen = os.lseek(_STDERR, 0, os.SEEK_CUR)


def take() -> int:
    """Number of complaints about damage since the last call; 0 without `listen`. A microsecond if there are none."""
    global _seen
    if _seen is None or (end := os.lseek(_STDERR, 0, os.SEEK_CUR)) <= _seen:
        return 0
    os.lseek(_STDERR, _seen, os.SEEK_SET)
    content = os.read(_STDERR, min(end - _seen, _MOST_BYTES))
    if end > _MOST_BYTES:
        os.ftruncate(_STDERR, 0)
        end = 0
    os.lseek(_STDERR, end, os.SEEK_SET)
    _seen = end
    return sum(not _HARMLESS.match(line) for line in _LINE.findall(content))

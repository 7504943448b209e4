"""Errors that decoders report only to FFmpeg's log are counted in processes with their own log file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.support.videos import encode, pan
from vidkin.media.reader import take_complaints

_CODE = """
import os, sys
from vidkin.media.reader import listen_to_decoders, take_complaints
from vidkin.media import iter_frames
listen_to_decoders()
words = []
for path in sys.argv[1:]:
    take_complaints()
    list(iter_frames(path, rate=None, threads=2, on_damage=words.append))
    print(words[-1] if words else "")
os.write(2, b"[mpeg4 @ 0x12] Error at MB: 3\\n[h264 @ 0x12] mmco: unref short failure\\nsomething else\\n")
print(take_complaints(), take_complaints())
os.write(2, b"[mpeg4 @ 0x12] Error at MB: 3\\n" * 20_000)
print(take_complaints() > 1_000, os.fstat(2).st_size)
os.write(2, b"[mpeg4 @ 0x12] Error at MB: 3\\n")
print(take_complaints())
"""


def test_decoder_errors_are_counted_with_the_time_of_the_first(tmp_path: Path) -> None:
    """Two decoder threads would deadlock with a Python log callback."""
    whole = encode(
        tmp_path / "whole.avi", pan("coffee", 100, width=96, height=64), rate=25, codec="mpeg4", options={"g": "10"}
    )
    content = bytearray(whole.read_bytes())
    for place in range(len(content) // 2, len(content) * 3 // 4, 97):
        if b"00dc" not in content[place - 12 : place + 12]:
            content[place] = int(np.random.default_rng(place).integers(256))
    (tmp_path / "damaged.avi").write_bytes(content)
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            [sys.executable, "-c", _CODE, str(whole), str(tmp_path / "damaged.avi")],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=True,
        )
    lines = done.stdout.splitlines()
    assert lines[0] == ""
    assert lines[1].startswith("the file is damaged: ")
    # Errors are counted once and only for damaged files, and the log is truncated.
    assert lines[2:] == ["1 0", "True 0", "1"]


def test_other_processes_count_no_decoder_errors() -> None:
    assert take_complaints() == 0

from __future__ import annotations

import os

from vidkin._base.controls import replace_controls


def test_only_control_characters_are_replaced() -> None:
    assert replace_controls("a\x1b[31m\nb\x00\x9b\x7f") == "a\ufffd[31m\ufffdb\ufffd\ufffd\ufffd"
    for kept in ("día 山 [2].mp4", 'a, "b".mp4', os.fsdecode(b"film\xff.mp4"), ""):
        assert replace_controls(kept) == kept

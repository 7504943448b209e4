"""Facts about a collection as ``vidkin info`` shows them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from vidkin.cli.info import print_facts


@dataclass
class Facts:
    bytes: int = 1_500_000
    seconds: float = 75.25
    videos: int = 1200
    sampling_rate: float = 0.5
    mirrored: bool = True
    cause: str = ""
    weights: str | None = None
    name: str = "a\x1bb"


def test_facts_are_named_and_written_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts(Facts())
    out = capsys.readouterr().out
    for name, value in (
        ("size on disk", "1.5 MB"),
        ("total duration", "1:15.3"),
        ("videos", "1,200"),
        ("frames per second of video", "0.5"),
        ("mirrored", "yes"),
        ("name", "a�b"),
    ):
        assert any(name in line and value in line for line in out.splitlines()), name
    assert "cause" not in out
    assert "weights" not in out

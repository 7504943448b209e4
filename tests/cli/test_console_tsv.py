"""Tab-separated values on standard output."""

from __future__ import annotations

import os

import pytest

from vidkin.cli.console import write_tsv


def test_a_name_that_is_not_text_keeps_its_bytes_and_a_tab_makes_no_column(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    write_tsv([("query", "path"), ("q.mp4", os.fsdecode(b"/b\t\xe9.mp4"))])
    heading, row, rest = capfdbinary.readouterr().out.split(b"\n")
    assert heading == b"query\tpath"
    assert row.startswith(b"q.mp4\t/b")
    assert row.endswith(b"\xe9.mp4")
    assert row.count(b"\t") == 1
    assert rest == b""

"""Tracebacks are written to a file that cannot be redirected by a symbolic link and cannot fill the disk."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from vidkin.index.ingest import session as failure_log
from vidkin.index.ingest.session import FailureLog


def test_entries_are_appended_and_the_cause_names_the_log(tmp_path: Path) -> None:
    path = tmp_path / "errors.log"
    log = FailureLog(path)
    assert log.write("/a.mp4", "bug", "Traceback one") == f"bug; traceback in {path}"
    assert log.write("/b.mp4", "bug", "Traceback two") == f"bug; traceback in {path}"
    text = path.read_text(encoding="utf-8")
    assert text.index("'/a.mp4': bug\nTraceback one") < text.index("'/b.mp4': bug\nTraceback two")


def test_undecodable_name_is_escaped(tmp_path: Path) -> None:
    FailureLog(tmp_path / "errors.log").write(os.fsdecode(b"caf\xe9.mp4"), "bug", "trace \ud800")
    text = (tmp_path / "errors.log").read_text(encoding="utf-8")
    assert r"'caf\udce9.mp4': bug" in text
    assert r"trace \ud800" in text


def test_log_beyond_the_size_limit_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_log, "_MAX_BYTES", 50)
    log = FailureLog(tmp_path / "errors.log")
    for name in ("/a.mp4", "/b.mp4", "/c.mp4"):
        log.write(name, "bug", "x" * 40)
    text = (tmp_path / "errors.log").read_text(encoding="utf-8")
    assert ("/b.mp4" in text, "/c.mp4" in text) == (False, True)


def test_log_does_not_follow_symbolic_links(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "diary.txt").write_text("dear diary", encoding="utf-8")
    (tmp_path / "errors.log").symlink_to(tmp_path / "diary.txt")
    with caplog.at_level(logging.ERROR):
        assert FailureLog(tmp_path / "errors.log").write("/a.mp4", "bug", "Traceback") == "bug"
    assert (tmp_path / "diary.txt").read_text(encoding="utf-8") == "dear diary"
    assert "cannot be written" in caplog.text
    assert "Traceback" in caplog.text


def test_traceback_is_logged_to_the_logger_without_a_file(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert FailureLog().write("/a.mp4", "bug", "Traceback") == "bug"
    assert "'/a.mp4': bug\nTraceback" in caplog.text

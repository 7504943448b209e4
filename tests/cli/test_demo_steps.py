"""Lines of the demonstration that can be copied."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from vidkin.cli import demo as demo_steps


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path, quote: bool = True) -> str:
    demo_steps.say_command(*words, quote=quote)
    return capsys.readouterr().out.strip()


def test_words_are_quoted_as_a_shell_needs_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert printed(capsys, "search", Path("my clip.mp4"), "-n", "3") == "$ vidkin search 'my clip.mp4' -n 3"
    assert printed(capsys, "search", "a b", quote=False) == "$ vidkin search a b"


def test_a_program_on_the_path_is_called_by_its_name_and_another_one_by_its_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "vidkin"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    assert printed(capsys, "info") == "$ vidkin info"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert printed(capsys, "info") == f"$ {os.path.join('bin', 'vidkin')} info"

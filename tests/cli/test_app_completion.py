"""Completion in zsh: its script, and in the shell itself where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).parent / "vidkin"


def script() -> str:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    words = [PROGRAM, "--show-completion", "zsh"]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def test_the_script_for_zsh_completes_when_it_is_loaded() -> None:
    lines = script().splitlines()
    assert lines[0] == "#compdef vidkin"
    assert [line for line in lines if line][-1] == (
        '[[ ${zsh_eval_context[-1]} == loadautofunc ]] && _vidkin_completion "$@"'
    )


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes_at_the_first_tab(tmp_path: Path) -> None:
    (tmp_path / "_vidkin").write_text(script())
    # Instead of the terminal: what zsh would offer is printed.
    program = """
    fpath=($1 $fpath); autoload -Uz compinit; compinit -u -D
    _arguments() { print -r -- "$@" }
    words=(vidkin dup); CURRENT=2; _vidkin
    """
    done = subprocess.run(
        ["zsh", "-f", "-c", program, "zsh", str(tmp_path)],
        env={**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count('"duplicates"') == 1, done.stderr

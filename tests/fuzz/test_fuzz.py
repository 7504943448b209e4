"""Ten minutes of coverage-guided fuzzing, divided among the targets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

_SECONDS = 600


@pytest.mark.slow
@pytest.mark.timeout(_SECONDS)
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_fuzzing_finds_no_failure(name: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="has no wheel for this Python")
    seconds = str(_SECONDS // len(TARGETS))
    command = [sys.executable, "-m", "tests.fuzz", name, "--seconds", seconds, "--found", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    broken = [path for path in tmp_path.iterdir() if path.name.startswith(("crash-", "timeout-", "oom-"))]
    assert done.returncode == 0, f"{[path.read_bytes()[:2000] for path in broken]}\n{done.stderr[-4000:]}"

"""Ctrl-C while modules are imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.kill

# As torch and NumPy do, the module swallows what is raised while it is imported.
SLOW = """
import time
print("importing", flush=True)
try:
    time.sleep(SECONDS)
except BaseException:
    pass
"""
PROGRAM = """
import time
from vidkin.cli import end_at_once_during_imports
end_at_once_during_imports()
import slow
try:
    print("imported", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    raise SystemExit(7)
"""


@pytest.mark.parametrize(("seconds", "status", "message"), [(60, 130, "Interrupted.\n"), (0, 7, "")])
def test_only_an_import_is_ended_at_once(seconds: int, status: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW.replace("SECONDS", str(seconds)))
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for expected in ("importing\n", "imported\n")[: 1 if seconds else 2]:
            assert process.stdout.readline() == expected
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (status, message)

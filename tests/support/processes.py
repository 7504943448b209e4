"""Processes started by `torchrun`, for tests of distributed training."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from safetensors.torch import load_file

__all__ = ["difference", "finish", "start_processes"]


def start_processes(script: Path, *words: str, processes: int = 2) -> subprocess.Popen[str]:
    """Start a script in several processes, each with one thread."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.Popen(
        [*command, "--nproc-per-node", str(processes), str(script), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(started: subprocess.Popen[str]) -> None:
    """Wait for the processes to finish, and assert that they succeeded."""
    out, _ = started.communicate(timeout=240)
    assert started.returncode == 0, out


def difference(first: Path, second: Path) -> float:
    """Largest absolute difference between the weights of two models."""
    one, two = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert one.keys() == two.keys()
    return max(float((one[name].double() - two[name].double()).abs().max()) for name in one)

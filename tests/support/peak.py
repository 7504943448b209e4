"""Peak memory and CPU time of a piece of work, measured in a separate process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["Peak", "measure_peak"]

# VmHWM is the peak of this process only; getrusage() includes the parent's peak if that is larger.
_PROGRAM = """
import sys, time
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
exec(compile({before!r}, "before", "exec"))
least, began = peak(), time.process_time()
try:
    exec(compile({work!r}, "work", "exec"))
    said = "done"
except Exception as error:
    said = f"{{type(error).__name__}}: {{error}}"
print(peak() - least, time.process_time() - began, said.replace(chr(10), " "))
"""


class Peak(NamedTuple):
    """Measurements of the work.

    Attributes:
        memory: Bytes in addition to the memory of the process before the work.
        seconds: CPU time.
        said: ``"done"``, or type and message of the error that ended the work.
    """

    memory: int
    seconds: float
    said: str


def measure_peak(before: str, work: str, path: Path) -> Peak:
    """Run two programs in a new process and measure the second one; ``sys.argv[1]`` is the path in both."""
    program = _PROGRAM.format(before=before, work=work)
    command = [sys.executable, "-c", program, str(path)]
    began = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, f"{ended.stderr} after {time.monotonic() - began:.1f} s"
    memory, seconds, said = ended.stdout.strip().split(" ", 2)
    return Peak(int(memory), float(seconds), said)

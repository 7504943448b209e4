"""The most memory that a piece of work takes, measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["Peak", "measure_peak"]

# The largest resident set of this process alone; getrusage() gives that of the parent as well, if it is larger.
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
    """What the work took.

    Attributes:
        memory: Bytes beyond those of the process before the work.
        seconds: Processor time.
        said: ``"done"``, or type and message of the error that ended the work.
    """

    memory: int
    seconds: float
    said: str


def measure_peak(before: str, work: str, path: Path) -> Peak:
    """Run two programs in a new process and measure the second; ``sys.argv[1]`` is the path in both."""
    program = _PROGRAM.format(before=before, work=work)
    command = [sys.executable, "-c", program, str(path)]
    began = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, f"{ended.stderr} after {time.monotonic() - began:.1f} s"
    memory, seconds, said = ended.stdout.strip().split(" ", 2)
    return Peak(int(memory), float(seconds), said)

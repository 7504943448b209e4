"""Code coverage of a single command: modules imported, and files and functions that run.

    python research/benchmarks/walk.py [--list] search clip.mp4 -i library.vidkin

Runs the command in this process, whose output comes first. Code that runs during the import of a module and code in
other processes is not counted. ``--list`` also prints the files. ``PYTHONPATH=OTHER/src`` measures another version.
"""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any


class Walk:
    """Counts function calls below a folder, except those during the import of a module.

    Attributes:
        functions: File and qualified name of each function that ran.
    """

    def __init__(self, folder: Path) -> None:
        self.functions: set[tuple[str, str]] = set()
        self._folder = f"{folder}/"
        self._imports = threading.local()

    def watch(self, frame: FrameType, event: str, argument: Any) -> None:
        """Callback for `sys.setprofile`."""
        del argument
        if event not in ("call", "return"):
            return
        code = frame.f_code
        depth = getattr(self._imports, "depth", 0)
        # Bodies of modules and classes have no fast local variables.
        if code.co_flags & CO_OPTIMIZED:
            if event == "call" and not depth and code.co_filename.startswith(self._folder):
                self.functions.add((code.co_filename, code.co_qualname))
        elif code.co_name == "<module>" and code.co_filename.endswith(".py"):
            self._imports.depth = depth + (1 if event == "call" else -1)


def main() -> None:
    """Run the command and print one line on standard error."""
    words = sys.argv[1:]
    lists = words[:1] == ["--list"]
    command = words[1:] if lists else words
    if not command or command[0] in ("-h", "--help"):
        sys.exit(__doc__)
    specification = find_spec("vidkin")
    if specification is None or specification.origin is None:
        sys.exit("vidkin must be installed, or its src folder must be in PYTHONPATH")
    folder = Path(specification.origin).parent
    walk = Walk(folder)
    sys.argv = ["vidkin", *command]
    threading.setprofile(walk.watch)
    sys.setprofile(walk.watch)
    status: Any = 0
    try:
        from vidkin.cli import main as run_command

        run_command()
    except SystemExit as end:
        status = end.code
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = sorted({Path(file).relative_to(folder).as_posix() for file, _ in walk.functions})
    modules = sum(name.partition(".")[0] == "vidkin" for name in sys.modules)
    print(
        f"modules imported: {modules}, files that ran: {len(files)}, functions: {len(walk.functions)}",
        file=sys.stderr,
    )
    if lists:
        print(*files, sep="\n", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()

"""Entry point of the bundled executable, which runs either the command line or a worker process."""

from __future__ import annotations

import multiprocessing
import os
import sys

# Set by the bootloader of PyInstaller to the folder of the bundle; the original value is in `..._ORIG`.
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "LIBPATH")


def main() -> None:
    """Run a vidkin command, or describe files for the parent process."""
    multiprocessing.freeze_support()
    _restore_environment()
    from vidkin._base.bundle import WORKER_OPTION

    if sys.argv[1:2] == [WORKER_OPTION]:
        from vidkin.index.ingest.worker import run_worker

        run_worker(int(sys.argv[2]) if len(sys.argv) > 2 else None)
        return
    from vidkin.cli import main as run_command

    run_command()


def _restore_environment() -> None:
    """Let players and browsers started by vidkin load system libraries; vidkin's workers are set up again."""
    for name in _LIBRARY_PATHS:
        os.environ.pop(name, None)
        if (original := os.environ.pop(f"{name}_ORIG", None)) is not None:
            os.environ[name] = original
    os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"


if __name__ == "__main__":
    main()

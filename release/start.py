"""Start of the bundled executable: the command line, or a worker process of an executable that has no interpreter."""

from __future__ import annotations

import multiprocessing
import os
import sys

# Where the bootloader of PyInstaller puts the folder of the bundle, and in `..._ORIG` what was there before.
_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "LIBPATH")


def main() -> None:
    """Run a command of vidkin, or describe files for the process that started this one."""
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
    """Let players and browsers that vidkin starts load the system's libraries; its own workers find the bundle's."""
    for name in _LIBRARY_PATHS:
        os.environ.pop(name, None)
        if (original := os.environ.pop(f"{name}_ORIG", None)) is not None:
            os.environ[name] = original
    os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"


if __name__ == "__main__":
    main()

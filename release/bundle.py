"""Build the bundle: a folder with an executable `vidkin` that runs without Python, for the current platform.

    python release/bundle.py [--output dist] [--environment build/bundle]

Installs `vidkin[otio,web]` of this checkout and PyInstaller, with the pins of constraints.txt, into a separate
environment, and writes ``vidkin-VERSION-SYSTEM-MACHINE`` to the output folder. Prints the size of that folder and the
start-up time of `vidkin --help`. On Linux the bundle requires a C library at least as new as that of the build machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Without variables that would add packages from outside the environment to the bundle.
VARIABLES = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
SPEC = ROOT / "release" / "vidkin.spec"
STARTS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="output folder for the bundle")
    parser.add_argument(
        "--environment",
        type=Path,
        default=ROOT / "build" / "bundle",
        help="folder of the build environment, which later builds reuse",
    )
    arguments = parser.parse_args()
    python = install(arguments.environment.absolute())
    bundle = build(python, arguments.output.absolute(), arguments.environment.absolute() / "pyinstaller")
    size = sum(path.lstat().st_size for path in bundle.rglob("*") if path.is_file()) / 2**20
    print(f"{bundle}\n{size:.0f} MiB; vidkin --help takes {start_seconds(bundle):.2f} s")
    return 0


def install(environment: Path) -> Path:
    """Create an environment with vidkin but without training dependencies; return its Python interpreter."""
    if not (environment / "pyvenv.cfg").is_file():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, env=VARIABLES)
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, f"{ROOT}[otio,web]", "pyinstaller"], check=True, env=VARIABLES)
    # Always reinstall, since the sources may have changed without a new version.
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(ROOT)], check=True, env=VARIABLES)
    return python


def build(python: Path, output: Path, work: Path) -> Path:
    """Run PyInstaller; return the folder of the bundle."""
    shutil.rmtree(work, ignore_errors=True)
    command = [str(python), "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    command += ["--workpath", str(work), "--distpath", str(work / "dist"), str(SPEC)]
    subprocess.run(command, cwd=work.parent, check=True, env=VARIABLES)
    (made,) = (work / "dist").iterdir()
    for name in ("LICENSE", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, made)
    license_of_python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    if license_of_python.is_file():  # on Windows it is in another folder
        shutil.copy(license_of_python, made / "LICENSE-Python.txt")
    target = output / made.name
    if target.exists():
        shutil.rmtree(target)
    output.mkdir(parents=True, exist_ok=True)
    shutil.move(made, target)
    return target


def start_seconds(bundle: Path) -> float:
    """Minimum run time of `vidkin --help` in seconds."""
    times = []
    for _ in range(STARTS):
        begun = time.monotonic()
        subprocess.run([str(bundle / "vidkin"), "--help"], check=True, env=VARIABLES, stdout=subprocess.DEVNULL)
        times.append(time.monotonic() - begun)
    return min(times)


if __name__ == "__main__":
    sys.exit(main())

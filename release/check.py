"""Build the source distributions and wheels of a release and test them in an empty environment.

    python release/check.py [--output dist] [--python python3.13] [-- PYTEST_ARGUMENTS]

Builds all three packages with `build`, checks their metadata with `twine`, installs the wheel of vidkin with the extras
`plots`, `test` and `web` and the pins of constraints.txt into an empty environment, and runs the tests of the unpacked
source distribution there, outside of this checkout; by default, only the quick tests. Without torch, training tests are
skipped. Packages that would have to be compiled are refused.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT, ROOT / "research", ROOT / "scale")
QUICK = ("tests", "-m", "not lane and not bench")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=ROOT / "dist", help="output folder for source distributions and wheels"
    )
    parser.add_argument("--python", default=sys.executable, help="Python interpreter for the empty environment")
    parser.add_argument("tests", nargs="*", default=QUICK, help="pytest arguments, after -- (default: the quick tests)")
    arguments = parser.parse_args()
    output = arguments.output.absolute()
    with tempfile.TemporaryDirectory() as folder:
        tools = make_environment(sys.executable, Path(folder, "tools"), "build", "twine")
        made = build(tools, output, Path(folder))
        run([str(tools), "-m", "twine", "check", "--strict", *map(str, made)], folder)
        wheel = next(path for path in made if path.name.startswith("vidkin-") and path.suffix == ".whl")
        archive = next(path for path in made if path.name.startswith("vidkin-") and path.suffix == ".gz")
        constraints = ("--constraint", str(ROOT / "constraints.txt"))
        python = make_environment(
            arguments.python, Path(folder, "empty"), "--only-binary", ":all:", *constraints, f"{wheel}[plots,test,web]"
        )
        run([str(python), "-m", "vidkin", "doctor"], folder)
        with tarfile.open(archive) as content:
            content.extractall(Path(folder, "source"), filter="data")
        (source,) = Path(folder, "source").iterdir()
        run([str(python), "-m", "pytest", *arguments.tests], source)
    print(f"{len(made)} files in {output} passed their tests")
    return 0


def make_environment(python: str, folder: Path, *packages: str) -> Path:
    """Create an environment with these packages; return its Python interpreter."""
    run([python, "-m", "venv", str(folder)], folder.parent)
    made = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run([str(made), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], folder.parent)
    return made


def build(tools: Path, output: Path, folder: Path) -> list[Path]:
    """Build source distribution and wheel of each package; existing files with the same name are replaced."""
    made = folder / "built"
    for package in PACKAGES:
        run([str(tools), "-m", "build", "--outdir", str(made), str(package)], folder)
    output.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.move(path, output / path.name)) for path in sorted(made.iterdir())]


def run(command: list[str], folder: str | Path) -> None:
    """Run a command without environment variables that would expose the modules of this checkout; it must succeed."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run(command, cwd=folder, env=variables, check=True)


if __name__ == "__main__":
    sys.exit(main())

"""Disk size of a fresh installation, by package; every package must be available as a wheel.

    python research/benchmarks/install_size.py [--extras web,train] [--python python3.13] [--output FILE.json]

Builds the source distribution of this checkout and a wheel from it, installs the wheel with pip and the pins of
constraints.txt into an empty environment, and runs ``vidkin --version`` there. Packages that would have to be compiled
are refused. Sizes are those of the installed files, without bytecode. Whether the extra ``train`` installs torch with
or without CUDA depends on the configuration of pip and affects the size more than everything else.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Extras that require torch.
LEARNING = {"all", "dev", "train"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extras", default="", help="comma-separated extras to install, such as web,train")
    parser.add_argument("--python", default=sys.executable, help="Python interpreter used to create the environment")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sizes = install(Path(folder), arguments.python, arguments.extras)
    total = sum(sizes.values())
    result = {
        "extras": arguments.extras,
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": len(sizes),
        "mebibytes": round(total, 1),
        "largest": dict(sorted(sizes.items(), key=lambda item: -item[1])[:12]),
    }
    for name, size in result["largest"].items():
        print(f"{size:9.1f} MiB  {size / total:5.1%}  {name}")
    print(f"{total:9.1f} MiB  in {len(sizes)} packages")
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


def install(folder: Path, python: str, extras: str) -> dict[str, float]:
    """Return package -> MiB of its files, in a new environment below ``folder``."""
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), "--target"]
    subprocess.run([*build, "sdist"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    subprocess.run([*build, "wheel"], cwd=source, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    subprocess.run([python, "-m", "venv", str(environment)], check=True)
    binaries = environment / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [
        str(binaries / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--only-binary",
        ":all:",
    ]
    pip += ["--disable-pip-version-check", "--constraint", str(ROOT / "constraints.txt")]
    if LEARNING & set(extras.split(",")):
        # Install torch first and separately, as in the Makefile: its pin accepts any installed build.
        subprocess.run([*pip, "torch"], check=True)
    subprocess.run([*pip, f"{wheel}[{extras}]" if extras else str(wheel)], check=True)
    subprocess.run([str(binaries / "vidkin"), "--version"], check=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([str(binaries / "python"), "-c", code], check=True, capture_output=True, text=True)
    sizes = {}
    for found in distributions(path=[site.stdout.strip()]):
        files = [Path(str(file.locate())) for file in found.files or ()]
        sizes[found.name] = sum(file.stat().st_size for file in files if file.is_file()) / 2**20
    # On Python 3.11, these belong to the environment itself.
    return {name: round(size, 1) for name, size in sizes.items() if name not in ("pip", "setuptools")}


if __name__ == "__main__":
    sys.exit(main())

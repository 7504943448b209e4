"""What a fresh installation takes on the disk, package by package, and whether every package comes as a wheel.

    python research/benchmarks/install_size.py [--extras web,train] [--python python3.13] [--output FILE.json]

Builds the source archive of this checkout and the wheel from it, installs that with pip and the pins of constraints.txt
into an empty environment, and runs ``vidkin --version`` there. What would have to be compiled is refused. Sizes are
those of the files that pip has written, without byte code. Which build of torch comes with the extra ``train``, with
CUDA or without, is decided by pip's settings and weighs more than the rest.
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
# Extras that bring torch.
LEARNING = {"all", "dev", "train"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extras", default="", help="comma-separated extras, such as web,train")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environment")
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
    """Package -> MiB of its files, in a new environment below ``folder``."""
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
        # torch first and alone, as in the Makefile: its pin takes the build that is there.
        subprocess.run([*pip, "torch"], check=True)
    subprocess.run([*pip, f"{wheel}[{extras}]" if extras else str(wheel)], check=True)
    subprocess.run([str(binaries / "vidkin"), "--version"], check=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([str(binaries / "python"), "-c", code], check=True, capture_output=True, text=True)
    sizes = {}
    for found in distributions(path=[site.stdout.strip()]):
        files = [Path(str(file.locate())) for file in found.files or ()]
        sizes[found.name] = sum(file.stat().st_size for file in files if file.is_file()) / 2**20
    # Those are of the environment itself, on Python 3.11.
    return {name: round(size, 1) for name, size in sizes.items() if name not in ("pip", "setuptools")}


if __name__ == "__main__":
    sys.exit(main())

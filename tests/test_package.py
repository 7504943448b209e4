"""What is published: one wheel without compiled parts that holds everything, and a source archive that builds it."""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import vidkin

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_needs_no_compiler_and_holds_every_file(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "vidkin").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entries = archive.read(next(name for name in names if name.endswith("/entry_points.txt"))).decode()
    inside = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    assert inside == files
    for kind in ("py.typed", ".toml", ".safetensors", ".html", ".css", ".js"):
        assert any(name.endswith(kind) for name in inside), kind
    assert "vidkin = vidkin.cli:main" in entries
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_extra_all_gathers_those_for_users(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    packages: dict[str, set[str]] = {}
    for line in metadata.get_all("Requires-Dist") or ():
        requirement, _, marker = line.partition(";")
        if "extra ==" in marker:
            packages.setdefault(marker.split("extra ==")[1].strip(" '\""), set()).add(requirement.strip())
    # UMAP brings numba, which weighs more than all that a map needs otherwise.
    users = packages.keys() - {"all", "bench", "dev", "docs", "map"}
    assert {"otio", "plots", "tensorboard", "train", "web"} <= users
    assert packages["all"] == set().union(*(packages[extra] for extra in users))


def test_the_source_archive_builds_and_tests_itself(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    assert names >= {"pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt", "CHANGELOG.md"}
    assert names >= {"mkdocs.yml", "docs/site/pages.py"}
    assert names >= {"src/vidkin/py.typed", "tests/conftest.py", "docs/start.md", "research/benchmarks/run_all.py"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_of_the_archive_installs_into_an_empty_environment(version: str) -> None:
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    # A pyenv puts a command of every version on the path, which fails where that version is not the chosen one.
    python = str(installed[-1]) if installed else shutil.which(f"python{version}")
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    command = [sys.executable, "research/benchmarks/install_size.py", "--python", python]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if missing := re.search(r"No matching distribution found for (\S+)", done.stderr):
        pytest.skip(f"this machine reaches no package index with {missing[1]} for Python {version}")
    assert done.returncode == 0, done.stderr
    assert f"vidkin {vidkin.__version__}" in done.stdout
    total = re.search(r"([\d.]+) MiB  in \d+ packages", done.stdout)
    assert total is not None
    assert float(total[1]) <= 650

"""The published files: a pure-Python wheel with every file, and a source archive that builds it."""

from __future__ import annotations

import email
import email.message
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import typer

import vidkin
from vidkin.cli.app import app

ROOT = Path(__file__).resolve().parents[1]


# Folder of each package in the repository -> name of its module.
MODULES = {".": "vidkin", "research": "vidkin_research", "scale": "vidkin_scale"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


def build(package: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=package, check=True, capture_output=True)


def sources(package: str) -> set[str]:
    """Files of a package's module, with the names they have in a wheel."""
    source = ROOT / package / "src"
    return {
        path.relative_to(source).as_posix()
        for path in (source / MODULES[package]).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def wheel_metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_wheel_is_pure_python_and_has_every_file(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entries = archive.read(next(name for name in names if name.endswith("/entry_points.txt"))).decode()
    inside = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    assert inside == sources(".")
    for kind in ("py.typed", ".toml", ".safetensors", ".html", ".css", ".js"):
        assert any(name.endswith(kind) for name in inside), kind
    assert "vidkin = vidkin.cli:main" in entries
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_extra_all_combines_those_for_users(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    metadata = wheel_metadata(wheel)
    packages: dict[str, set[str]] = {}
    for line in metadata.get_all("Requires-Dist") or ():
        requirement, _, marker = line.partition(";")
        if "extra ==" in marker:
            packages.setdefault(marker.split("extra ==")[1].strip(" '\""), set()).add(requirement.strip())
    # UMAP requires numba, which is larger than everything else that maps need.
    users = packages.keys() - {"all", "bench", "dev", "docs", "map", "test"}
    assert {"otio", "plots", "tensorboard", "train", "web"} <= users
    assert packages["all"] == set().union(*(packages[extra] for extra in users))


def test_source_archive_has_everything_to_build_and_test_it(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    assert names >= {"pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt", "CHANGELOG.md"}
    assert names >= {"mkdocs.yml", "docs/site/pages.py"}
    assert names >= {"src/vidkin/py.typed", "tests/conftest.py", "docs/start.md", "research/benchmarks/run_all.py"}


@pytest.mark.process
@pytest.mark.parametrize("package", ["research", "scale"])
def test_other_packages_of_the_repository_have_their_modules_and_a_license(package: str, tmp_path: Path) -> None:
    build(ROOT / package, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if not name.partition("/")[0].endswith(".dist-info")} == sources(package)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    metadata = wheel_metadata(wheel)
    assert metadata["Version"] == vidkin.__version__
    assert (ROOT / package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_every_data_folder_documents_the_origin_of_its_files(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        data = [name for name in names if name.endswith((".jpg", ".onnx", ".safetensors"))]
        for folder in {name.rpartition("/")[0] for name in data}:
            texts = {f"{folder}/ORIGIN.txt", f"{folder}/LICENSES.txt"} & {*names}
            assert texts, f"{folder} does not say where its files are from"
            described = "".join(archive.read(name).decode() for name in texts)
            photographs = [
                Path(name).stem for name in data if name.endswith(".jpg") and Path(name).parent == Path(folder)
            ]
            assert [name for name in photographs if name not in described] == []


def test_container_copies_existing_files_and_starts_an_existing_command(built: Path) -> None:
    text = re.sub(r"(?m)^#.*$", "", (ROOT / "Containerfile").read_text(encoding="utf-8"))
    copied = [source for words in re.findall(r"(?m)^COPY (?!--)(.+) \S+$", text) for source in words.split()]
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    assert "Containerfile" in names
    assert copied
    assert {source for source in copied if source not in names and not (ROOT / source).is_dir()} == set()
    (program,) = json.loads(re.search(r"(?m)^ENTRYPOINT (.+)$", text)[1])
    command, *options = json.loads(re.search(r"(?m)^CMD (.+)$", text)[1])
    assert program == "vidkin"
    known = {name for option in typer.main.get_command(app).commands[command].params for name in option.opts}
    assert {option for option in options if option.startswith("-")} <= known


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_wheel_from_the_archive_installs_into_an_empty_environment(version: str) -> None:
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    # pyenv puts a shim for every version on the path, which fails unless that version is selected.
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

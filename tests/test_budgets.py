"""Limits on how much of vidkin each command imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin import Index

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a clip and an index of it."""
    folder = tmp_path_factory.mktemp("library")
    encode(folder / "clip.mp4", pan("rocket", 30))
    with Index.open(folder / "library.vidkin", create=True) as index:
        index.add([folder / "clip.mp4"])
    return folder


@pytest.mark.parametrize(
    ("command", "most"),
    [
        (["info", "--index", "library.vidkin"], 90),
        (["search", "clip.mp4", "--index", "library.vidkin"], 130),
        (["shots", "clip.mp4"], 100),
    ],
    ids=["info", "search", "shots"],
)
def test_commands_import_few_modules(library: Path, command: list[str], most: int) -> None:
    assert sum(name.partition(".")[0] == "vidkin" for name in loaded_by(library, command)) <= most


# Packages needed only for training and plots, or not at all; pydantic is used only by the web app and typer.
LEARNING = {
    *("torch", "torchvision", "timm", "sklearn", "skimage", "scipy", "pywt", "onnx", "onnxscript"),
    *("matplotlib", "pandas", "sympy", "numba"),
}


@pytest.mark.parametrize(
    "command",
    [
        ["info", "--index", "library.vidkin"],
        ["search", "clip.mp4", "--index", "library.vidkin"],
        ["match", "clip.mp4", "clip.mp4"],
        ["duplicates", "--index", "library.vidkin"],
        ["shots", "clip.mp4"],
        ["embed", "clip.mp4", "-o", "features.safetensors"],
        ["index", "clip.mp4", "--index", "new.vidkin", "--workers", "1"],
        ["serve", "--help"],
    ],
    ids=lambda command: command[0],
)
def test_commands_import_no_training_packages(library: Path, command: list[str]) -> None:
    loaded = {name.partition(".")[0] for name in loaded_by(library, command)}
    assert loaded & {*LEARNING, "pydantic"} == set()


def test_search_without_sound_imports_no_sound_modules(library: Path) -> None:
    with Index.open(library / "silent.vidkin", create=True) as index:
        index.use_sound(False)
        index.add([library / "clip.mp4"])
    loaded = loaded_by(library, ["search", "clip.mp4", "--index", "silent.vidkin"])
    of_sound = {"vidkin.features.sound", "vidkin.index.storage.sound_files"}
    assert not of_sound & set(loaded)


def test_info_imports_no_search_components(library: Path) -> None:
    """It loads no networks, server or database, because the overview is stored in a separate file."""
    loaded = {name.partition(".")[0] for name in loaded_by(library, ["info", "--index", "library.vidkin"])}
    assert loaded & {"onnxruntime", "lance", "pyarrow", "fastapi", "uvicorn", "jinja2", "send2trash"} == set()


def test_help_imports_only_the_command_line_package(library: Path) -> None:
    loaded = {name.partition(".")[0] for name in loaded_by(library, ["--help"])}
    assert loaded & {"numpy", "av", "lance", "pyarrow", "onnxruntime", "PIL", "rich", "fastapi", "tomlkit"} == set()


def loaded_by(folder: Path, command: list[str]) -> list[str]:
    """The modules that are loaded when a command exits."""
    code = (
        f"import sys\nfrom vidkin.cli import main\nsys.argv = {['vidkin', *command]!r}\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('modules', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.rpartition("modules ")[2].split()


@pytest.mark.parametrize(
    "command",
    [
        ["info", "--index", "library.vidkin", "-f", "json"],
        ["search", "clip.mp4", "--index", "library.vidkin", "-f", "json"],
        ["search", "clip.mp4", "--index", "library.vidkin", "--format", "tsv"],
        ["shots", "clip.mp4", "-f", "json"],
    ],
    ids=" ".join,
)
def test_rich_is_imported_only_to_print_tables(library: Path, command: list[str]) -> None:
    assert not any(name.partition(".")[0] == "rich" for name in loaded_by(library, command))

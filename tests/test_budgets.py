"""How much of vidkin a command imports: budgets that keep the house to a few doors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin import Index


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one clip, and an index of it."""
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
def test_a_command_imports_few_modules(library: Path, command: list[str], most: int) -> None:
    code = (
        f"import sys\nfrom vidkin.cli import main\nsys.argv = {['vidkin', *command]!r}\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('modules', sum(name.partition('.')[0] == 'vidkin' for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=library, capture_output=True, text=True, check=True)
    assert int(done.stdout.rpartition("modules ")[2]) <= most

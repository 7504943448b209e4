"""Where neither torch nor matplotlib is installed: help of every command, and one sentence from those that learn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin._base.install import install_command

pytestmark = pytest.mark.process

WITHOUT = Path(__file__).parents[1] / "support" / "without_torch"
LIST_COMMANDS = """
import json
from vidkin.cli.app import _Commands
print(json.dumps(list(_Commands.built_in)))
"""
HELP = """
import contextlib, io, sys
from vidkin.cli.app import app
for name in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        app([name, "--help"])
    assert "Usage:" in shown.getvalue(), name
assert "torch" not in sys.modules
"""


def python(*words: object) -> subprocess.CompletedProcess[str]:
    """Run Python where nothing is found that learning needs."""
    path = os.pathsep.join([str(WITHOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=120,
    )


def test_every_command_shows_its_help() -> None:
    done = python("-c", LIST_COMMANDS)
    assert done.returncode == 0, done.stderr
    done = python("-c", HELP, *json.loads(done.stdout))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("train", "quick"),
        ("train",),
        ("evaluate", "MODEL"),
        ("classify", "MODEL", "VIDEO"),
        ("export", "MODEL", "-o", "x.onnx"),
        ("import-model", "VIDEO", "--layout", "visil", "-o", "model"),
    ],
)
def test_commands_that_learn_say_what_to_install(words: tuple[str, ...], tmp_path: Path) -> None:
    film = encode(tmp_path / "a.mp4", pan("coffee", 3), rate=5)
    (tmp_path / "model").mkdir()
    places = {"MODEL": tmp_path / "model", "VIDEO": film}
    done = python("-m", "vidkin", *(places.get(word, word) for word in words))
    assert done.returncode == 3, done.stderr
    sentence = f"vidkin {words[0]} needs torch, which is not installed; install it with: {install_command('train')}"
    assert " ".join(done.stderr.split()) == f"Error: {sentence}"


def test_a_map_of_a_match_says_what_to_install(tmp_path: Path) -> None:
    film = encode(tmp_path / "a.mp4", pan("coffee", 20), rate=5)
    done = python("-m", "vidkin", "match", film, film, "-o", tmp_path / "map.svg")
    assert done.returncode == 3, done.stderr
    sentence = "drawing a figure needs matplotlib, which is not installed"
    assert " ".join(done.stderr.split()) == f"Error: {sentence}; install it with: {install_command('plots')}"


def test_python_says_what_to_install() -> None:
    code = """
import vidkin
for name in ("train", "evaluate"):
    try:
        getattr(vidkin, name)
    except vidkin.VidkinError as error:
        print(error)
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"vidkin.{name} needs torch, which is not installed; install it with: {install_command('train')}"
        for name in ("train", "evaluate")
    ]

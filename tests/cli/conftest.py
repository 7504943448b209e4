"""A small folder of real videos, indexed once, and a way to run commands on it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.videos import encode, pan
from vidkin.cli.app import app

# What the person who runs the tests has configured is none of their business.
os.environ["VIDKIN_CONFIG"] = os.devnull


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*words: str | Path, status: int = 0) -> Outcome:
    """Run a command in this process and check its exit status; bugs propagate."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    outcome = Outcome(result.exit_code, result.stdout, result.stderr)
    assert outcome.status == status, f"{words}: {outcome}"
    return outcome


@dataclass(frozen=True)
class Library:
    """A folder of videos, its index, and a clip of one of them.

    ``coffee.mp4`` runs for 12 s; ``copy of coffee.mp4`` is the same, smaller and worse; ``clip`` is seconds
    4 to 9 of it. ``sub folder/día 山 [2].mp4`` (chelsea) and ``rocket.mp4`` are something else.
    """

    folder: Path
    index: Path
    clip: Path

    @property
    def names(self) -> Sequence[str]:
        return ("coffee.mp4", "copy of coffee.mp4", "rocket.mp4", "sub folder/día 山 [2].mp4")


def make_videos(folder: Path) -> None:
    """The videos of :class:`Library`."""
    (folder / "sub folder").mkdir(parents=True)
    encode(folder / "coffee.mp4", pan("coffee", 120))
    small = pan("coffee", 120, width=128, height=96)
    encode(folder / "copy of coffee.mp4", small, options={"crf": "32"})
    encode(folder / "rocket.mp4", pan("rocket", 80))
    encode(folder / "sub folder" / "día 山 [2].mp4", pan("chelsea", 80))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Indexed by the command itself."""
    root = tmp_path_factory.mktemp("library")
    make_videos(root / "videos")
    frames = list(pan("coffee", 120))[40:90]
    clip = encode(root / "clip of coffee.mp4", frames)
    made = Library(root / "videos", root / "collection.vidkin", clip)
    run("index", made.folder, "--index", made.index, "--workers", "1")
    return made


@pytest.fixture(autouse=True)
def _own_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands look for ./collection.vidkin: each test has an empty folder of its own."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    monkeypatch.delenv("VIDKIN_INDEX", raising=False)

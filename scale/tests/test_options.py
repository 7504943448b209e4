"""The options that this package adds to vidkin commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tests.cli.conftest import run
from tests.support.videos import encode, pan
from vidkin.cli.app import app
from vidkin.index import open_cluster
from vidkin_scale.cluster import RayCluster
from vidkin_scale.options import RAY


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """A folder that is read last, so it can be empty."""
    (tmp_path / "videos").mkdir()
    return tmp_path / "videos"


def test_cluster_option_requires_a_reachable_address(videos: Path, tmp_path: Path) -> None:
    words = ("index", videos, "--index", tmp_path / "new")
    outcome = run(*words, "--ray", "ray://head:10001", status=2)
    assert "a Ray address must be HOST:PORT, auto" in outcome.err
    assert "run vidkin on a machine in the cluster" in outcome.err
    run("index", videos, "--index", tmp_path / "new", status=3)
    # Nothing listens on the port of the echo protocol.
    clip = encode(tmp_path / "clip.mp4", pan("rocket", 5))
    # In a separate process, since this one may be connected to the cluster of other tests.
    command = [sys.executable, "-m", "vidkin", "search", clip, *words[2:], "--ray", "127.0.0.1:7"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, "no Ray cluster answers there" in done.stderr) == (3, True), done


def test_ray_works_without_an_address() -> None:
    assert [RAY.text(typed) for typed in ("", "auto", "10.0.0.5:6379")] == ["ray", "ray:auto", "ray:10.0.0.5:6379"]
    assert RAY.value is not None
    assert [bool(RAY.value.fullmatch(word)) for word in ("local", "head:1", "videos", "./a:1")] == [
        True,
        True,
        False,
        False,
    ]
    assert isinstance(open_cluster("ray"), RayCluster)


def test_rare_options_are_documented_only_in_the_guide() -> None:
    docs = (Path(__file__).parents[2] / "docs").glob("*.md")
    guide = "".join(page.read_text(encoding="utf-8") for page in docs)
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for command in ("index", "search", "duplicates", "coverage", "recurring", "serve"):
        hidden = {option.opts[0] for option in commands[command].params if getattr(option, "hidden", False)}
        assert "--ray" in hidden
        assert [name for name in sorted(hidden) if f"`{name}" not in guide and f" {name} " not in guide] == []

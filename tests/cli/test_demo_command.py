"""``vidkin demo``."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import vidkin.datasets
from tests.cli.conftest import run
from vidkin._base.install import install_command
from vidkin.cli import demo as demo_steps
from vidkin.index import Index

SMALL = functools.partial(
    vidkin.datasets.build_samples,
    videos=("astronaut", "rocket", "gravel"),
    copies=(("rocket", "letterbox"),),
    rate=10,
    width=192,
    height=144,
)


def commands(shown: str) -> list[str]:
    """The command lines that the demonstration prints."""
    return [line for line in shown.splitlines() if line.startswith("$ ")]


def counts(shown: str) -> list[str]:
    """The row of the first table: added, unchanged, moved, broken, removed."""
    row = next(line for line in shown.splitlines() if re.match(r"│\s+\d+ │\s+\d+ │\s+\d+ │\s+\d+ │", line))
    return re.findall(r"\d+", row)


@pytest.mark.large
def test_it_shows_every_step_and_uses_again_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vidkin.datasets, "build_samples", SMALL)
    folder = tmp_path / "the demo"
    shown = run("demo", folder).out
    assert [re.sub(r"^\$ \S+ ", "", line).split()[0] for line in commands(shown)] == [
        "index",
        "search",
        "match",
        "duplicates",
        "shots",
        # What to try next.
        "index",
        "search",
        "duplicates",
        "shots",
        "serve",
        # The extra `train`, and its use.
        "install",
        "demo",
    ]
    assert shown.splitlines()[-2:] == [
        f"$ {install_command('train')}",
        f"{commands(shown)[0].partition(' index ')[0]} demo {shlex.quote(str(folder))} --training",
    ]
    assert "'" in commands(shown)[0]  # the space in the folder's name is quoted
    table = shown[shown.index(commands(shown)[1]) :]
    first = next(line for line in table.splitlines() if re.match(r"│\s+1 │", line))
    assert "astronaut.mp4" in first
    for picture in ("clip-map.png", "clip-pairs.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")
        assert picture in shown
    assert "rocket-letterbox.mp4" in shown[shown.index(commands(shown)[3]) :]
    # Five shots, cut at 3.0, 5.4 and 8.2 s, and dissolved around 11 s.
    shots = shown[shown.index(commands(shown)[4]) : shown.index(commands(shown)[5])]
    assert re.findall(r"│ (\d) │ 0:(\d\d\.\d)\d │", shots)[1:4] == [("2", "03.0"), ("3", "05.4"), ("4", "08.2")]
    assert "hard" in shots
    again = run("demo", folder).out
    assert "(already there)" in again
    assert counts(again) == ["0", "4", "0", "0", "0"]


@pytest.mark.large
def test_training_is_shown_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_steps, "_CLIPS", {"train": 2, "validation": 1, "test": 2})
    monkeypatch.setattr(demo_steps, "_STEPS", 2)
    shown = run("demo", tmp_path, "--training").out
    assert [re.sub(r"^\$ \S+ ", "", line).split()[0] for line in commands(shown)] == ["train", "evaluate", "train"]
    assert "QP, all test quadlets" in shown
    assert "QP is the share of quadlets in order" in shown
    assert (tmp_path / "model" / "model.safetensors").is_file()
    assert not (tmp_path / "collection.vidkin").exists()


@pytest.mark.large
def test_without_matplotlib_only_the_pictures_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.backend_bases", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(vidkin.datasets, "build_samples", SMALL)
    outcome = run("demo", tmp_path / "demo")
    assert "Without the pictures: " in outcome.err
    assert "matplotlib, which is not installed" in outcome.err
    assert "Which files are copies" in outcome.out


@pytest.mark.large
def test_an_index_of_an_older_vidkin_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vidkin.datasets, "build_samples", SMALL)
    run("demo", tmp_path / "demo")
    index = tmp_path / "demo" / "collection.vidkin"
    facts = json.loads((index / "collection.json").read_text())
    (index / "collection.json").write_text(json.dumps({**facts, "fingerprint": "classical-0-older"}))
    assert "rebuilding it" in run("demo", tmp_path / "demo").err
    with Index.open(index, read_only=True) as opened:
        assert len(opened.videos()) == 4


def test_file_is_not_used_as_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file; choose a folder" in run("demo", tmp_path / "file", status=2).err


@pytest.mark.slow
@pytest.mark.timeout(900)  # minutes, beside other work
def test_the_whole_demonstration_is_quick_and_offline(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    code = "from vidkin.cli import main; main()"
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", code, "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    # Of processors, not by the clock, which also counts what else runs: a minute on two idle cores.
    after = os.times()
    used = (after.children_user + after.children_system) - (before.children_user + before.children_system)
    assert used < 240
    listed = subprocess.run(
        [sys.executable, "-c", code, "duplicates", "-f", "json", "-i", "vidkin-demo/collection.vidkin"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    groups = [{Path(item["path"]).stem for item in group["members"]} for group in json.loads(listed.stdout)["groups"]]
    truth = [
        {"astronaut", "astronaut-crop", "astronaut-grey"},
        {"camera", "camera-caption"},
        {"chelsea", "chelsea-letterbox"},
        {"coffee", "coffee-logo"},
        {"coins", "coins-reencode"},
        {"motorcycle", "motorcycle-mirror"},
        {"rocket", "rocket-faster"},
    ]
    # All copies, the cropped, mirrored and sped-up ones, too.
    assert sorted(groups, key=min) == truth

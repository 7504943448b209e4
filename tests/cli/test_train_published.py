"""Every published training is one command that can be killed: the same command goes on and ends with the same model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.training import write_pictures
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.training import available_recipes, has_reduced_form, load_recipe

PUBLISHED = tuple(name for name in available_recipes() if has_reduced_form(name))

# Smaller than --reduced, and networks whose published weights are not on this machine replaced by one without any.
SMALL: dict[str, Sequence[str]] = {
    "published-clips": (
        "model.backbone=small",
        "model.size=16",
        "model.frames=3",
        "model.hidden=8",
        "model.lstm=8",
        "validation.measure=map",
    ),
    "published-two-head": ("model.backbone=small", "model.size=16", "schedule.batch=[3,2]"),
    "published-two-head-events": ("model.backbone=small", "model.size=16", "schedule.batch=[3,2]"),
    "published-deep-ranking": (
        "model.backbone=small",
        "model.size=64",
        "model.hidden=8",
        "schedule.quadlets=4",
        "schedule.buffer=8",
        "data.relevance=labels",
    ),
    "published-self-supervised": (
        "data.options.side=32",
        "data.options.rate=5",
        "data.options.window=8",
        "data.options.length=8",
        "schedule.pairs=2",
    ),
    "frame-encoder-large": ("model.size=16", "schedule.pairs=6", "data.validation=0.2"),
}
STEPS = 5


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small collection for each of them."""
    root = tmp_path_factory.mktemp("published")
    pictures = write_pictures(root / "pictures", each=6, size=24)
    films = {}
    (root / "films").mkdir()
    for place, name in enumerate(("coffee", "rocket", "chelsea", "astronaut", "camera", "brick")):
        films[name] = encode(root / "films" / f"{name}.mp4", pan(name, 36, width=48, height=48))
        # Two categories of two subcategories, two videos each, which show the same for this purpose.
        folder = root / "clips" / "ab"[place % 2] / "cd"[place // 2 % 2]
        for number in range(4):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(films[name], folder / f"{name}-{number}.mp4")
    lines = [f"{name},{start},{start + 2},{event}" for name in films for start, event in ((0, "left"), (1, "right"))]
    (root / "films" / "events.csv").write_text("\n".join(["session,start,end,event", *lines]) + "\n")
    return {
        "published-clips": root / "clips",
        "published-two-head": _classes(pictures, root / "classes"),
        "published-two-head-events": root / "films" / "events.csv",
        "published-deep-ranking": pictures,
        "published-self-supervised": root / "films",
        "frame-encoder-large": pictures,
    }


def _classes(pictures: Path, folder: Path) -> Path:
    for place in pictures.glob("*/*"):
        shutil.copytree(place, folder / f"{place.parent.name}-{place.name}")
    return folder


def words(name: str, data: dict[str, Path], folder: Path) -> list[str]:
    settings = (*SMALL[name], f"schedule.steps={STEPS}", "schedule.checkpoint_every=1", "schedule.log_every=1")
    changes = [word for setting in settings for word in ("--set", setting)]
    return ["train", name, "--reduced", "--data", str(data[name]), *changes, "-o", str(folder), "--no-picture"]


def test_each_published_training_has_a_form_for_a_machine_without_a_gpu() -> None:
    assert set(PUBLISHED) == set(SMALL)
    assert {name for name in available_recipes() if name.startswith("published-")} < set(PUBLISHED)
    for name in PUBLISHED:
        whole, reduced = load_recipe(name), load_recipe(name, reduced=True)
        assert reduced.schedule.steps <= 200 < whole.schedule.steps
        assert [part.name for part in reduced.objectives] == [part.name for part in whole.objectives]
        assert (reduced.schedule.optimizer, reduced.name) == (whole.schedule.optimizer, whole.name)


def test_a_recipe_without_a_reduced_form_says_so() -> None:
    with pytest.raises(InvalidArgumentError, match=r"recipe 'clips' has no table \[reduced\]; train without --reduced"):
        load_recipe("clips", reduced=True)
    with pytest.raises(InvalidArgumentError, match=r"\[reduced\] 'name.steps': name is a value, not a table"):
        load_recipe({"name": "a", "data": {}, "objective": [], "reduced": {"name.steps": 1}}, reduced=True)


@pytest.mark.kill
@pytest.mark.timeout(1300)
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_training_that_is_killed_goes_on_with_the_same_command(
    name: str, data: dict[str, Path], tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    # Programs of their own, all of them: another number of threads adds in another order.
    assert start(words(name, data, whole)).wait(timeout=400) == 0
    process = start(words(name, data, killed))
    log, deadline = killed / "run.jsonl", time.monotonic() + 400
    while not (log.is_file() and '"step": 2,' in log.read_text()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    ended_first = (killed / "model.safetensors").exists()
    assert start(words(name, data, killed)).wait(timeout=400) == 0
    report = json.loads((killed / "report.json").read_text())
    assert report["steps"] == STEPS
    # A machine that was quick took all steps before the kill.
    assert ended_first or report["resumed_from"] >= 1
    assert (killed / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "vidkin", *words], env=environment, stdout=subprocess.DEVNULL)


@pytest.mark.large
def test_a_recipe_for_a_gpu_says_that_there_is_none(data: dict[str, Path], tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    name = "frame-encoder-large"
    told = words(name, data, tmp_path / "model")
    told.remove("--reduced")
    told += ["--set", "schedule.precision=float32", "--set", "validation.every=0"]
    assert f"{name} is made for a GPU, and there is none here" in run(*told).err
    assert "made for a GPU" not in run(*words(name, data, tmp_path / "reduced")).err

"""Distributed training with `torchrun` gives the weights of a single process, and resumes after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import colors, training
from tests.support.processes import difference, finish, start_processes
from tests.training import test_unlabeled
from vidkin.training import train

pytestmark = pytest.mark.process

MEMBER = Path(__file__).with_name("member.py")
KINDS = ("quadlets", "triplets", "classifier", "frame_encoder", "comparator")

# Sums are computed in another order, and batch norm by another formula. Weights are about 0.1 to 1.
TOLERANCE = 5e-5
# AdamW divides by the gradient magnitude, so for gradients near 0 rounding errors would decide their sign; use SGD.
PLAIN = {"optimizer": "sgd", "learning_rate": 0.02}


def launch(
    jobs: list[tuple[Mapping[str, Any], Path]], place: Path, *, pause: float = 0.0, processes: int = 2
) -> subprocess.Popen[str]:
    """Start the jobs of `member.py` in several processes, whose ids are written to ``PLACE.RANK.pid``."""
    place.write_text(json.dumps([[recipe, str(folder)] for recipe, folder in jobs]), encoding="utf-8")
    return start_processes(MEMBER, str(place), str(pause), processes=processes)


@pytest.fixture(scope="module")
def recipes(
    tmp_path_factory: pytest.TempPathFactory, clip_recipe: Callable[..., dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """A recipe of each kind; classifier batches have nine images, which two processes cannot split evenly."""
    root = tmp_path_factory.mktemp("data")
    pictures = training.write_pictures(root / "pictures", each=8)
    blobs = test_unlabeled.make_blobs(root / "blobs")
    clips = clip_recipe(schedule={"steps": 4, **PLAIN})
    mined = ("self_hard_negative", "quad_linear_ap")
    clips["objective"] = [term for term in clips["objective"] if term["name"] not in mined]
    return {
        "quadlets": training.recipe_for(
            pictures,
            "radial_detached",
            schedule={"clip": 1.0},
            validation={"every": 3, "measure": "map", "patience": 4},
        ),
        "triplets": training.recipe_for(
            pictures,
            "deep_ranking",
            model={"kind": "deep_ranking", "size": 64},
            schedule={"steps": 4, **PLAIN},
            validation={"every": 0},
        ),
        "classifier": colors.color_recipe(colors.write_colors(root / "colors"), steps=6, batch=[3, 3]),
        "frame_encoder": test_unlabeled.recipe_for(blobs, schedule=PLAIN),
        "comparator": clips,
    }


@pytest.fixture(scope="module")
def trained(recipes: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train each recipe in this process (``one/KIND``) and in two others (``two/KIND``)."""
    root = tmp_path_factory.mktemp("trained")
    torch.set_num_threads(1)
    started = launch([(recipes[kind], root / "two" / kind) for kind in KINDS], root / "jobs.json")
    for kind in KINDS:
        train(recipes[kind], output=root / "one" / kind)
    finish(started)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_train_the_same_weights_as_one(kind: str, trained: Path) -> None:
    one, two = trained / "one" / kind, trained / "two" / kind
    assert difference(one, two) < TOLERANCE
    logs = [[json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()] for folder in (one, two)]
    assert len(logs[0]) == len(logs[1])
    for alone, together in zip(*logs, strict=True):
        assert alone.pop("kind") == together.pop("kind")
        assert alone == pytest.approx(together, rel=1e-3, abs=1e-4)
    assert {path.name for path in one.iterdir()} == {path.name for path in two.iterdir()}


@pytest.mark.slow
def test_run_resumes_after_one_process_was_killed(
    recipes: dict[str, dict[str, Any]], trained: Path, tmp_path: Path
) -> None:
    jobs = [(recipes["quadlets"], tmp_path / "killed")]
    started = launch(jobs, tmp_path / "jobs.json", pause=0.3)
    log = tmp_path / "killed" / "run.jsonl"
    deadline = time.monotonic() + 120
    while not (log.is_file() and log.read_text().count('"kind": "step"') >= 6):
        assert started.poll() is None, started.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(int((tmp_path / "jobs.json.1.pid").read_text()), signal.SIGKILL)
    started.communicate(timeout=120)
    assert started.returncode != 0
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    shutil.copytree(tmp_path / "killed", tmp_path / "alone")
    finish(launch(jobs, tmp_path / "jobs.json"))
    assert json.loads((tmp_path / "killed" / "report.json").read_text())["resumed_from"] >= 4
    assert difference(tmp_path / "killed", trained / "two" / "quadlets") == 0
    # A run can be resumed with another number of processes.
    train(recipes["quadlets"], output=tmp_path / "alone")
    assert difference(tmp_path / "alone", trained / "one" / "quadlets") < TOLERANCE


@pytest.mark.slow
def test_only_one_process_prints_to_the_command_line(
    recipes: dict[str, dict[str, Any]], trained: Path, tmp_path: Path
) -> None:
    from vidkin.training import load_recipe, show_recipe

    (tmp_path / "r.toml").write_text(show_recipe(load_recipe(recipes["classifier"])))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    words = ["vidkin", "train", str(tmp_path / "r.toml"), "-o", str(tmp_path / "model"), "-f", "json"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 6
    assert difference(tmp_path / "model", trained / "two" / "classifier") == 0


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_gpu_computes_a_part_of_the_batch(
    precision: str, recipes: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")
    jobs = []
    for kind in KINDS:
        schedule = {**recipes[kind]["schedule"], "device": "cuda", "precision": precision}
        jobs.append((recipes[kind] | {"schedule": schedule}, tmp_path / "all" / kind))
    finish(launch(jobs, tmp_path / "jobs.json", processes=torch.cuda.device_count()))
    for recipe, folder in jobs:
        train(recipe, output=tmp_path / "one" / folder.name)
        assert difference(tmp_path / "one" / folder.name, folder) < (1e-3 if precision == "float32" else 5e-2)

"""Two processes that `torchrun` starts train the weights of one, and a run of which one was killed resumes."""

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
from safetensors.torch import load_file
from torch import Tensor

from tests.support import colors, training
from tests.training.data import test_unlabeled
from vidkin.errors import InvalidArgumentError
from vidkin.training import train
from vidkin.training.processes import shares

MEMBER = Path(__file__).with_name("member.py")
KINDS = ("quadlets", "classifier", "frame_encoder", "comparator")

# Sums in another order; a batch norm by its own formula. Weights are of the order of .1 to 1.
TOLERANCE = 5e-5
# AdamW divides by the size of a gradient: where that is nearly 0, the last digit of a sum decides about its sign.
PLAIN = {"optimizer": "sgd", "learning_rate": 0.02}


def launch(
    jobs: list[tuple[Mapping[str, Any], Path]], place: Path, *, pause: float = 0.0, processes: int = 2
) -> subprocess.Popen[str]:
    """Start the trainings of `member.py` in several processes; their numbers are in ``PLACE.RANK.pid``."""
    place.write_text(json.dumps([[recipe, str(folder)] for recipe, folder in jobs]), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(processes),
    ]
    return subprocess.Popen(
        [*command, str(MEMBER), str(place), str(pause)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(started: subprocess.Popen[str]) -> None:
    out, _ = started.communicate(timeout=240)
    assert started.returncode == 0, out


def difference(first: Path, second: Path) -> float:
    """The largest of any two weights."""
    one, two = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert one.keys() == two.keys()
    return max(float((one[name].double() - two[name].double()).abs().max()) for name in one)


@pytest.fixture(scope="module")
def recipes(
    tmp_path_factory: pytest.TempPathFactory, clip_recipe: Callable[..., dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """A recipe of each kind; batches of the classifier are of nine images, which two processes cannot halve."""
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
        "classifier": colors.color_recipe(colors.write_colors(root / "colors"), steps=6, batch=[3, 3]),
        "frame_encoder": test_unlabeled.recipe_for(blobs, schedule=PLAIN),
        "comparator": clips,
    }


@pytest.fixture(scope="module")
def trained(recipes: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``one/KIND`` by this process and ``two/KIND`` by two others."""
    root = tmp_path_factory.mktemp("trained")
    torch.set_num_threads(1)
    started = launch([(recipes[kind], root / "two" / kind) for kind in KINDS], root / "jobs.json")
    for kind in KINDS:
        train(recipes[kind], output=root / "one" / kind)
    finish(started)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_train_the_weights_of_one(kind: str, trained: Path) -> None:
    one, two = trained / "one" / kind, trained / "two" / kind
    assert difference(one, two) < TOLERANCE
    logs = [
        [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
        for folder in (one, two)
    ]
    assert len(logs[0]) == len(logs[1])
    for alone, together in zip(*logs, strict=True):
        assert alone.pop("kind") == together.pop("kind")
        assert alone == pytest.approx(together, rel=1e-3, abs=1e-4)
    assert {path.name for path in one.iterdir()} == {path.name for path in two.iterdir()}


@pytest.mark.slow
def test_a_run_of_which_a_process_was_killed_resumes_to_the_same_weights(
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
    # The number of processes is no part of a run.
    train(recipes["quadlets"], output=tmp_path / "alone")
    assert difference(tmp_path / "alone", trained / "one" / "quadlets") < TOLERANCE


@pytest.mark.slow
def test_the_command_line_speaks_once(
    recipes: dict[str, dict[str, Any]], trained: Path, tmp_path: Path
) -> None:
    from vidkin.training import load_recipe, show_recipe

    (tmp_path / "r.toml").write_text(show_recipe(load_recipe(recipes["classifier"])))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    words = ["vidkin", "train", str(tmp_path / "r.toml"), "-o", str(tmp_path / "model"), "--json"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 6
    assert difference(tmp_path / "model", trained / "two" / "classifier") == 0


def test_fewer_items_than_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "process_count", lambda: 5)
    with pytest.raises(InvalidArgumentError, match="at least one item for each of the 5 processes, got 4"):
        shares.compute_in_shares(lambda rows: torch.zeros(4)[rows], 4)


def test_alone_everything_is_as_it_was() -> None:
    weight = torch.ones(2, requires_grad=True)
    (shares.compute_in_shares(lambda rows: weight[rows], 2) * torch.tensor([1.0, 2.0])).sum().backward()
    shares.average_gradients([weight])
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0, 2.0]
    before = torch.get_rng_state()
    shares.seed_step(1, 2)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 4)])
def test_the_batch_norm_of_all_is_that_of_torch_where_there_is_one_process(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares.distributed, "all_reduce", lambda values: None)
    norms = [torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)]
    if len(shape) == 4:
        norms = [torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)]
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(shape, generator=generator)
    found: list[tuple[Tensor, Tensor]] = []
    for norm, context in zip(norms, (shares.nullcontext(), shares._GlobalBatchNorm()), strict=True):
        inputs = rows.clone().requires_grad_()
        with context:
            outputs = norm(inputs)
        outputs.pow(3).sum().backward()
        assert inputs.grad is not None
        found.append((outputs.detach(), inputs.grad))
        norm.eval()
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(norms[0].state_dict(), norms[1].state_dict())
    with shares._GlobalBatchNorm():
        torch.testing.assert_close(norms[0](rows), norms[1](rows))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_gpu_takes_a_share(precision: str, recipes: dict[str, dict[str, Any]], tmp_path: Path) -> None:
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

"""The power fails while `vidkin train` runs: whatever is left, the same command ends with the same model and log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import run
from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from tests.support.training import recipe_for, write_pictures
from vidkin._base import disk
from vidkin.cli.app import app
from vidkin.training import load_recipe, show_recipe

# A training runs some three hundred times: five minutes of a processor.
pytestmark = [pytest.mark.kill, pytest.mark.timeout(1200)]

_STEPS, _STORED = 4, 2


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shades")
    pictures = write_pictures(root / "pictures", each=4, size=16)
    schedule = {"steps": _STEPS, "checkpoint_every": _STORED}
    recipe = recipe_for(pictures, schedule=schedule, validation={"every": _STORED, "measure": "map"})
    (root / "shades.toml").write_text(show_recipe(load_recipe(recipe)))
    return root / "shades.toml"


def train(recipe: Path, folder: Path, *options: str, status: int = 0) -> str:
    return run("train", recipe, "--output", folder, *options, status=status).err


def left(folder: Path) -> dict[str, Any]:
    """Everything of a finished run that does not name its folder or its times."""
    report = json.loads((folder / "report.json").read_text())
    return {
        "model": (folder / "model.safetensors").read_bytes(),
        "config": (folder / "config.toml").read_text(),
        "recipe": (folder / "recipe.toml").read_text(),
        "split": (folder / "split.json").read_text(),
        "log": (folder / "run.jsonl").read_text(),
        "report": {name: report[name] for name in ("steps", "planned", "best", "best_step", "collapsed")},
        "graphs": sorted(path.name for path in folder.glob("[!.]*.onnx")),
    }


@pytest.fixture(scope="module")
def whole(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(recipe, folder)
    return folder


@pytest.mark.parametrize(
    ("is_restarted", "names"), [(False, False), (True, True)], ids=["new, names kept", "restarted, names lost"]
)
def test_a_training_ends_with_the_same_model_after_a_power_cut_at_any_operation(
    recipe: Path, whole: Path, tmp_path: Path, is_restarted: bool, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--restart",) if is_restarted else ()
    start = Path(shutil.copytree(whole, tmp_path / "start")) if is_restarted else tmp_path / "none"
    (tmp_path / "none").mkdir()
    expected = left(whole)
    counted = Path(shutil.copytree(start, tmp_path / "counted"))
    operations = count_operations(monkeypatch, lambda: train(recipe, counted, *options))
    # The split, the recipe, the log, two states and the last one, weights, description, graph, report and picture.
    assert operations.count("rename") == 11
    # The earlier log and state, and the picture whose place the new one takes.
    assert operations.count("unlink") == (3 if is_restarted else 0)
    for turn in range(len(operations)):
        power, folder = PowerCut(turn, names), Path(shutil.copytree(start, tmp_path / f"{turn}"))
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", power)
            with pytest.raises(PowerCutError):
                train(recipe, folder, *options)
        power.lose()
        train(recipe, folder)
        assert left(folder) == expected, (turn, operations[turn])
        shutil.rmtree(folder)


def test_a_disk_that_refuses_any_operation_ends_a_training_in_a_sentence_and_it_goes_on(
    recipe: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = left(whole)
    for turn in range(len(count_operations(monkeypatch, lambda: train(recipe, tmp_path / "counted")))):
        folder = tmp_path / f"{turn}"
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            outcome = CliRunner().invoke(app, ["train", str(recipe), "--output", str(folder)], catch_exceptions=False)
        # What was removed again after a failed rename is refused once, and then the run has ended well.
        assert outcome.exit_code == 0 or "No space left on device" in " ".join(outcome.stderr.split()), turn
        train(recipe, folder)
        assert left(folder) == expected, turn
        shutil.rmtree(folder)

"""Training on real images: learning, saving, exact resuming, early stopping and collapse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.support.training import recipe_for, write_pictures
from vidkin.errors import DatasetError, InvalidArgumentError, TrainingError
from vidkin.models import read_model_info
from vidkin.training import TrainingInterrupted, TrainingProgress, load_recipe, show_recipe, train


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("shades") / "pictures")


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


class TestAWholeRun:
    def test_writes_a_model_its_recipe_a_log_and_a_report(self, pictures: Path, tmp_path: Path) -> None:
        told: list[TrainingProgress] = []
        recipe = recipe_for(pictures, validation={"every": 6, "measure": "qp"})
        report = train(recipe, output=tmp_path / "run", on_progress=told.append)
        assert (report.steps, report.planned, report.resumed_from) == (12, 12, 0)
        assert report.measure == "qp"
        assert report.best_step in (6, 12)
        assert {"quadlet", "loss", "distance", "gradient"} == set(report.terms)
        info = read_model_info(tmp_path / "run")
        assert info.class_names[0] == "blue/dark"
        assert info.metrics == {"validation_qp": report.best}
        assert info.notes["objective"] == ["quadlet"]
        steps = [line for line in lines(tmp_path / "run") if line["kind"] == "step"]
        assert [line["step"] for line in steps] == list(range(1, 13))
        assert load_recipe(tmp_path / "run" / "recipe.toml") == load_recipe(recipe)
        assert json.loads((tmp_path / "run" / "report.json").read_text())["steps"] == 12
        split = json.loads((tmp_path / "run" / "split.json").read_text())
        assert split["counts"] == {"train": 24, "validation": 12, "test": 12}
        phases = [progress.phase for progress in told]
        assert phases[:36] == ["reading"] * 36
        assert phases[36:] == (["training"] * 6 + ["validating"]) * 2

    def test_learns(self, pictures: Path, tmp_path: Path) -> None:
        recipe = recipe_for(pictures, "all_quadlets", schedule={"steps": 60, "learning_rate": 3e-3})
        recipe["validation"] = {"every": 60}
        report = train(recipe, output=tmp_path)
        assert report.best is not None
        # Chance level is one in six.
        assert report.best > 0.7
        found = [line["loss"] for line in lines(tmp_path) if line["kind"] == "step"]
        assert sum(found[-10:]) < 0.5 * sum(found[:10])

    @pytest.mark.thorough
    def test_is_deterministic_for_a_seed(self, pictures: Path, tmp_path: Path) -> None:
        for name, seed in (("a", 0), ("b", 0), ("c", 1)):
            train(recipe_for(pictures, schedule={"seed": seed}), output=tmp_path / name)
        assert weights(tmp_path / "a") == weights(tmp_path / "b")
        assert weights(tmp_path / "a") != weights(tmp_path / "c")

    def test_does_not_change_the_random_state_of_the_caller(self, pictures: Path, tmp_path: Path) -> None:
        torch.manual_seed(5)
        expected = torch.rand(3)
        torch.manual_seed(5)
        train(recipe_for(pictures, schedule={"steps": 1}), output=tmp_path)
        assert torch.equal(torch.rand(3), expected)

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        "schedule",
        [
            {"optimizer": "sgd", "decay": "cosine", "warm_up": 3},
            {"precision": "bfloat16", "decay": "step", "step_every": 4},
            {"batch": [2, 2, 3], "clip": 0},
        ],
    )
    def test_supports_all_schedules(self, pictures: Path, tmp_path: Path, schedule: dict[str, Any]) -> None:
        train(recipe_for(pictures, "all_quadlets", schedule=schedule), output=tmp_path)
        rates = [line["learning_rate"] for line in lines(tmp_path) if line["kind"] == "step"]
        if schedule.get("decay") == "cosine":
            assert rates[0] == pytest.approx(1e-3 / 3)
            assert rates[-1] == pytest.approx(1e-5)
        elif schedule.get("decay") == "step":
            assert rates == pytest.approx([1e-3] * 4 + [1e-4] * 4 + [1e-5] * 4)
        else:
            assert rates == [1e-3] * 12

    def test_combines_objectives_with_weights(self, pictures: Path, tmp_path: Path) -> None:
        recipe = recipe_for(pictures, schedule={"steps": 2})
        recipe["objective"] = [
            {"name": "radial_detached", "weight": 0.5},
            {"name": "hierarchical_ap", "weight": 2.0},
        ]
        train(recipe, output=tmp_path)
        for line in lines(tmp_path):
            assert line["loss"] == pytest.approx(
                0.5 * line["radial_detached"] + 2.0 * line["hierarchical_ap"], rel=1e-5
            )

    def test_writes_the_terms_to_tensorboard(self, pictures: Path, tmp_path: Path) -> None:
        accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
        train(recipe_for(pictures, schedule={"steps": 3, "tensorboard": True}), output=tmp_path)
        events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
        found = [event.value for event in events.Scalars("step/loss")]
        assert found == pytest.approx([line["loss"] for line in lines(tmp_path)])

    @pytest.mark.thorough
    def test_runs_a_frozen_backbone_once_per_item(self, pictures: Path, tmp_path: Path) -> None:
        recipe = recipe_for(pictures, model={"trainable": "head"}, validation={"every": 4})
        train(recipe, output=tmp_path / "a")
        stored = sorted((tmp_path / "a" / "features").iterdir())
        assert len(stored) == 2  # train and validation
        before = [path.stat().st_mtime_ns for path in stored]
        # The cache is reused, and the model is the same as without it.
        train(recipe, output=tmp_path / "a", resume=False)
        assert [path.stat().st_mtime_ns for path in stored] == before
        recipe["data"]["cache"] = "memory"
        train(recipe, output=tmp_path / "b")
        assert not (tmp_path / "b" / "features").exists()
        assert weights(tmp_path / "a") == weights(tmp_path / "b")
        start = load_file(tmp_path / "a" / "model.safetensors")
        train({**recipe, "schedule": {**recipe["schedule"], "steps": 1}}, output=tmp_path / "c")
        other = load_file(tmp_path / "c" / "model.safetensors")
        frozen = [name for name in start if name.startswith("backbone.")]
        assert frozen
        assert all(torch.equal(start[name], other[name]) for name in frozen)
        assert not torch.equal(start["fully_connected.weight"], other["fully_connected.weight"])

    def test_skips_broken_files_and_reports_them(self, tmp_path: Path) -> None:
        source = write_pictures(tmp_path / "pictures", each=4)
        (source / "red" / "dark" / "9.png").write_bytes(b"no picture")
        recipe = recipe_for(source, schedule={"steps": 1})
        recipe["data"] |= {"test": 0.0, "validation": 0.0}
        report = train(recipe, output=tmp_path / "run")
        assert [(Path(path).name, cause[:14]) for path, cause in report.broken] == [("9.png", "cannot be read")]

    def test_rejects_data_of_only_broken_files(self, tmp_path: Path) -> None:
        source = write_pictures(tmp_path / "pictures", each=4)
        for path in source.rglob("*.png"):
            path.write_bytes(b"no picture")
        recipe = recipe_for(source)
        with pytest.raises(DatasetError, match=r"none of the 12 items of pictures can be read; first error: .*png"):
            train(recipe, output=tmp_path / "run")


class TestResume:
    SCRIPT = """
import json, sys, time, torch
from vidkin.training import train
torch.set_num_threads(1)
pause = float(sys.argv[3])
train(json.loads(sys.argv[1]), output=sys.argv[2],
      on_progress=lambda told: time.sleep(pause) if told.phase == "training" else None)
"""

    def run(self, recipe: dict[str, Any], folder: Path, pause: float) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", self.SCRIPT, json.dumps(recipe), str(folder), str(pause)]
        return subprocess.Popen(command)

    def until_step(self, process: subprocess.Popen[bytes], folder: Path, step: int) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert process.poll() is None, "the run ended before it could be interrupted"
            log = folder / "run.jsonl"
            if log.is_file() and log.read_text().count('"kind": "step"') >= step:
                return
            time.sleep(0.01)
        raise AssertionError(f"step {step} was not reached in time")

    @pytest.mark.kill
    def test_killed_and_resumed_run_has_the_same_weights(self, pictures: Path, tmp_path: Path) -> None:
        # This recipe has everything with a state: dropout, augmentation, momentum, a classifier in the objective,
        # validation.
        recipe = recipe_for(
            pictures,
            model={"dropout": 0.2},
            validation={"every": 5},
            schedule={"steps": 40, "checkpoint_every": 7, "decay": "cosine"},
        )
        recipe["data"]["augmentation"] = ["flip", "crop", "color"]
        recipe["objective"] = [{"name": name} for name in ("classification", "all_quadlets", "radial")]
        whole, killed = tmp_path / "whole", tmp_path / "killed"
        assert self.run(recipe, whole, 0.0).wait(timeout=120) == 0
        for step in (10, 24):
            process = self.run(recipe, killed, 0.05)
            self.until_step(process, killed, step)
            process.kill()
            assert process.wait() == -signal.SIGKILL
            assert not (killed / "model.safetensors").exists()
        assert self.run(recipe, killed, 0.0).wait(timeout=120) == 0
        assert weights(killed) == weights(whole)
        assert (killed / "run.jsonl").read_bytes() == (whole / "run.jsonl").read_bytes()
        assert json.loads((killed / "report.json").read_text())["resumed_from"] >= 21

    def test_ctrl_c_saves_the_step_and_the_next_call_continues(self, pictures: Path, tmp_path: Path) -> None:
        recipe = recipe_for(pictures)
        train(recipe, output=tmp_path / "whole")

        def press(told: TrainingProgress) -> None:
            if told.phase == "training" and told.done == 5:
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(TrainingInterrupted, match="step 5 of 12") as caught:
            train(recipe, output=tmp_path / "cut", on_progress=press)
        assert caught.value.report.steps == 5
        assert not (tmp_path / "cut" / "model.safetensors").exists()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        report = train(recipe, output=tmp_path / "cut")
        assert report.resumed_from == 5
        assert weights(tmp_path / "cut") == weights(tmp_path / "whole")

    def test_ctrl_c_while_reading_items_stops(self, pictures: Path, tmp_path: Path) -> None:
        def press(told: TrainingProgress) -> None:
            assert told.phase == "reading"
            if told.done == 3:
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(TrainingInterrupted, match="step 0 of 12"):
            train(recipe_for(pictures), output=tmp_path, on_progress=press)

    @pytest.mark.thorough
    def test_complete_run_is_not_trained_again(self, pictures: Path, tmp_path: Path) -> None:
        recipe = recipe_for(pictures)
        train(recipe, output=tmp_path)
        before = weights(tmp_path)
        report = train(recipe, output=tmp_path)
        assert (report.steps, report.resumed_from) == (12, 12)
        assert weights(tmp_path) == before
        assert len(lines(tmp_path)) == 12

    @pytest.mark.thorough
    def test_another_recipe_in_the_same_folder_is_rejected(self, pictures: Path, tmp_path: Path) -> None:
        train(recipe_for(pictures), output=tmp_path)
        with pytest.raises(InvalidArgumentError, match="contains a run with a different recipe; choose another output"):
            train(recipe_for(pictures, "triplet"), output=tmp_path)
        report = train(recipe_for(pictures, "triplet"), output=tmp_path, resume=False)
        assert report.resumed_from == 0

    def test_other_items_are_rejected(self, tmp_path: Path) -> None:
        source = write_pictures(tmp_path / "pictures", each=4)
        recipe = recipe_for(source)
        recipe["data"] |= {"test": 0.0, "validation": 0.0}
        train(recipe, output=tmp_path / "run")
        (source / "red" / "dark" / "0.png").unlink()
        with pytest.raises(InvalidArgumentError, match="contains a run with different items or frozen weights"):
            train(recipe, output=tmp_path / "run")

    def test_an_error_leaves_the_folder_unchanged(self, pictures: Path, tmp_path: Path) -> None:
        train(recipe_for(pictures), output=tmp_path)
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        divided_otherwise = recipe_for(pictures, data={"split_seed": 5})
        with pytest.raises(InvalidArgumentError, match="contains a run with a different recipe"):
            train(divided_otherwise, output=tmp_path)
        with pytest.raises(DatasetError, match="does not exist"):
            train(recipe_for(tmp_path / "missing"), output=tmp_path, resume=False)
        # This includes the split: with another one, the model would be tested on training items.
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    @pytest.mark.thorough
    def test_second_training_run_in_the_same_folder_is_rejected(self, pictures: Path, tmp_path: Path) -> None:
        recipe = recipe_for(pictures)
        refused: list[str] = []

        def begin_another(told: TrainingProgress) -> None:
            if told.phase == "training" and told.done == 5:
                with pytest.raises(InvalidArgumentError, match="another training run is using this folder") as caught:
                    train(recipe, output=tmp_path / "shared")
                refused.append(str(caught.value))

        train(recipe, output=tmp_path / "shared", on_progress=begin_another)
        assert len(refused) == 1
        train(recipe, output=tmp_path / "alone")
        assert weights(tmp_path / "shared") == weights(tmp_path / "alone")
        assert lines(tmp_path / "shared") == lines(tmp_path / "alone")

    def test_an_unwritable_folder_is_rejected(self, pictures: Path, tmp_path: Path) -> None:
        (tmp_path / "recipe.toml").mkdir()
        with pytest.raises(InvalidArgumentError, match=r"Is a directory; choose an output folder that can be written"):
            train(recipe_for(pictures), output=tmp_path)

    @pytest.mark.thorough
    def test_the_logging_interval_can_change_on_resuming(self, pictures: Path, tmp_path: Path) -> None:
        train(recipe_for(pictures), output=tmp_path)
        report = train(recipe_for(pictures, schedule={"log_every": 5}), output=tmp_path)
        assert report.resumed_from == 12

    def test_a_damaged_checkpoint_is_rejected(self, pictures: Path, tmp_path: Path) -> None:
        train(recipe_for(pictures), output=tmp_path)
        (tmp_path / "checkpoint.safetensors").write_bytes(b"cut short")
        with pytest.raises(InvalidArgumentError, match=r"is damaged .* start over \(--restart\)"):
            train(recipe_for(pictures), output=tmp_path)


class TestValidation:
    def test_stops_without_improvement_and_keeps_the_best_weights(self, pictures: Path, tmp_path: Path) -> None:
        # With a learning rate near 0, no validation result is better than the first.
        recipe = recipe_for(
            pictures,
            schedule={"steps": 40, "learning_rate": 1e-12},
            validation={"every": 2, "patience": 3},
        )
        report = train(recipe, output=tmp_path)
        assert report.stopped_early
        assert (report.steps, report.best_step) == (8, 2)
        again = train(recipe, output=tmp_path)
        assert (again.steps, again.stopped_early) == (8, True)

    @pytest.mark.thorough
    def test_keep_selects_the_last_or_the_best_weights(self, pictures: Path, tmp_path: Path) -> None:
        rules = {"every": 1, "measure": "map"}
        schedule = {"steps": 6, "learning_rate": 0.05}
        best = train(recipe_for(pictures, schedule=schedule, validation=rules), output=tmp_path / "best")
        train(
            recipe_for(pictures, schedule=schedule, validation={**rules, "keep": "last"}),
            output=tmp_path / "last",
        )
        assert best.best_step is not None
        values = [line["map"] for line in lines(tmp_path / "best") if line["kind"] == "validation"]
        assert best.best == max(values)
        assert best.best_step == 1 + values.index(max(values))
        same = weights(tmp_path / "best") == weights(tmp_path / "last")
        assert same == (best.best_step == 6)


class TestCollapse:
    @pytest.mark.large
    def test_published_radial_loss_at_a_high_rate_collapses_with_one_warning(
        self, pictures: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        told: list[str] = []
        schedule = {"steps": 120, "learning_rate": 3e-2, "quadlets": 8}
        recipe = recipe_for(pictures, "radial", schedule=schedule)
        report = train(recipe, output=tmp_path, on_progress=lambda t: told.append(t.warning))
        assert report.collapsed_at is not None
        assert report.distance_start is not None
        warnings = [warning for warning in told if warning]
        assert len(warnings) == 1
        assert warnings[0].startswith(f"the embeddings have collapsed: at step {report.collapsed_at} their mean")
        assert caplog.messages == warnings
        assert [line["step"] for line in lines(tmp_path) if line["kind"] == "warning"] == [report.collapsed_at]

    def test_non_finite_loss_stops_the_run(self, pictures: Path, tmp_path: Path) -> None:
        recipe = recipe_for(pictures, schedule={"learning_rate": 1e15, "clip": 0, "optimizer": "sgd"})
        with pytest.raises(TrainingError, match=r"step \d+: the loss is .* reduce the learning rate"):
            train(recipe, output=tmp_path)


def test_shown_recipe_trains_the_same_weights(pictures: Path, tmp_path: Path) -> None:
    train(recipe_for(pictures, schedule={"steps": 2}), output=tmp_path / "a")
    (tmp_path / "shown.toml").write_text(show_recipe(load_recipe(tmp_path / "a" / "recipe.toml")))
    train(tmp_path / "shown.toml", output=tmp_path / "b")
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


def test_an_output_that_is_a_file_is_rejected(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("something")
    with pytest.raises(InvalidArgumentError, match="choose an output folder that can be written"):
        train(recipe_for(pictures), output=tmp_path / "file")


def test_the_default_folder_is_named_after_the_recipe(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = train(recipe_for(pictures, schedule={"steps": 1}))
    assert report.output == Path("shades-model")
    assert (tmp_path / "shades-model" / "model.safetensors").is_file()

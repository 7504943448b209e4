"""``vidkin train`` and ``vidkin evaluate``: from a recipe to a model to a table."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.folders import made_in
from tests.support.training import recipe_for, write_pictures
from vidkin.training import load_recipe, show_recipe


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures, ``shades.toml`` and the model that it makes."""
    root = tmp_path_factory.mktemp("work")
    source = write_pictures(root / "pictures")
    recipe = recipe_for(source, model={"trainable": "head"}, schedule={"steps": 4}, validation={"every": 2})
    (root / "shades.toml").write_text(show_recipe(load_recipe(recipe)))
    run("train", root / "shades.toml", "--output", root / "model")
    return root


class TestTrain:
    def test_without_a_recipe_those_of_the_package_are_listed(self) -> None:
        out = run("train").out
        assert "photographs" in out
        assert "labeled clips built by vidkin" in out
        assert "photographs" in run("train", "-f", "json").json["recipes"]

    def test_show_prints_every_default_and_what_is_set(self) -> None:
        out = run("train", "--show", "photographs", "--set", "schedule.steps=7", "--data", "my folder").out
        assert "steps = 7" in out
        assert 'source = "my folder"' in out
        assert "weight_decay = 0.001" in out
        assert 'name = "clips"' in run("train", "--show").out

    def test_check_shows_what_would_be_trained_on_and_trains_nothing(self, work: Path) -> None:
        found = run("train", work / "shades.toml", "--output", work / "checked", "--check")
        assert "pictures: 48 items (image), 3 categories, 6 subcategories" in found.out
        assert "24 train, 12 validation, 12 test" in found.out
        assert "image on small" in found.out
        assert "16 of the 16 items of the first batch" in found.err
        assert "Nothing was trained" in found.err
        assert [path.name for path in made_in(work / "checked")] == ["first-batch.png"]
        facts = run("train", work / "shades.toml", "--output", work / "checked", "--check", "-f", "json").json
        assert facts["labels"][0] == {
            "category": "blue", "subcategory": "dark", "train": 4, "validation": 2, "test": 2
        }  # fmt: skip

    @pytest.mark.thorough
    def test_a_folder_of_three_clips_each_works_with_the_recipe_as_it_is_shown(self, tmp_path: Path) -> None:
        source = write_pictures(tmp_path / "pictures", each=3)
        (tmp_path / "my.toml").write_text(run("train", "--show", "clips").out)
        words = ["train", tmp_path / "my.toml", "--data", source, "--set", "schedule.steps=2", "--no-picture"]
        found = run(*words, "-o", tmp_path / "model")
        assert "the model kind is 'image'" in found.err
        assert "too few items for a validation split" in found.err
        evaluated = run("evaluate", tmp_path / "model")
        assert "nan" not in evaluated.out
        assert "No QP, TP: no quadlets among the 6 test items: no subcategory has two" in evaluated.err

    def test_tells_the_terms_the_validation_and_what_comes_next(self, work: Path) -> None:
        found = run("train", work / "shades.toml", "--output", work / "another")
        assert "quadlet" in found.out
        assert "validation qp" in found.out
        assert "another: 4 steps" in found.err
        assert "vidkin evaluate" in found.err
        assert (work / "another" / "quadlets.png").is_file()

    @pytest.mark.thorough
    def test_ends_with_the_figures_of_the_test_split_that_evaluate_prints(self, work: Path) -> None:
        found = run("train", work / "shades.toml", "--output", work / "measured", "--no-picture")
        evaluated = run("evaluate", work / "measured")
        assert "QP, all test quadlets" in evaluated.out
        assert evaluated.out in found.out
        assert evaluated.err.strip() in found.err
        again = run("train", work / "shades.toml", "--output", work / "measured", "--no-picture", "-f", "json").json
        figures = run("evaluate", work / "measured", "-f", "json").json
        assert (again["evaluation"]["qp"], again["evaluation"]["queries"]) == (figures["qp"], 12)
        assert again["not_evaluated"] is None
        silent = run("train", work / "shades.toml", "--output", work / "measured", "--no-picture", "--no-evaluate")
        assert "QP, all test quadlets" not in silent.out

    def test_says_why_there_are_no_figures_of_a_test_split(self, work: Path) -> None:
        words = ("train", work / "shades.toml", "--output", work / "all", "--no-picture", "--set", "data.test=0")
        assert "No figures of a test split: all items are in other splits (data.test)." in run(*words).err
        assert "all items are in other splits" in run(*words, "-f", "json").json["not_evaluated"]

    def test_json_holds_the_report(self, work: Path) -> None:
        found = run("train", work / "shades.toml", "-o", work / "model", "--no-picture", "-f", "json").json
        assert (found["recipe"], found["steps"], found["resumed_from"]) == ("shades", 4, 4)
        assert found["collapsed"] is False
        assert found["picture"] is None

    def test_the_default_output_is_named_after_the_recipe(self, work: Path) -> None:
        run("train", work / "shades.toml", "--no-picture", "--set", "schedule.steps=1")
        assert Path("shades-model/model.safetensors").is_file()

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            (["objective.g1=0.9"], {"name": "quadlet", "g1": 0.9}),
            (["objective.0.weight=2"], {"name": "quadlet", "weight": 2.0}),
            (["objective.name=radial", "objective.c=4.0"], {"name": "radial", "c": 4.0}),
        ],
    )
    def test_objectives_can_be_set(self, work: Path, settings: list[str], expected: dict[str, object]) -> None:
        import tomllib

        words = [word for setting in settings for word in ("--set", setting)]
        shown = tomllib.loads(run("train", "--show", work / "shades.toml", *words).out)
        assert expected.items() <= shown["objective"][0].items()

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["cooking"], "'cooking' is not a recipe"),
            (["photographs", "--show", "--set", "steps"], "for example schedule.steps=100; got steps"),
            (["photographs", "--show", "--set", "schedule.stops=3"], "[schedule] has no setting stops"),
            (["photographs", "--show", "--set", "objective.9.c=3"], "counted from 0"),
            (["photographs", "--show", "--set", "schedule.steps.x=3"], "steps is a value, not a table"),
            (["photographs", "--show", "--set", "=3"], "--set must be NAME=VALUE, for example"),
        ],
    )
    def test_what_is_wrong_is_one_line(self, words: list[str], message: str) -> None:
        found = run("train", *words, status=2)
        assert message in found.err
        assert found.err.count("\n") == 1

    @pytest.mark.thorough
    def test_another_recipe_in_the_folder_is_refused_until_it_is_started_over(self, work: Path) -> None:
        words = ("train", work / "shades.toml", "-o", work / "third", "--no-picture")
        run(*words)
        found = run(*words, "--set", "schedule.seed=3", status=2)
        assert "contains a run with a different recipe" in found.err
        run(*words, "--set", "schedule.seed=3", "--restart")

    @pytest.mark.thorough
    def test_broken_items_give_status_1(self, tmp_path: Path) -> None:
        source = write_pictures(tmp_path / "pictures", each=4)
        (source / "red" / "dark" / "9.png").write_bytes(b"no picture")
        recipe = recipe_for(source, schedule={"steps": 1})
        recipe["data"] |= {"test": 0.0, "validation": 0.0}
        (tmp_path / "r.toml").write_text(show_recipe(load_recipe(recipe)))
        found = run("train", tmp_path / "r.toml", "-o", tmp_path / "model", status=1)
        assert "Left out: " in found.err

    @pytest.mark.kill
    def test_ctrl_c_ends_with_130_and_the_next_call_goes_on(self, work: Path, tmp_path: Path) -> None:
        folder = tmp_path / "cut"
        words = ["train", str(work / "shades.toml"), "-o", str(folder), "--no-picture"]
        words += ["--set", "schedule.steps=100000", "--set", "schedule.checkpoint_every=100000"]
        code = "import sys; from vidkin.cli import main; main()"
        root = Path(__file__).resolve().parents[2]
        process = subprocess.Popen([sys.executable, "-c", code, *words], cwd=root, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        log = folder / "run.jsonl"
        while not (log.is_file() and log.read_text().count('"step"') >= 10):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "Interrupted (step " in err
        assert "run the same command again to resume" in err
        assert (folder / "checkpoint.safetensors").is_file()
        assert not (folder / "model.safetensors").exists()


class TestEvaluate:
    def test_data_without_a_split_are_divided_and_the_division_is_printed(self, work: Path) -> None:
        others = write_pictures(work / "others", each=4, seed=3)
        found = run("evaluate", work / "model", others, "--option", "kind=image", "-f", "json")
        assert "the data has no split; splitting it by group, with 30 % for the test" in found.err
        assert found.json["queries"] + found.json["gallery"] == 24

    @pytest.mark.thorough
    def test_a_written_split_and_a_picture(self, work: Path) -> None:
        picture = work / "drawn.png"
        words = ("-o", f"split={work / 'model' / 'split.json'}", "--queries", "validation", "-o", picture)
        told = run("evaluate", work / "model", work / "pictures", *words, "-f", "json").json
        assert (told["query_split"], told["queries"]) == ("validation", 12)
        assert picture.is_file()

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["nowhere"], "nowhere: contains no model"),
            (["{model}", "--queries", "exam"], "split must be one of"),
            (["{model}", "{pictures}", "--option", "kind"], "for example content=images; got kind"),
            (["{model}", "{pictures}", "--reader", "novel"], "'novel' is not a reader"),
            (["{pictures}", "{pictures}"], "contains no model"),
        ],
    )
    def test_what_is_wrong_is_one_line(self, work: Path, words: list[str], message: str) -> None:
        filled = [word.format(model=work / "model", pictures=work / "pictures") for word in words]
        found = run("evaluate", *filled, status=2)
        assert message in found.err.splitlines()[-1]

    def test_a_broken_item_gives_status_1(self, work: Path, tmp_path: Path) -> None:
        source = write_pictures(tmp_path / "pictures", each=4)
        (source / "red" / "dark" / "9.png").write_bytes(b"no picture")
        found = run("evaluate", work / "model", source, "-f", "json", status=1)
        assert len(json.loads(found.out)["broken"]) == 1
        assert "9.png" in found.err

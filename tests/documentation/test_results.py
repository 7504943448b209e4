"""research/results and research/benchmarks/results.toml list the same results, with existing commands."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from tests.support.videos import encode, pan
from vidkin.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "research" / "results"


@pytest.fixture(scope="module")
def run_all() -> ModuleType:
    """The run_all script, which is not part of a package."""
    specification = importlib.util.spec_from_file_location("run_all", ROOT / "research" / "benchmarks" / "run_all.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["run_all"] = module  # dataclass looks the module up here
    specification.loader.exec_module(module)
    return module


def test_every_result_file_has_one_row_and_every_row_has_its_files(run_all: ModuleType) -> None:
    rows = run_all.read_results()
    named = [name for row in rows if row.last is not None for name in row.files]
    assert sorted(named) == sorted(path.name for path in RESULTS.iterdir() if path.name != "README.md")
    assert len({row.name for row in rows}) == len(rows)


def test_table_in_the_page_matches_the_rows(run_all: ModuleType) -> None:
    page = (RESULTS / "README.md").read_text(encoding="utf-8")
    written = page.split(run_all.START)[1].split(run_all.END)[0]
    assert written == run_all.table(run_all.read_results()), "python research/benchmarks/run_all.py --table"


def test_every_command_is_an_existing_script_or_study_with_valid_options(run_all: ModuleType) -> None:
    for row in run_all.read_results():
        for program, *words in row.commands:
            options = [word for word in words if word.startswith("--")]
            if program == "vidkin":
                answer = CliRunner().invoke(app, [*words[:2], "--help"], env={"COLUMNS": "200"})
                assert [option for option in options if option not in answer.output] == [], row.name
            else:
                text = (ROOT / "research" / "benchmarks" / program).read_text(encoding="utf-8")
                shared = "".join(
                    path.read_text(encoding="utf-8") for path in (ROOT / "research" / "benchmarks").glob("_*.py")
                )
                assert [option for option in options if f'"{option}"' not in text + shared] == [], row.name


def test_quick_run_takes_at_most_an_hour_and_leaves_no_room_for_another_row(run_all: ModuleType) -> None:
    rows = run_all.read_results()
    chosen = run_all.choose(rows, None, quick=True, has_data=True)
    minutes = sum(row.minutes for row in chosen)
    left = [row.minutes for row in rows if row not in chosen and row.by_hand is None]
    assert 0 < minutes <= 60 < minutes + min(left)
    assert all(row.by_hand is None for row in chosen)


def test_placeholders_in_commands_are_filled_in(run_all: ModuleType, tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (data / "videos" / "x").mkdir(parents=True, exist_ok=True)
        (data / "videos" / "x" / name).touch()
    values = run_all.placeholder_values(data, tmp_path / "work")
    command = run_all.fill_placeholders(["walk.py", "{videos}/x", "{test_clips...}", "--work", "{work}/here"], values)
    assert command[1:] == [
        str(ROOT / "research" / "benchmarks" / "walk.py"),
        str(data / "videos" / "x"),
        str(data / "videos" / "x" / "c.mp4"),
        "--work",
        str(tmp_path / "work" / "here"),
    ]


def test_run_copies_its_results_into_its_row_without_images_from_the_data(
    run_all: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tmp_path / "study"
    (study / "runs").mkdir(parents=True)
    for name in ("images.md", "images.json", "images-curve.png", "rankings-grocery.png", "descriptors.bin"):
        (study / name).write_text(name)
    table = '[[result]]\nname = "two"\nfiles = ["two.md"]\nwhat = "w"\ncommands = [["a.py"]]\nminutes = 1\n'
    (tmp_path / "results.toml").write_text(table)
    (tmp_path / "README.md").write_text(f"before\n{run_all.START}{run_all.END}after\n")
    for name, path in (("RESULTS", tmp_path), ("TABLE", tmp_path / "results.toml"), ("PAGE", tmp_path / "README.md")):
        monkeypatch.setattr(run_all, name, path)
    files = run_all.publish(study, "two")
    assert files == ["two.md", "two.json", "two-curve.png"]
    assert (tmp_path / "two-curve.png").read_text() == "images-curve.png"
    assert not list(tmp_path.glob("*grocery*"))
    run_all.note_run("two", 7, files)
    (row,) = run_all.read_results()
    assert (row.files, row.minutes) == (files, 7)
    assert row.last is not None
    assert "`two.md`, `two.json`, `two-curve.png`" in (tmp_path / "README.md").read_text()


def test_figures_of_a_clone_are_replaced_by_commands_of_vidkin(
    run_all: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = encode(tmp_path / "film.mp4", pan("coffee", 20, width=96, height=64))
    (tmp_path / "cuts.csv").write_text("figures of an earlier commit")
    table = (
        '[[result]]\nname = "cuts"\nfiles = ["cuts.csv"]\nwhat = "w"\nminutes = 9\n'
        f'commands = [["vidkin", "shots", "{video}", "--output", "{{results}}/cuts.csv"]]\n'
    )
    (tmp_path / "results.toml").write_text(table)
    (tmp_path / "README.md").write_text(f"before\n{run_all.START}{run_all.END}after\n")
    for name, path in (("RESULTS", tmp_path), ("TABLE", tmp_path / "results.toml"), ("PAGE", tmp_path / "README.md")):
        monkeypatch.setattr(run_all, name, path)
    assert run_all.run(run_all.read_results()[0], run_all.placeholder_values(None, tmp_path))
    assert "film.mp4" in (tmp_path / "cuts.csv").read_text()
    assert run_all.read_results()[0].minutes == 1

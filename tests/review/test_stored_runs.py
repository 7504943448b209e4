"""Run folders as written by training and benchmarks."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

from filelock import FileLock

from tests.support.stored_runs import write_benchmark, write_training
from vidkin.review.stored_runs import find_runs, read_curves, read_tables


def test_training_runs_and_benchmarks_are_found_with_their_state(tmp_path: Path) -> None:
    write_training(tmp_path / "a" / "done", [2.0, 1.0], report=True)
    write_training(tmp_path / "at work", [3.0], report=False)
    write_training(tmp_path / "left", [3.0], report=False)
    old = time.time() - 3600
    os.utime(tmp_path / "left" / "run.jsonl", (old, old))
    (tmp_path / "a" / "done" / "quadlets.png").write_bytes(b"picture")
    write_benchmark(tmp_path / "figures.json")
    (tmp_path / "other.json").write_text('{"name": "no figures"}', encoding="utf-8")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    found = {run.name: run for run in find_runs([tmp_path])}
    assert {name: (run.kind, run.state) for name, run in found.items()} == {
        "a/done": ("training", "done"),
        "at work": ("training", "running"),
        "left": ("training", "interrupted"),
        "figures.json": ("benchmark", "done"),
    }
    assert found["a/done"].figures == {"loss": 1.0, "learning_rate": 0.1, "validation qp": 0.75}
    assert found["a/done"].pictures == ("quadlets.png",)
    assert find_runs([tmp_path])[-1].name == "left"  # the oldest run is last
    assert [run.name for run in find_runs([tmp_path / "left"])] == ["left"]
    assert find_runs([tmp_path / "nothing"]) == []


def test_run_is_active_while_its_process_holds_the_lock(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_training(folder, [2.0, 1.0], report=False)
    lock = FileLock(folder / ".training.lock")
    with lock:
        assert state_of(folder) == "running"
        # A resumed run, whose folder has the report of the previous one.
        (folder / "report.json").write_text('{"steps": 1}', encoding="utf-8")
        assert state_of(folder) == "running"
    # The process was killed and its lock released, seconds after the last log line.
    later = (folder / "run.jsonl").stat().st_mtime - 5
    os.utime(folder / "report.json", (later, later))
    assert state_of(folder) == "interrupted"
    (folder / "report.json").write_text("damaged", encoding="utf-8")
    os.utime(folder / "report.json", (later, later))
    assert state_of(folder) == "interrupted"
    with lock:
        assert state_of(folder) == "running"


def test_rerun_of_a_complete_run_is_done(tmp_path: Path) -> None:
    """The log is written again, but the report of the original run stays."""
    folder = tmp_path / "run"
    write_training(folder, [2.0, 1.0], report=False)
    (folder / "report.json").write_text('{"steps": 2}', encoding="utf-8")
    earlier = (folder / "run.jsonl").stat().st_mtime - 3600
    os.utime(folder / "report.json", (earlier, earlier))
    assert state_of(folder) == "done"


def state_of(folder: Path) -> str:
    (run,) = find_runs([folder])
    return run.state


def test_curves_are_thinned_and_truncated_lines_skipped(tmp_path: Path) -> None:
    write_training(tmp_path / "long", [float(step) for step in range(1, 2502)], report=False)
    with (tmp_path / "long" / "run.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 2502, "kind": "warning", "text": "collapsed"}\n{"step": 25')
    curves = read_curves(tmp_path / "long")
    points = curves.series["loss"]
    assert len(points) <= 1000
    assert points[-1] == (2501, 2501.0)
    assert {second[0] - first[0] for first, second in pairwise(points)} == {3}
    assert curves.series["validation qp"] == ((2501, 0.75),)
    assert curves.warnings == ("collapsed",)


def test_lists_of_results_become_tables(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "figures.json")
    (table,) = read_tables(tmp_path / "figures.json")
    assert table.title == "sets / birds / chosen"
    assert table.columns == ("method", "mean qp")
    assert table.rows == (("triplet", "0.5000"), ("quadlet", "0.6250"))

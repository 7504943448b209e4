"""The log of a training run."""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.training import RunLog
from vidkin.training.run import LOG_FILE


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / LOG_FILE).read_text(encoding="utf-8").splitlines()]


def test_log_has_a_line_per_event_and_can_be_read_during_the_run(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.write(1, "step", {"loss": 0.5, "radial": math.nan, "quadlet": math.inf})
    assert lines(tmp_path) == [{"step": 1, "kind": "step", "loss": 0.5, "radial": None, "quadlet": None}]
    log.write(2, "warning", {"text": "größer"})
    log.close()
    assert lines(tmp_path)[1] == {"step": 2, "kind": "warning", "text": "größer"}


def test_new_run_starts_a_new_log(tmp_path: Path) -> None:
    first = RunLog(tmp_path)
    first.write(1, "step", {})
    first.close()
    RunLog(tmp_path).close()
    assert lines(tmp_path) == []


def test_lines_after_the_last_checkpoint_are_dropped_on_resuming(tmp_path: Path) -> None:
    first = RunLog(tmp_path)
    for step in (1, 2, 3, 4):
        first.write(step, "step", {"loss": float(step)})
    first.close()
    with (tmp_path / LOG_FILE).open("a") as file:
        file.write('{"step": 5, "kind": "st')  # truncated by the kill
    again = RunLog(tmp_path, resume_after=2)
    again.write(3, "step", {"loss": 30.0})
    again.close()
    assert [(line["step"], line["loss"]) for line in lines(tmp_path)] == [(1, 1.0), (2, 2.0), (3, 30.0)]


def test_an_unwritable_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"run\.jsonl: cannot be written"):
        RunLog(tmp_path / "missing")


def test_error_says_what_to_install_without_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingPartError, match=r"needs tensorboard; install it with: pip install .*\[tensorboard\]\""):
        RunLog(tmp_path, tensorboard=True)


def test_all_numbers_are_written_to_tensorboard(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        # TensorBoard raises deprecation warnings on import.
        warnings.simplefilter("ignore", DeprecationWarning)
        pytest.importorskip("tensorboard")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        log = RunLog(tmp_path, tensorboard=True)
        log.write(1, "step", {"loss": 0.5, "note": "text is for the lines alone"})
        log.write(2, "step", {"loss": 0.25})
        log.close()
        events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["step/loss"]
    assert [(event.step, event.value) for event in events.Scalars("step/loss")] == [(1, 0.5), (2, 0.25)]

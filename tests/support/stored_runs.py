"""Runs of trainings and benchmarks, written as these write them."""

from __future__ import annotations

import json
from pathlib import Path


def write_training(folder: Path, values: list[float], *, report: bool) -> None:
    """A run of a step for each value of the loss."""
    from vidkin.training import RunLog

    folder.mkdir(parents=True)
    log = RunLog(folder)
    for step, value in enumerate(values, start=1):
        log.write(step, "step", {"loss": value, "learning_rate": 0.1})
    log.write(len(values), "validation", {"qp": 0.75})
    log.close()
    if report:
        (folder / "report.json").write_text("{}", encoding="utf-8")


def write_benchmark(path: Path) -> None:
    """The figures of two methods on one set, as a benchmark leaves them."""
    figures = (("triplet", 0.5), ("quadlet", 0.625))
    sets = [{"set": "birds", "chosen": [{"method": name, "mean": {"qp": value}} for name, value in figures]}]
    path.write_text(json.dumps({"command": "vidkin benchmark retrieval", "sets": sets}), encoding="utf-8")

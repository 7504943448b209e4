"""Run folders as written by training and benchmarks."""

from __future__ import annotations

import json
from pathlib import Path


def write_training(folder: Path, values: list[float], *, report: bool) -> None:
    """Write a training run with one step for each loss value."""
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
    """Write the results of two methods on one data set, as a benchmark does."""
    figures = (("triplet", 0.5), ("quadlet", 0.625))
    sets = [{"set": "birds", "chosen": [{"method": name, "mean": {"qp": value}} for name, value in figures]}]
    path.write_text(json.dumps({"command": "vidkin benchmark retrieval", "sets": sets}), encoding="utf-8")

"""``vidkin benchmark retrieval``."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from tests.cli.conftest import run


def prepare(folder: Path) -> None:
    (folder / "svd").mkdir()
    (folder / "svd" / "test_groundtruth").write_text("1.mp4 2.mp4 1\n1.mp4 3.mp4 0\n9.mp4 2.mp4 1\n")
    (folder / "features").mkdir()
    for name, angle in {"1": 0.0, "2": 0.1, "3": 1.0}.items():
        values = torch.tensor([[[angle, 1.0]]])
        save_file({"values": values / values.norm()}, folder / "features" / f"{name}.safetensors")


def test_results_are_shown_next_to_published_ones(tmp_path: Path) -> None:
    prepare(tmp_path)
    words = (
        "benchmark",
        "retrieval",
        "--dataset",
        "svd",
        "-a",
        tmp_path,
        "--features",
        tmp_path / "features",
    )
    outcome = run(*words, "-o", tmp_path / "figures.json")
    assert "svd: 1 query, 2 videos" in outcome.out
    first, second = (line for line in outcome.out.splitlines() if "here" in line or "HAP-VR" in line)
    assert "100.00" in first
    assert "89.00" in second
    assert "1 query of the benchmark (9)" in outcome.err
    stored = json.loads((tmp_path / "figures.json").read_text())
    assert stored["missing_queries"] == ["9"]
    report = run(*words, "-f", "json").json["report"]
    assert report["figures"][0] == {"name": "mAP", "value": 1.0, "queries": 1, "skipped": 1}


def test_comparison_name_is_required(tmp_path: Path) -> None:
    outcome = run("benchmark", "retrieval", "--dataset", "svd", "-a", tmp_path, status=2)
    assert "one of --features and --videos must be given" in outcome.err


def test_duration_is_estimated_before_work_starts(tmp_path: Path) -> None:
    prepare(tmp_path)
    words = ("benchmark", "retrieval", "--dataset", "svd", "-a", tmp_path, "--features", tmp_path / "features")
    outcome = run(*words, "--check", "-o", tmp_path / "figures.json")
    assert "2 queries, 2 videos; 1 video without features. About 1 minute on this machine." in outcome.out
    assert not (tmp_path / "figures.json").exists()

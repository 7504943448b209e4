"""``vidkin train-shots --method deepsbd``."""

from __future__ import annotations

from pathlib import Path

from research.tests.commands.test_train_shots import labels, run

from vidkin.shots import detect

__all__ = ["labels"]


def test_trained_deepsbd_can_be_used_as_detector(labels: Path, tmp_path: Path) -> None:
    tiny = ("--set", "model.width=0.05", "--set", "model.size=16", "--set", "segments.steps=2")
    tiny += ("--set", "segments.batch=4", "--set", "segments.classifier=svm")
    printed = run(labels, "--method", "deepsbd", *tiny, "-o", tmp_path / "deep").output
    assert "svm" in printed
    assert "use it with vidkin shots --detector" in printed
    assert detect(labels.parent / "0.mp4", str(tmp_path / "deep")).curve is not None


def test_deepsbd_settings_are_validated(labels: Path) -> None:
    assert "width = 1.0" in run("--show", "--method", "deepsbd").stdout
    told = run("--show", "--method", "deepsbd", "--set", "segments.rate=9", status=2).stderr
    assert "has no setting rate" in told
    assert "got method 'learned'" in run(labels, "--method", "learned", "-r", "deepsbd", status=2).stderr
    assert "deepsbd-svm" in run().stdout

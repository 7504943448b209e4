"""Training on labeled shots creates a DeepSBD detector for `vidkin shots`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.detections import cut_video
from vidkin.errors import InvalidArgumentError
from vidkin.models import read_model_info
from vidkin.shots import ShotAnnotation, VideoAnnotation, detect, write_shot_annotations
from vidkin.training.runner import hold_training_folder
from vidkin_research.detectors.deep_sbd_train import SegmentPlan, train_deep_sbd
from vidkin_research.learned.recipes import load_shot_recipe


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> list[VideoAnnotation]:
    """A film of 60 frames with cuts at 20 and 45."""
    path = cut_video(tmp_path_factory.mktemp("films") / "film.mp4")
    shots = (ShotAnnotation(0, 20), ShotAnnotation(20, 45), ShotAnnotation(45, 60))
    return [VideoAnnotation(path, 10.0, shots)]


def plan(**segments: Any) -> SegmentPlan:
    content = {"segments": {"steps": 4, "batch": 4, **segments}, "model": {"width": 0.05, "size": 16}}
    found = load_shot_recipe(content)
    assert isinstance(found, SegmentPlan)
    return found


def test_training_on_labels_creates_a_detector(labels: list[VideoAnnotation], tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    write_shot_annotations(tmp_path / "labels.json", labels)
    report = train_deep_sbd(
        tmp_path / "labels.json",
        plan(),
        output=tmp_path / "model",
        on_progress=lambda *words: told.append(words),
    )
    assert (report.trained_videos, report.classifier, report.has_gradual) == (1, "softmax", False)
    assert 0 <= report.right <= 1
    assert told[0] == ("film.mp4", 0, 1)
    assert [done for _, done, total in told[1:]] == [1, 2, 3, 4]
    assert sorted(path.name for path in report.output.glob("[!.]*")) == [
        "config.toml",
        "model.onnx",
        "model.safetensors",
    ]
    # The folder itself is a valid detector name.
    detection = detect(labels[0].video, str(report.output))
    assert detection.curve is not None
    assert len(detection.curve.values) == 7


def test_training_the_svm_variant_creates_a_detector(labels: list[VideoAnnotation], tmp_path: Path) -> None:
    report = train_deep_sbd(labels, plan(classifier="svm"), output=tmp_path)
    assert report.classifier == "svm"
    assert report.right > 0.5
    assert read_model_info(tmp_path).notes["classifier"] == "svm"
    assert detect(labels[0].video, f"deepsbd:{tmp_path}").curve is not None


def test_interrupted_training_resumes_with_the_same_weights(labels: list[VideoAnnotation], tmp_path: Path) -> None:
    def press(what: str, done: int, total: int) -> None:
        if total == 4 and done == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_deep_sbd(labels, plan(), output=tmp_path / "a", on_progress=press)
    assert [path.name for path in (tmp_path / "a").glob("[!.]*")] == ["checkpoint.safetensors"]
    with pytest.raises(InvalidArgumentError, match="unfinished training"):
        train_deep_sbd(labels, plan(steps=5), output=tmp_path / "a")
    first = train_deep_sbd(labels, plan(), output=tmp_path / "a")
    second = train_deep_sbd(labels, plan(memory=0.0), output=tmp_path / "b")
    assert first.loss == second.loss
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in "ab")
    assert one == two


def test_training_rejects_labels_without_cuts_or_beyond_the_video(
    labels: list[VideoAnnotation], tmp_path: Path
) -> None:
    uncut = [VideoAnnotation(labels[0].video, 10.0, (ShotAnnotation(0, 60),))]
    with pytest.raises(InvalidArgumentError, match="labels must contain at least one cut, got none"):
        train_deep_sbd(uncut, plan(), output=tmp_path / "model")
    late = [VideoAnnotation(labels[0].video, 10.0, (ShotAnnotation(0, 20), ShotAnnotation(20, 99)))]
    with pytest.raises(InvalidArgumentError, match="ends at frame 99, but the video has 60 frames"):
        train_deep_sbd(late, plan(), output=tmp_path / "model")


def test_training_into_a_used_folder_is_rejected(labels: list[VideoAnnotation], tmp_path: Path) -> None:
    with (
        hold_training_folder(tmp_path),
        pytest.raises(InvalidArgumentError, match="another training run is using this folder"),
    ):
        train_deep_sbd(labels, plan(), output=tmp_path)

"""What shot detectors are trained and judged on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots.training.judging import BoundaryLabels
from vidkin_research.shots.material import LabelledVideo, annotation_of, composed_part, edited_videos


def test_shots_lie_between_cuts_and_transitions() -> None:
    video = LabelledVideo(Path("a.mp4"), BoundaryLabels((10, 40), ((0, 3), (20, 29))))
    annotation = annotation_of(video, 50)
    assert [(shot.start, shot.end) for shot in annotation.shots] == [(4, 10), (10, 20), (30, 40), (40, 50)]


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ({"videos": {"gone.mp4": {"hard": [3]}}}, "labeled videos are missing: gone.mp4"),
        ({"videos": {}}, "has no labels"),
    ],
)
def test_labels_need_videos(tmp_path: Path, truth: object, message: str) -> None:
    (tmp_path / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=message):
        edited_videos(tmp_path)


def test_clips_of_the_two_parts_differ(clips: Path, tmp_path: Path) -> None:
    def compose(test: bool, folder: Path, source: Path = clips) -> list[LabelledVideo]:
        return composed_part(
            source,
            None,
            folder,
            test=test,
            videos=1,
            frames=60,
            size=(36, 64),
            on_progress=lambda done, total, what: None,
        )

    (train,) = compose(False, tmp_path / "train")
    (test,) = compose(True, tmp_path / "test")
    assert train.path.read_bytes() != test.path.read_bytes()
    written = test.path.stat().st_mtime_ns
    assert compose(True, tmp_path / "test") == [test]
    assert test.path.stat().st_mtime_ns == written
    (tmp_path / "none").mkdir()
    with pytest.raises(InvalidArgumentError, match="has no single-shot clips for the test split"):
        compose(True, tmp_path / "other", tmp_path / "none")

"""Labels created from detections, and evaluation of a detector on labels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.detections import cut_video, detection
from vidkin.errors import InvalidArgumentError
from vidkin.shots import (
    LabelTable,
    ShotAnnotation,
    VideoAnnotation,
    annotate_shots,
    evaluate_detector,
    is_shot_labels,
    read_shot_annotations,
    write_shot_annotations,
)


def test_frames_of_a_transition_belong_to_no_shot() -> None:
    """There is a cut at frame 20 and a transition over frames 43 to 47; the second shot is rated critical."""
    made = annotate_shots(detection(rate=25.0))
    assert made.fps == 25.0
    assert made.shots == (ShotAnnotation(0, 20), ShotAnnotation(20, 43, (20, 43)), ShotAnnotation(48, 60))
    assert made.cuts == (20, (43, 47))


def test_manual_critical_labels_replace_the_detector() -> None:
    marked = replace(detection(), critical=((5, 15), (18, 24), (50, 60)))
    assert [shot.critical for shot in annotate_shots(marked).shots] == [(5, 15), (20, 24), (50, 60)]


def test_labels_of_several_videos_are_in_one_file(tmp_path: Path) -> None:
    table = LabelTable()
    for name in ("one.mp4", "two.mp4"):
        table.add(detection(cut_video(tmp_path / name)))
    table.write(tmp_path / "labels.json", source="labels of a test")
    assert is_shot_labels(tmp_path / "labels.json")
    read = read_shot_annotations(tmp_path / "labels.json")
    assert [one.video for one in read] == [tmp_path / "one.mp4", tmp_path / "two.mp4"]
    assert read[0].shots == annotate_shots(detection()).shots
    (tmp_path / "other.json").write_text('{"items": []}', encoding="utf-8")
    assert not is_shot_labels(tmp_path / "other.json")
    assert not is_shot_labels(tmp_path / "one.mp4")


def test_detector_is_measured_on_labels(tmp_path: Path) -> None:
    """The detector finds both cuts; the labels have a third one, and label one of the two as a transition."""
    film = cut_video(tmp_path / "film.mp4")
    part = cut_video(tmp_path / "part.mp4")
    labels = [
        VideoAnnotation(
            film, 10.0, (ShotAnnotation(0, 10), ShotAnnotation(10, 20), ShotAnnotation(20, 43), ShotAnnotation(46, 60))
        ),
        # Only a part of the video is labeled, so the cut at 45 counts as neither correct nor wrong.
        VideoAnnotation(part, 10.0, (ShotAnnotation(0, 21), ShotAnnotation(21, 40))),
    ]
    write_shot_annotations(tmp_path / "labels.json", labels)
    measured = evaluate_detector("shotdetect", tmp_path / "labels.json")
    assert [
        (one.cuts.true_positives, one.cuts.false_positives, one.cuts.false_negatives) for one in measured.videos
    ] == [
        (2, 0, 1),
        (1, 0, 0),
    ]
    assert (measured.cuts.precision, measured.cuts.recall) == (1.0, 0.75)
    assert (measured.hard.true_positives, measured.hard.false_positives) == (2, 1)
    assert (measured.gradual.true_positives, measured.gradual.false_negatives) == (0, 1)
    assert measured.critical is None
    told = json.loads(json.dumps(measured.to_dict()))
    assert told["cuts"]["f1"] == pytest.approx(6 / 7)
    assert told["broken"] == []
    strict = evaluate_detector("shotdetect", labels[1:], tolerance=0)
    assert (strict.cuts.true_positives, strict.cuts.false_positives) == (0, 1)


def test_videos_that_cannot_be_evaluated_are_listed(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    labels = [
        VideoAnnotation(tmp_path / "gone.mp4", 10.0, (ShotAnnotation(0, 5),)),
        VideoAnnotation(film, 10.0, (ShotAnnotation(0, 500),)),
    ]
    measured = evaluate_detector("shotdetect", labels)
    assert [cause for _, cause in measured.broken] == [
        "there is no such file",
        "has 60 frames, but is labeled up to frame 500",
    ]
    with pytest.raises(InvalidArgumentError, match="at least one video, got none"):
        evaluate_detector("shotdetect", [])
    with pytest.raises(InvalidArgumentError, match="'nonsense' is not a shot detector"):
        evaluate_detector("nonsense", labels)

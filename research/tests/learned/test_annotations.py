"""Shot labels: JSON format and validation."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.support.folders import made_in
from vidkin.errors import InvalidArgumentError
from vidkin.shots import ShotAnnotation, VideoAnnotation, read_shot_annotations, write_shot_annotations


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_labels_round_trip_with_names_relative_to_the_file(tmp_path: Path) -> None:
    labels = [
        VideoAnnotation(
            tmp_path / "clips" / "a é.mp4", 25.0, (ShotAnnotation(0, 90, (60, 90)), ShotAnnotation(90, 200))
        ),
        VideoAnnotation(tmp_path / "b.mp4", 29.97, (ShotAnnotation(5, 7),)),
    ]
    write_shot_annotations(tmp_path / "labels.json", labels)
    assert read_shot_annotations(tmp_path / "labels.json") == labels
    document = json.loads((tmp_path / "labels.json").read_text(encoding="utf-8"))
    assert [video["video"] for video in document["videos"]] == ["clips/a é.mp4", "b.mp4"]
    assert document["videos"][0]["shots"][0] == {"start": 0, "end": 90, "critical": [60, 90]}
    assert document["videos"][0]["shots"][1]["critical"] is None
    assert [path.name for path in made_in(tmp_path)] == ["labels.json"]


def test_cuts_are_hard_if_shots_touch_and_gradual_otherwise() -> None:
    shots = (ShotAnnotation(0, 10), ShotAnnotation(10, 20), ShotAnnotation(26, 40))
    assert VideoAnnotation(Path("a.mp4"), 25, shots).cuts == (10, (20, 25))


def test_single_video_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path / "one.json", {"video": "a.mp4", "fps": 20, "shots": [{"start": 0, "end": 5}]})
    assert read_shot_annotations(path) == [VideoAnnotation(tmp_path / "a.mp4", 20.0, (ShotAnnotation(0, 5),))]


@pytest.mark.parametrize(
    ("shots", "message"),
    [
        ([{"start": 5, "end": 5}], r"bad\.json, video 0: a shot must have 0 <= start < end, got \[5, 5\)"),
        (
            [{"start": 0, "end": 9, "critical": [4, 10]}],
            r"bad\.json, video 0: critical frames must be inside their shot \[0, 9\), got \[4, 10\)",
        ),
        (
            [{"start": 0, "end": 9}, {"start": 8, "end": 12}],
            r"bad\.json, video 0: shots of .* must be in order and not overlap, got \[0, 9\) and \[8, 12\)",
        ),
        ([{"start": 0}], r"expected 'video', 'fps' and 'shots' .*KeyError: 'end'"),
        ([{"start": 0, "end": 9, "critical": [4]}], r"video 0: expected 'video'.*ValueError"),
        (7, r"video 0: expected 'video'.*TypeError"),
        ([{"start": 0, "end": 9.5}], r"bad\.json, video 0: frames must be whole numbers, got 9\.5"),
        ([{"start": True, "end": 9}], r"bad\.json, video 0: frames must be whole numbers, got True"),
        ([{"start": 0, "end": math.inf}], r"bad\.json, video 0: frames must be whole numbers, got inf"),
        (
            [{"start": 0, "end": 9, "crtical": [4, 9]}],
            r"bad\.json, video 0: a shot may only have 'start', 'end' and 'critical', got 'crtical'",
        ),
    ],
)
def test_contradictory_labels_are_rejected(tmp_path: Path, shots: object, message: str) -> None:
    path = write(tmp_path / "bad.json", {"video": "a.mp4", "fps": 20, "shots": shots})
    with pytest.raises(InvalidArgumentError, match=message):
        read_shot_annotations(path)


def test_files_without_annotations_are_rejected_with_the_cause(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"none\.json: cannot be read: No such file or directory"):
        read_shot_annotations(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("shots: 1", encoding="utf-8")
    with pytest.raises(
        InvalidArgumentError, match=r"text\.json: is not valid JSON: Expecting value: line 1 column 1 \(char 0\)"
    ):
        read_shot_annotations(tmp_path / "text.json")
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"deep\.json: is not valid JSON: nested too deeply"):
        read_shot_annotations(tmp_path / "deep.json")
    with pytest.raises(InvalidArgumentError, match=r"list\.json: must contain a JSON object, got a list"):
        read_shot_annotations(write(tmp_path / "list.json", []))
    with pytest.raises(
        InvalidArgumentError,
        match=r"other\.json: must contain an object with 'format': 'vidkin-shots-1' and 'videos', got the keys",
    ):
        read_shot_annotations(write(tmp_path / "other.json", {"format": "other", "videos": []}))
    with pytest.raises(InvalidArgumentError, match=r"fps\.json, video 0: fps must be above 0, got 0\.0 for .*"):
        read_shot_annotations(write(tmp_path / "fps.json", {"video": "a.mp4", "fps": 0, "shots": []}))
    with pytest.raises(InvalidArgumentError, match=r"large\.json: is not valid JSON: a number must have at most 100"):
        read_shot_annotations(write(tmp_path / "large.json", {"video": "a.mp4", "fps": 10**400, "shots": []}))
    with pytest.raises(InvalidArgumentError, match=r"name\.json, video 0: 'video' must be a file name, got None"):
        read_shot_annotations(write(tmp_path / "name.json", {"video": None, "fps": 25, "shots": []}))

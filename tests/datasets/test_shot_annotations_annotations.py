"""Labels of shots: the JSON format, its checks, and SoccerNet-v2."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from vidkin.datasets.shot_annotations import (
    ShotAnnotation,
    VideoAnnotation,
    read_shot_annotations,
    write_shot_annotations,
)
from vidkin.datasets.soccernet import read_soccernet
from vidkin.errors import InvalidArgumentError


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def soccernet(path: Path, *annotations: dict[str, str]) -> Path:
    return write(path, {"UrlLocal": "league/season/game/", "annotations": list(annotations)})


def event(label: str, clock: str, position: int, visibility: str = "visible") -> dict[str, str]:
    return {
        "gameTime": clock,
        "label": label,
        "position": str(position),
        "team": "home",
        "visibility": visibility,
    }


def test_labels_come_back_as_written_with_names_relative_to_the_file(tmp_path: Path) -> None:
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
    assert [path.name for path in tmp_path.iterdir()] == ["labels.json"]


def test_cuts_are_hard_where_shots_touch_and_gradual_where_frames_lie_between() -> None:
    shots = (ShotAnnotation(0, 10), ShotAnnotation(10, 20), ShotAnnotation(26, 40))
    assert VideoAnnotation(Path("a.mp4"), 25, shots).cuts == (10, (20, 25))


def test_one_video_alone_is_a_file_too(tmp_path: Path) -> None:
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
            r"bad\.json, video 0: a shot must have 'start', 'end' and 'critical' only, got 'crtical'",
        ),
    ],
)
def test_contradictory_labels_are_refused(tmp_path: Path, shots: object, message: str) -> None:
    path = write(tmp_path / "bad.json", {"video": "a.mp4", "fps": 20, "shots": shots})
    with pytest.raises(InvalidArgumentError, match=message):
        read_shot_annotations(path)


def test_files_without_annotations_are_refused_with_the_cause(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"none\.json: cannot be read, No such file or directory"):
        read_shot_annotations(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("shots: 1", encoding="utf-8")
    with pytest.raises(
        InvalidArgumentError, match=r"text\.json: is not JSON, Expecting value: line 1 column 1 \(char 0\)"
    ):
        read_shot_annotations(tmp_path / "text.json")
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"deep\.json: is not JSON, nested too deeply"):
        read_shot_annotations(tmp_path / "deep.json")
    with pytest.raises(InvalidArgumentError, match=r"list\.json: must hold a JSON object, got a list"):
        read_shot_annotations(write(tmp_path / "list.json", []))
    with pytest.raises(
        InvalidArgumentError,
        match=r"other\.json: must hold an object with 'format': 'vidkin-shots-1' and 'videos', got the keys",
    ):
        read_shot_annotations(write(tmp_path / "other.json", {"format": "other", "videos": []}))
    with pytest.raises(InvalidArgumentError, match=r"fps\.json, video 0: fps must be above 0, got 0\.0 for .*"):
        read_shot_annotations(write(tmp_path / "fps.json", {"video": "a.mp4", "fps": 0, "shots": []}))
    with pytest.raises(InvalidArgumentError, match=r"large\.json: is not JSON, a number must have at most 100"):
        read_shot_annotations(write(tmp_path / "large.json", {"video": "a.mp4", "fps": 10**400, "shots": []}))
    with pytest.raises(
        InvalidArgumentError, match=r"name\.json, video 0: 'video' must be the name of a file, got None"
    ):
        read_shot_annotations(write(tmp_path / "name.json", {"video": None, "fps": 25, "shots": []}))


def test_soccernet_event_makes_its_shot_critical_up_to_the_event(tmp_path: Path) -> None:
    # 10 fps: camera changes at 4 s and 9 s; a goal at 7.5 s lies in the second shot, [40, 90).
    labels = soccernet(
        tmp_path / "Labels-v2.json",
        event("Ball out of play", "1 - 00:02", 2000),
        event("Goal", "1 - 00:07", 7500),
        event("Goal", "2 - 00:03", 3000),
        event("Shots on target", "1 - 00:10", 10_000, visibility="not shown"),
    )
    cameras = soccernet(
        tmp_path / "Labels-cameras.json",
        {"gameTime": "1 - 00:04", "label": "Main camera center", "change_type": "abrupt", "position": "4000"},
        {"gameTime": "1 - 00:09", "label": "Close-up", "change_type": "smooth", "position": "9000"},
        {"gameTime": "2 - 00:01", "label": "Close-up", "change_type": "abrupt", "position": "1000"},
    )
    first = read_soccernet(labels, "1.mkv", fps=10, frames=120, cameras=cameras)
    assert first.video == Path("1.mkv")
    assert first.shots == (ShotAnnotation(0, 40), ShotAnnotation(40, 90, (40, 76)), ShotAnnotation(90, 120))
    second = read_soccernet(labels, "2.mkv", fps=10, frames=50, cameras=cameras, half=2, before=1.0)
    assert second.shots == (ShotAnnotation(0, 10), ShotAnnotation(10, 50, (21, 31)))


def test_soccernet_with_shots_of_a_detector_and_other_events(tmp_path: Path) -> None:
    labels = soccernet(
        tmp_path / "Labels-v2.json",
        event("Corner", "1 - 00:01", 1000),
        event("Corner", "1 - 00:03", 3000),
        event("Goal", "1 - 00:07", 7000),
    )
    found = read_soccernet(
        labels, "1.mkv", fps=10, frames=100, shots=[(0, 50), (50, 100)], events=["Corner"], before=0.5
    )
    # Two events in one shot: critical from half a second before the first to the last.
    assert found.shots == (ShotAnnotation(0, 50, (6, 31)), ShotAnnotation(50, 100))


def test_soccernet_without_positions_takes_the_clock_of_the_game(tmp_path: Path) -> None:
    labels = soccernet(tmp_path / "Labels-v2.json", {"gameTime": "1 - 01:05", "label": "Goal"})
    found = read_soccernet(labels, "1.mkv", fps=2, frames=200, shots=[(0, 200)])
    assert found.shots == (ShotAnnotation(0, 200, (0, 131)),)


def test_invalid_soccernet_labels_are_refused(tmp_path: Path) -> None:
    labels = soccernet(tmp_path / "Labels-v2.json", {"gameTime": "half time", "label": "Goal"})
    whole = [(0, 10)]
    with pytest.raises(InvalidArgumentError, match="has no 'gameTime' as '1 - 12:34'"):
        read_soccernet(labels, "1.mkv", fps=10, frames=10, shots=whole)
    with pytest.raises(
        InvalidArgumentError,
        match=r"either cameras \(Labels-cameras\.json\) or shots must be given, not both",
    ):
        read_soccernet(labels, "1.mkv", fps=10, frames=10)
    with pytest.raises(
        InvalidArgumentError,
        match="events must be among Ball out of play, Clearance, Corner, Direct free-kick, Foul, Goal,",
    ):
        read_soccernet(labels, "1.mkv", fps=10, frames=10, shots=whole, events=["Goal", "Gaol"])
    with pytest.raises(InvalidArgumentError, match="half must be one of 1, 2, got 3"):
        read_soccernet(labels, "1.mkv", fps=10, frames=10, half=3, shots=whole)
    with pytest.raises(InvalidArgumentError, match="fps and frames must be above 0, got 0 and 10"):
        read_soccernet(labels, "1.mkv", fps=0, frames=10, shots=whole)
    with pytest.raises(InvalidArgumentError, match="before must be above 0 s, or None, got 0"):
        read_soccernet(labels, "1.mkv", fps=10, frames=10, shots=whole, before=0)
    with pytest.raises(InvalidArgumentError, match="before must be above 0 s, or None, got inf"):
        read_soccernet(labels, "1.mkv", fps=10, frames=10, shots=whole, before=math.inf)
    with pytest.raises(InvalidArgumentError, match=r"shots must be within the 10 frames of the video, got \[0, 11\)"):
        read_soccernet(labels, "1.mkv", fps=10, frames=10, shots=[(0, 11)])
    with pytest.raises(InvalidArgumentError, match="has no list 'annotations'"):
        read_soccernet(write(tmp_path / "x.json", {"a": 1}), "1.mkv", fps=10, frames=10, shots=whole)

"""Conversion of one half of a SoccerNet-v2 game to shot labels."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots import ShotAnnotation
from vidkin_research.readers.soccernet import read_soccernet


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


def test_shot_is_critical_up_to_its_event(tmp_path: Path) -> None:
    # 10 fps: camera changes at 4 s and 9 s; a goal at 7.5 s is in the second shot, [40, 90).
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


def test_detected_shots_and_other_events_are_accepted(tmp_path: Path) -> None:
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


def test_labels_without_positions_use_the_game_clock(tmp_path: Path) -> None:
    labels = soccernet(tmp_path / "Labels-v2.json", {"gameTime": "1 - 01:05", "label": "Goal"})
    found = read_soccernet(labels, "1.mkv", fps=2, frames=200, shots=[(0, 200)])
    assert found.shots == (ShotAnnotation(0, 200, (0, 131)),)


def test_invalid_soccernet_labels_are_rejected(tmp_path: Path) -> None:
    labels = soccernet(tmp_path / "Labels-v2.json", {"gameTime": "half time", "label": "Goal"})
    whole = [(0, 10)]
    with pytest.raises(InvalidArgumentError, match="must have a 'gameTime' such as '1 - 12:34'"):
        read_soccernet(labels, "1.mkv", fps=10, frames=10, shots=whole)
    with pytest.raises(
        InvalidArgumentError,
        match=r"pass either cameras",
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
    with pytest.raises(InvalidArgumentError, match="must contain a list 'annotations'"):
        read_soccernet(write(tmp_path / "x.json", {"a": 1}), "1.mkv", fps=10, frames=10, shots=whole)

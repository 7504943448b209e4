"""SoccerNet-v2 in its published layout: discovery of halves, and their labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.labelled import counting_clip
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.shots import ShotAnnotation
from vidkin_research.readers.soccernet import find_soccernet_halves, read_soccernet_half

GAME = "england_epl/2014-2015/2015-02-21 - 18-00 Chelsea 1 - 1 Burnley"


def annotation(clock: str, position: int, label: str) -> dict[str, str]:
    return {"gameTime": clock, "label": label, "position": str(position), "visibility": "visible"}


@pytest.fixture
def game(tmp_path: Path) -> Path:
    """A game of two halves of 20 frames at 10 fps: a cut at 1 s of the first, a goal at 1.8 s."""
    folder = tmp_path / GAME
    for half in (1, 2):
        counting_clip(folder / f"{half}_224p.mkv", 20)
    labels = [annotation("1 - 00:01", 1800, "Goal"), annotation("2 - 00:00", 300, "Foul")]
    cameras = [annotation("1 - 00:01", 1000, "Main camera center")]
    (folder / "Labels-v2.json").write_text(json.dumps({"annotations": labels}))
    (folder / "Labels-cameras.json").write_text(json.dumps({"annotations": cameras}))
    return folder


def test_halves_become_labeled_videos(game: Path, tmp_path: Path) -> None:
    halves = find_soccernet_halves(tmp_path)
    assert [(half.video, half.half) for half in halves] == [
        (game / "1_224p.mkv", 1),
        (game / "2_224p.mkv", 2),
    ]
    first, second = (read_soccernet_half(half, before=0.5) for half in halves)
    # The goal is in frame 18; this frame and the half second before it are critical.
    assert first.shots == (ShotAnnotation(0, 10), ShotAnnotation(10, 20, (14, 19)))
    assert (first.fps, first.video) == (10.0, game / "1_224p.mkv")
    assert second.shots == (ShotAnnotation(0, 20),)
    assert find_soccernet_halves(game) == halves


def test_smaller_video_is_preferred_and_untrimmed_video_never_used(game: Path) -> None:
    (game / "1_224p.mkv").rename(game / "1_HQ.mkv")
    assert [half.half for half in find_soccernet_halves(game)] == [2]
    counting_clip(game / "1_720p.mkv", 20)
    counting_clip(game / "2_720p.mkv", 20)
    assert [half.video.name for half in find_soccernet_halves(game)] == ["1_720p.mkv", "2_224p.mkv"]


def test_detected_shots_replace_camera_changes(game: Path) -> None:
    (game / "Labels-cameras.json").unlink()
    half = find_soccernet_halves(game)[0]
    with pytest.raises(InvalidArgumentError, match=r"no Labels-cameras\.json; find the shots with a detector"):
        read_soccernet_half(half)
    labels = read_soccernet_half(half, find_shots=lambda video: [(0, 4), (4, 20)])
    assert [(shot.start, shot.end) for shot in labels.shots] == [(0, 4), (4, 20)]
    assert labels.shots[1].critical == (4, 19)


def test_missing_labels_and_videos_are_reported(game: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"no Labels-v2\.json at any depth; choose the SoccerNet-v2 folder"):
        find_soccernet_halves(tmp_path / "empty")
    for half in (1, 2):
        (game / f"{half}_224p.mkv").unlink()
    with pytest.raises(DatasetError, match=r"has labels but no video; download 1_224p\.mkv"):
        find_soccernet_halves(tmp_path)

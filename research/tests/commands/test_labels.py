"""``vidkin labels soccernet``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import run
from tests.support.labelled import counting_clip
from vidkin.shots import ShotAnnotation, read_shot_annotations


def test_soccernet_labels_are_converted_and_unusable_halves_reported(tmp_path: Path) -> None:
    game = tmp_path / "league" / "season" / "game"
    counting_clip(game / "1_224p.mkv", 20)
    (game / "2_224p.mkv").write_bytes(b"broken")
    goal = {"gameTime": "1 - 00:01", "label": "Goal", "position": "1800", "visibility": "visible"}
    change = {"gameTime": "1 - 00:01", "label": "Main camera center", "position": "1000"}
    (game / "Labels-v2.json").write_text(json.dumps({"annotations": [goal]}))
    (game / "Labels-cameras.json").write_text(json.dumps({"annotations": [change]}))
    output = tmp_path / "labels.json"
    words = ("labels", "soccernet", tmp_path / "league", "-o", output, "--before", "0.5")
    found = run(*words, "-f", "json", status=1).json
    assert (found["videos"], found["shots"], found["critical"]) == (1, 2, 1)
    assert found["failed"][0]["video"].endswith("2_224p.mkv")
    (video,) = read_shot_annotations(output)
    assert video.shots == (ShotAnnotation(0, 10), ShotAnnotation(10, 20, (14, 19)))
    (game / "2_224p.mkv").unlink()
    assert "1 video, 2 shots, 1 of them critical" in run(*words).err
    corners = run(*words, "--event", "Corner", "-f", "json").json
    assert corners["critical"] == 0
    detected = run(*words, "--detector", "content", "-f", "json").json
    assert detected["shots"] >= 1
    assert "events must be among" in run(*words, "--event", "Dance", status=3).err

"""Tables of shots and curves, read back with standard tools."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.support.detections import detection
from vidkin.errors import MediaError
from vidkin.shots import write_shots_csv, write_stats_csv


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        return list(csv.DictReader(file))


def test_shots_csv_has_one_row_per_shot(tmp_path: Path) -> None:
    write_shots_csv([detection(), detection('other, "film".mp4', rate=25.0, critical=False)], tmp_path / "shots.csv")
    found = rows(tmp_path / "shots.csv")
    assert [row["file"] for row in found] == ["film.mp4"] * 3 + ['other, "film".mp4'] * 3
    assert found[1] == {
        "file": "film.mp4",
        "shot": "2",
        "start": "2.000000",
        "end": "4.500000",
        "start_frame": "20",
        "end_frame": "45",
        "start_timecode": "00:00:02:00",
        "end_timecode": "00:00:04:15",
        "kind": "hard",
        "confidence": "0.9000",
        "transition_start": "",
        "transition_end": "",
        "critical": "0.8000",
        "black": "",
    }
    assert (found[2]["transition_start"], found[2]["transition_end"]) == ("4.300000", "4.700000")
    assert found[5]["critical"] == ""
    assert found[5]["start_timecode"] == "00:00:01:20"


def test_undecodable_names_are_preserved(tmp_path: Path) -> None:
    name = b"film\xff.mp4".decode("utf-8", "surrogateescape")
    write_shots_csv([detection(name)], tmp_path / "shots.csv")
    assert rows(tmp_path / "shots.csv")[0]["file"] == name
    assert b"film\xff.mp4" in (tmp_path / "shots.csv").read_bytes()


def test_control_characters_in_names_are_replaced(tmp_path: Path) -> None:
    write_shots_csv([detection("a\x1b[2J.mp4")], tmp_path / "shots.csv")
    assert rows(tmp_path / "shots.csv")[0]["file"] == "a\ufffd[2J.mp4"


def test_stats_csv_has_one_row_per_frame(tmp_path: Path) -> None:
    write_stats_csv(detection(), tmp_path / "stats.csv")
    found = rows(tmp_path / "stats.csv")
    assert len(found) == 60
    assert found[0] == {"frame": "0", "time": "0.000000", "novelty": "", "cut": "", "transition": ""}
    assert found[20] == {
        "frame": "20",
        "time": "2.000000",
        "novelty": "0.9",
        "cut": "0.9000",
        "transition": "",
    }
    assert [row["frame"] for row in found if row["transition"]] == ["43", "44", "45", "46", "47"]
    assert [float(row["novelty"]) for row in found[43:48]] == [0.2, 0.3, 0.5, 0.3, 0.2]


def test_result_converts_to_plain_values() -> None:
    described = json.loads(json.dumps(detection().to_dict()))
    assert described["frames"] == 60
    assert described["frame_rate"] == 10.0
    assert [shot["start"] for shot in described["shots"]] == [0.0, 2.0, 4.5]
    assert described["cuts"][1] == {
        "time": 4.5,
        "frame": 45,
        "kind": "gradual",
        "confidence": 0.6,
        "start": 4.3,
        "end": 4.7,
        "start_frame": 43,
        "end_frame": 47,
        "kind_confidence": 1.0,
        "is_to_ground": False,
        "is_from_ground": False,
    }
    assert described["curve"]["name"] == "novelty"
    assert described["curve"]["values"][19] == 0.9
    assert "curve" not in detection().to_dict(short=True)


def test_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"no/shots.csv: cannot be written: there is no folder .*no; create it first"):
        write_shots_csv([detection()], tmp_path / "no" / "shots.csv")

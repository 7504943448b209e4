"""``vidkin labels merge``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import run
from vidkin.shots import ShotAnnotation, VideoAnnotation, read_shot_annotations, write_shot_annotations


def test_labels_of_annotators_are_merged(tmp_path: Path) -> None:
    files = []
    for number, critical in enumerate([(60, 80), (70, 90), None]):
        shots = (ShotAnnotation(0, 90, critical), ShotAnnotation(90, 120))
        files.append(tmp_path / f"{number}.json")
        write_shot_annotations(files[-1], [VideoAnnotation(tmp_path / "a.mp4", 25.0, shots)])
    output = tmp_path / "merged.json"
    told = run("labels", "merge", *files, "-o", output).err
    assert "1 video, 2 shots, 1 of them critical, by 3 annotators" in told
    (merged,) = read_shot_annotations(output)
    assert merged.shots == (ShotAnnotation(0, 90, (70, 80)), ShotAnnotation(90, 120))
    assert run("labels", "merge", *files, "-o", output, "-f", "json").json["annotators"] == 3

"""``vidkin shots`` on files with several videos, a time code, black or a late picture; and labels for ``evaluate``."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.cli.conftest import run
from tests.support.detections import cut_video
from tests.support.videos import encode, pan


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two videos of 40 frames with a time code; only the second one is cut, at frame 25."""
    path = tmp_path_factory.mktemp("double") / "front and rear.mov"
    films = [list(pan("coffee", 40)), [*pan("rocket", 25), *pan("chelsea", 15)]]
    with av.open(str(path), "w") as container:
        container.metadata["timecode"] = "10:00:00:00"
        streams = [container.add_stream("libx264", rate=25) for _ in films]
        for stream in streams:
            stream.width, stream.height, stream.pix_fmt = 192, 128, "yuv420p"
        for number in range(40):
            for stream, images in zip(streams, films, strict=True):
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(images[number]), format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, 25)
                container.mux(stream.encode(frame))
        for stream in streams:
            container.mux(stream.encode())
    return path


def test_another_video_of_a_file_is_read_and_split_by_its_number(double: Path, tmp_path: Path) -> None:
    words = ("shots", double, "--detector", "shotdetect")
    first = run(*words, "-o", f"split={tmp_path / 'front'}")
    assert ": 1 shot, 0 hard cuts in 0:01.6" in first.out
    assert first.err.startswith("Not in any piece: stream 1: another video; split it with --stream 1\n")
    other = run(*words, "--stream", "1", "-o", f"split={tmp_path / 'rear'}", "-o", f"thumbnails={tmp_path / 'images'}")
    assert ": 2 shots, 1 hard cut in 0:01.6" in other.out
    assert len(list((tmp_path / "rear").glob("*.mov"))) == len(list((tmp_path / "images").glob("*.jpg"))) == 2
    wrong = run(*words, "--stream", "7", status=3)
    assert "there is no video in stream 7; choose from 0, 1" in wrong.err


def test_time_code_counts_unless_zero_is_asked_for(double: Path, tmp_path: Path) -> None:
    words = ("shots", double, "--detector", "shotdetect", "--stream", "1", "-o", tmp_path / "film.edl")
    run(*words, "-o", f"split={tmp_path / 'coded'}")
    assert "10:00:01:00 10:00:01:15 00:00:01:00 00:00:01:15" in (tmp_path / "film.edl").read_text()
    run(*words, "-o", f"split={tmp_path / 'zero'}", "--timecode", "zero")
    assert "00:00:01:00 00:00:01:15 00:00:01:00 00:00:01:15" in (tmp_path / "film.edl").read_text()
    for folder, expected in (("coded", "10:00:01:00"), ("zero", None)):
        (piece,) = (tmp_path / folder).glob("*-002.mov")
        with av.open(str(piece)) as container:
            assert container.streams.video[0].metadata.get("timecode") == expected
    told = run(*words, "--timecode", "embeded", status=2).err
    assert "--timecode must be one of 'embedded', 'zero', got 'embeded'" in told


def test_black_is_listed_with_both_ends(tmp_path: Path) -> None:
    coffee, black = list(pan("coffee", 30)), np.zeros((128, 192, 3), np.uint8)
    film = encode(tmp_path / "film.mp4", [*coffee[:10], *[black] * 5, *coffee[10:]], rate=10)
    outcome = run("shots", film, "--detector", "shotdetect")
    assert "Black: 0:01.00 - 0:01.50." in outcome.err
    assert run("shots", film, "--detector", "shotdetect", "-f", "json").json["videos"][0]["black"][0]["end_frame"] == 15


@pytest.mark.thorough
def test_labels_that_shots_writes_measure_a_detector(tmp_path: Path) -> None:
    films = tmp_path / "films"
    films.mkdir()
    for name in ("a", "b"):
        cut_video(films / f"{name}.mp4")
    labels = tmp_path / "labels.json"
    assert "labels.json: the shots of 2 videos" in run("shots", films, "-d", "shotdetect", "-o", labels).err
    outcome = run("evaluate", "shotdetect", labels)
    assert "shotdetect, 2 videos" in outcome.out
    row = next(line for line in outcome.out.splitlines() if "all cuts" in line)
    assert [cell.strip() for cell in row.split("│")[2:-1]] == ["1.0000", "1.0000", "1.0000", "4", "0", "0"]
    assert "Critical clips are not measured" in outcome.err
    found = run("evaluate", "shotdetect", labels, "-f", "json").json
    assert (found["cuts"]["f1"], found["critical"], len(found["videos"])) == (1.0, None, 2)
    (films / "a.mp4").unlink()
    assert "a.mp4: there is no such file" in run("evaluate", "shotdetect", labels, status=1).err
    assert "--seed is for trained models" in run("evaluate", "shotdetect", labels, "--seed", "1", status=2).err
    refused = run("shots", films, "-d", "shotdetect", "-o", labels, "--min-length", "1", status=2).err
    assert "labels have every shot: use --merge-short with --min-length" in refused

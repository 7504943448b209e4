"""``vidkin shots`` on real videos: what it prints, writes and leaves as its exit status."""

from __future__ import annotations

import csv
import dataclasses
import errno
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Outcome
from tests.cli.conftest import run as run_program
from tests.support.detections import cut_video, detection
from tests.support.folders import made_in
from tests.support.videos import encode, pan
from vidkin._base import disk
from vidkin.cli.options import OutputFormat
from vidkin.cli.shots import ShotPrinter
from vidkin.errors import InvalidArgumentError
from vidkin.rendering import draw_curve
from vidkin.shots import DetectedCut, DetectedCuts, ExportedShots, build_detection


def run(*words: str | Path, status: int = 0, detector: str = "shotdetect") -> Outcome:
    return run_program("shots", "--detector", detector, *words, status=status)


def payloads(path: str | Path) -> Counter[bytes]:
    with av.open(str(path)) as container:
        return Counter(bytes(packet) for packet in container.demux() if packet.size)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 frames at 10 a second, cut at frames 20 and 45."""
    return cut_video(tmp_path_factory.mktemp("videos") / "día 山 [2].mp4")


def test_a_table_of_shots(film: Path) -> None:
    outcome = run(film)
    assert "día 山 [2].mp4: 3 shots, 2 hard cuts in 0:06.0 (shotdetect)" in outcome.out
    rows = [line.split("│") for line in outcome.out.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in row[1:-1]] for row in rows]
    assert [row[:6] for row in cells] == [
        ["1", "0:00.00", "0:02.00", "2.00", "0", ""],
        ["2", "0:02.00", "0:04.50", "2.50", "20", "hard"],
        ["3", "0:04.50", "0:06.00", "1.50", "45", "hard"],
    ]
    assert "critical" not in outcome.out


def test_a_narrow_terminal_folds_no_word_of_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    cuts = (DetectedCut(20), DetectedCut(45, "dissolve", 0.9, 40, 50))
    found = build_detection("film.mp4", "known", DetectedCuts(cuts), np.arange(60) / 10)
    ShotPrinter(OutputFormat.TABLE, None, are_several=False).add(found, ExportedShots())
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert ["3", "0:04.50", "0:06.00", "dissolve", "0:04.00 - 0:05.00"] in rows


def test_a_gradual_transition_is_told_from_when_to_when(capsys: pytest.CaptureFixture[str]) -> None:
    """A column and, in plain lines, words; a table without gradual transitions has none."""
    cuts = (DetectedCut(20), DetectedCut(45, "dissolve", 0.9, 40, 50))
    found = build_detection("film.mp4", "known", DetectedCuts(cuts), np.arange(60) / 10)
    for form in (OutputFormat.TABLE, OutputFormat.PLAIN):
        ShotPrinter(form, None, are_several=False).add(found, ExportedShots())
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert [row[5:8] for row in rows] == [["", "", ""], ["hard", "", "1.00"], ["dissolve", "0:04.00 - 0:05.00", "0.90"]]
    assert lines[-1] == "  3  0:04.50 - 0:06.00    dissolve  0:04.00 - 0:05.00  film.mp4"
    assert lines[-2].split() == ["2", "0:02.00", "-", "0:04.50", "hard", "film.mp4"]


def test_the_same_as_json(film: Path) -> None:
    (video,) = run(film, "-f", "json").json["videos"]
    assert video["path"] == str(film)
    assert [(shot["start"], shot["end"], shot["kind"]) for shot in video["shots"]] == [
        (0.0, 2.0, "start"),
        (2.0, 4.5, "hard"),
        (4.5, 6.0, "hard"),
    ]
    assert [cut["frame"] for cut in video["cuts"]] == [20, 45]
    assert (video["frames"], video["frame_rate"]) == (60, 10.0)
    assert (video["outputs"], video["thumbnails"], video["split"]) == ({}, [], None)


def test_at_most_so_many_shots(film: Path) -> None:
    outcome = run(film, "--limit", "1")
    assert sum(line.startswith("│") for line in outcome.out.splitlines()) == 1
    assert outcome.err == "2 more shots not shown.\n"


def test_every_kind_of_file(film: Path, tmp_path: Path) -> None:
    names = {
        "csv": "shots.csv",
        "edl": "cuts.edl",
        "otio": "cuts.otio",
        "chapters": "chapters.txt",
        "stats": "stats.csv",
        "plot": "curve.png",
    }
    options = [word for form, name in names.items() for word in ("-o", f"{form}={tmp_path / name}")]
    outcome = run(film, *options, "-o", f"thumbnails={tmp_path / 'pictures'}", "-o", f"split={tmp_path / 'pieces'}")
    assert sorted(path.name for path in made_in(tmp_path)) == sorted([*names.values(), "pictures", "pieces"])
    with (tmp_path / "shots.csv").open(newline="") as file:
        assert [row["start"] for row in csv.DictReader(file)] == ["0.000000", "2.000000", "4.500000"]
    assert "00:00:02:00 00:00:04:15" in (tmp_path / "cuts.edl").read_text()
    assert json.loads((tmp_path / "cuts.otio").read_text())["OTIO_SCHEMA"] == "Timeline.1"
    assert (tmp_path / "chapters.txt").read_text().startswith(";FFMETADATA1\n")
    assert len((tmp_path / "stats.csv").read_text().splitlines()) == 61
    assert [path.name for path in made_in(tmp_path / "pictures")] == [
        f"día 山 [2]-00{number}.jpg" for number in (1, 2, 3)
    ]
    for words in (
        "edit decision list",
        "OpenTimelineIO timeline",
        ": chapters",
        "as an image",
        ": 3 images",
    ):
        assert words in outcome.err


def test_a_part_is_named_by_frame_numbers_of_each_video(film: Path) -> None:
    (video,) = run(film, "--start", "15f", "--end", "50f", "-f", "json").json["videos"]
    assert (video["shots"][0]["start_frame"], video["shots"][-1]["end_frame"]) == (15, 50)
    outcome = run(film, "--start", "15g", status=2)
    assert "or a frame number (250f)" in " ".join(outcome.err.split())


def test_the_picture_has_a_red_dot_a_cut(film: Path, tmp_path: Path) -> None:
    run(film, "-o", f"plot={tmp_path / 'curve.png'}")
    with Image.open(tmp_path / "curve.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    red = np.argwhere(np.abs(pixels - np.array([214, 39, 40])).sum(-1) < 30)
    columns = np.unique(red[:, 1])
    groups = np.split(columns, np.flatnonzero(np.diff(columns) > 3) + 1)
    assert len(groups) == 2
    # The curve runs from 0.0 to 5.9 s, the time of the last frame; the dots stand at 2.0 and 4.5 s.
    blue = np.argwhere(np.abs(pixels - np.array([31, 119, 180])).sum(-1) < 60)
    left, right = blue[:, 1].min(), blue[:, 1].max()
    places = [(group.mean() - left) / (right - left) * 5.9 for group in groups]
    assert places == pytest.approx([2.0, 4.5], abs=0.05)


def test_transitions_and_critical_shots_have_colors_of_their_own(tmp_path: Path) -> None:
    """The dissolve over 4.3 to 4.7 s is a light red band, the shot from 2.0 to 4.5 s is orange at the foot."""
    draw_curve(detection(), tmp_path / "curve.png")
    with Image.open(tmp_path / "curve.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    pink = np.abs(pixels - np.array([249, 222, 223])).sum(-1) < 9
    band = np.flatnonzero(pink.sum(0) > 100)
    foot = np.argwhere(np.abs(pixels - np.array([255, 127, 14])).sum(-1) < 12)[:, 1]
    scale = (foot.max() - foot.min() + 1) / 2.5
    assert (band.max() - band.min() + 1) / scale == pytest.approx(0.4, abs=0.02)
    assert (band.min() - foot.min()) / scale == pytest.approx(2.3, abs=0.02)


def test_without_a_curve_there_is_nothing_to_draw(tmp_path: Path) -> None:
    without = dataclasses.replace(detection(), curve=None)
    with pytest.raises(InvalidArgumentError, match="detector by hand has no curve to draw"):
        draw_curve(without, tmp_path / "curve.png")
    assert list(tmp_path.iterdir()) == []


def test_pieces_hold_every_packet_and_tell_their_begin(tmp_path: Path) -> None:
    """Key frames every 8 frames, cuts at 20 and 45: pieces begin at 16 and 40, 0.4 and 0.5 s early."""
    images = [*pan("coffee", 20), *pan("rocket", 25), *pan("chelsea", 15)]
    film = encode(tmp_path / "film.mp4", images, options={"x264-params": "keyint=8:min-keyint=8:scenecut=0"})
    outcome = run(film, "-o", f"split={tmp_path / 'pieces'}", "--copy")
    assert "0.40 s" in outcome.out
    assert "0.50 s" in outcome.out
    split = run(film, "-o", f"split={tmp_path / 'pieces'}", "--copy", "-f", "json").json["videos"][0]["split"]
    assert [(piece["start"], piece["end"], piece["parts"]) for piece in split["pieces"]] == [
        (0.0, pytest.approx(1.6), [0]),
        (pytest.approx(1.6), pytest.approx(4.0), [1]),
        (pytest.approx(4.0), pytest.approx(6.0), [2]),
    ]
    assert sum((payloads(piece["path"]) for piece in split["pieces"]), Counter()) == payloads(film)
    assert sum(piece["packets"] for piece in split["pieces"]) == 60


def test_a_variable_frame_rate(tmp_path: Path) -> None:
    """Every second picture is held three times as long: frame 20 is on screen from 4.0 s on, frame 30 from 6.0 s."""
    times = np.cumsum([0.0, *([0.1, 0.3] * 20)])[:40]
    images = [*pan("coffee", 20), *pan("rocket", 10), *pan("chelsea", 10)]
    film = encode(tmp_path / "film.mp4", images, times=times.tolist())
    (video,) = run(film, "-f", "json").json["videos"]
    assert [cut["frame"] for cut in video["cuts"]] == [20, 30]
    assert [cut["time"] for cut in video["cuts"]] == pytest.approx([4.0, 6.0], abs=1e-3)


@pytest.mark.large
def test_several_videos_write_into_folders(film: Path, tmp_path: Path) -> None:
    """Two of them have the same name, in different folders."""
    (tmp_path / "more").mkdir()
    second = cut_video(tmp_path / "more" / film.name, seed=1)
    outcome = run(
        film,
        tmp_path / "more",
        "-o",
        f"csv={tmp_path / 'all.csv'}",
        "-o",
        f"edl={tmp_path / 'edl'}",
        "-o",
        f"plot={tmp_path / 'plots'}",
        "-o",
        f"thumbnails={tmp_path / 'pictures'}",
        "-f",
        "json",
    )
    assert [video["path"] for video in outcome.json["videos"]] == [str(film), str(second)]
    with (tmp_path / "all.csv").open(newline="") as file:
        assert Counter(row["file"] for row in csv.DictReader(file)) == {str(film): 3, str(second): 3}
    assert sorted(path.name for path in made_in(tmp_path / "edl")) == [
        "día 山 [2]-2.edl",
        "día 山 [2].edl",
    ]
    assert sorted(path.name for path in made_in(tmp_path / "plots")) == [
        "día 山 [2]-2.png",
        "día 山 [2].png",
    ]
    assert len(list((tmp_path / "pictures").glob("*.jpg"))) == 3
    assert len(list((tmp_path / "pictures" / "día 山 [2]-2").glob("*.jpg"))) == 3


@pytest.mark.large
def test_broken_videos_are_outcomes(film: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video at all")
    outcome = run(broken, film, tmp_path / "gone.mp4", status=1)
    assert "3 shots" in outcome.out
    assert "broken.mp4: this is text, not video" in outcome.err
    assert "gone.mp4: there is no such file" in outcome.err
    found = run(broken, film, "-f", "json", status=1).json
    assert [video["path"] for video in found["videos"]] == [str(film)]
    assert [failure["path"] for failure in found["broken"]] == [str(broken)]
    assert found["broken"][0]["cause"].startswith("this is text, not video")


def test_nothing_usable(tmp_path: Path) -> None:
    assert "there is no such file" in run(tmp_path / "gone.mp4", status=3).err
    (tmp_path / "empty").mkdir()
    assert "no videos in these folders" in run(tmp_path / "empty", status=3).err
    assert run(tmp_path / "gone.mp4", "-o", f"csv={tmp_path / 'x.csv'}", "-f", "json", status=3).json["outputs"] == {}
    assert not (tmp_path / "x.csv").exists()


def test_exports_that_fail_are_reported_and_the_others_are_written(tmp_path: Path) -> None:
    """A raw stream has no times to split by, and 10 frames a second have no drop-frame time code."""
    film = encode(tmp_path / "film.h264", pan("coffee", 20))
    outcome = run(
        film,
        "-o",
        f"split={tmp_path / 'pieces'}",
        "--copy",
        "-o",
        f"edl={tmp_path / 'film.edl'}",
        "--drop-frame",
        "-o",
        f"chapters={tmp_path / 'film.txt'}",
        status=1,
    )
    assert "its frames have no times, so it cannot be split" in outcome.err
    assert "frames per second for drop-frame time code, got" in outcome.err
    assert "1 shot" in outcome.out
    assert (tmp_path / "film.txt").exists()
    assert not (tmp_path / "film.edl").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "edl=no/cuts.edl"], "there is no folder"),
        (["-o", "csv=no/shots.csv"], "there is no folder"),
        (["-o", "plot=curve.mp3"], "curve.mp3: not an image format; choose a name that ends in"),
    ],
)
def test_invalid_targets_are_refused_before_anything_is_read(words: list[str], message: str) -> None:
    assert message in run("gone.mp4", *words, status=2).err


def test_exports_of_several_videos_need_a_folder(film: Path, tmp_path: Path) -> None:
    (tmp_path / "cuts.edl").touch()
    outcome = run(film, tmp_path / "other.mp4", "-o", f"edl={tmp_path / 'cuts.edl'}", status=2)
    assert "edl must be a folder for several videos, got the file" in outcome.err


def test_detectors_that_mean_nothing(film: Path) -> None:
    outcome = run(film, detector="canny", status=2)
    assert "'canny' is not a shot detector; choose from" in outcome.err
    for nothing in ("", str(film.parent)):
        outcome = run(film, detector=nothing, status=2)
        assert "choose from content, cuts" in outcome.err
        assert "from `vidkin train-shots`" in outcome.err
    twice = run(film, detector="shotdetect?threshold=9&threshold=75", status=2)
    assert "sets threshold twice" in twice.err
    assert "has no setting 'size'" in run(film, detector="shotdetect?size=3", status=2).err


def test_names_and_settings_of_detectors(film: Path) -> None:
    def cuts(detector: str) -> Any:
        return run(film, "-f", "json", detector=detector).json["videos"][0]["cuts"]

    assert [cut["frame"] for cut in cuts("content?min_scene_len=1")] == [20, 45]
    assert cuts("shotdetect?threshold=400") == []


@pytest.mark.parametrize("form", ["csv", "edl", "stats", "chapters"])
def test_a_video_is_never_written_over(form: str, tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    (tmp_path / "link.mp4").symlink_to(film)
    before = film.read_bytes()
    for target in (film, tmp_path / "link.mp4", tmp_path / "." / "film.mp4"):
        outcome = run(film, "-o", f"{form}={target}", status=2)
        assert "which is one of the videos; choose another name" in outcome.err
    assert film.read_bytes() == before


@pytest.mark.large
def test_a_piece_is_never_written_over_a_video(tmp_path: Path) -> None:
    """Cameras number their files as pieces are numbered."""
    first = cut_video(tmp_path / "film.mp4")
    second = cut_video(tmp_path / "film-001.mp4", seed=1)
    before = second.read_bytes()
    assert "film-001.mp4: would be overwritten" in run(first, "-o", f"split={tmp_path}", status=1).err
    other = tmp_path / "other"
    other.mkdir()
    third = cut_video(other / "film-002.mp4")
    whole = third.read_bytes()
    outcome = run(first, third, "-o", f"split={other}", status=1)
    assert "split would overwrite" in outcome.err
    assert second.read_bytes() == before
    assert third.read_bytes() == whole
    assert not (other / "film-001.mp4").exists()


def test_two_options_do_not_write_one_file(film: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.txt"
    outcome = run(film, "-o", f"csv={same}", "-o", f"edl={same}", status=2)
    assert "edl would overwrite" in outcome.err
    assert not same.exists()


@pytest.mark.large
def test_names_that_differ_in_case_alone_are_kept_apart(film: Path, tmp_path: Path) -> None:
    names = ("take.mp4", "TAKE.mkv")
    for name in names:
        (tmp_path / name).write_bytes(film.read_bytes())
    run(*(tmp_path / name for name in names), "-o", f"edl={tmp_path / 'edl'}")
    assert {path.name for path in made_in(tmp_path / "edl")} == {"take.edl", "TAKE-2.edl"}


def test_a_table_that_cannot_be_written_leaves_the_rest(
    film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows only when all is found: what was found is told all the same."""
    table, pipe = tmp_path / "shots.csv", tmp_path / "pipe"

    def refuse(operation: str, path: str, target: str = "") -> None:
        if path.endswith(".csv"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(disk, "before", refuse)
        outcome = run(film, "-o", f"csv={table}", "-f", "json", status=1)
    assert outcome.json["outputs"] == {}
    assert len(outcome.json["videos"][0]["shots"]) == 3
    assert [failure["path"] for failure in outcome.json["broken"]] == [str(table)]
    assert "No space left on device" in outcome.err
    os.mkfifo(pipe)
    assert "it is a device or a pipe, not a file" in run(film, "-o", f"csv={pipe}", status=2).err
    assert pipe.is_fifo()
    assert "csv must be a file, got the folder" in run(film, "-o", f"csv={tmp_path}", status=2).err


def test_every_failure_names_its_file_once(tmp_path: Path) -> None:
    film = encode(tmp_path / "film.h264", pan("coffee", 20))
    outcome = run(film, "-o", f"split={tmp_path / 'pieces'}", "--copy", status=1)
    assert outcome.err.count(str(film)) == 1


def test_a_name_as_long_as_names_can_be(film: Path, tmp_path: Path) -> None:
    long = tmp_path / f"{'x' * 246}.mp4"
    long.write_bytes(film.read_bytes())
    outcome = run(long, "-o", f"split={tmp_path / 'fits'}")
    assert "3 shots" in outcome.out
    assert len(list((tmp_path / "fits").glob("*.mp4"))) == 3
    longest = long.rename(tmp_path / f"{'x' * 251}.mp4")
    run(longest, "-o", f"thumbnails={tmp_path / 'pictures'}", "-o", f"edl={tmp_path / 'x.edl'}")
    # The names that we give leave room for what is added to them.
    pictures = [path.name for path in made_in(tmp_path / "pictures")]
    assert len(pictures) == 3
    assert all(len(name) <= 255 and name.startswith("x" * 190) for name in pictures)
    assert (tmp_path / "x.edl").exists()
    assert "the file cannot be reached" in run("x" * 300, status=3).err
    assert "cannot be written: File name too long" in run(film, "-o", f"edl={'y' * 300}", status=2).err


def test_drop_frame_needs_an_edl(film: Path) -> None:
    assert "--drop-frame needs --output FILE.edl" in run(film, "--drop-frame", status=2).err


def test_copy_needs_a_folder_to_split_into(film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--copy needs --output split=FOLDER" in run(film, "--copy", status=2).err
    # As a default it is for when videos are split.
    (tmp_path / "config.toml").write_text("[shots]\ncopy = true\n")
    monkeypatch.setenv("VIDKIN_CONFIG", str(tmp_path / "config.toml"))
    assert "3 shots" in run(film).out


def test_interrupted_it_begins_anew(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vidkin.shots.detect", interrupt)
    outcome = run(film, status=130)
    assert outcome.err == "Interrupted. Finished work is saved; run the same command again to start over.\n"


def test_types_and_a_contact_sheet(film: Path, tmp_path: Path) -> None:
    outcome = run(film, "--types", "fade,wipe", "-o", f"html={tmp_path / 'sheet.html'}")
    assert "1 shot, 0 hard cuts" in outcome.out
    assert "contact sheet" in outcome.err
    assert "Shots: 1, transitions: 0" in (tmp_path / "sheet.html").read_text()
    wrong = run(film, "--types", "zoom", status=2)
    assert "--types must be among hard, jump, gradual, dissolve, fade, wipe, got 'zoom'" in wrong.err


def test_pieces_images_and_lists_carry_the_same_numbers(film: Path, tmp_path: Path) -> None:
    """Shots take 2, 2.5 and 1.5 s: without the last one there are two, in every list."""
    words = [
        "--min-length",
        "1.8",
        "--template",
        "{shot:02d} of {shots} {start_frame}",
        "--image-format",
        "png",
    ]
    for option in ("split", "thumbnails", "csv", "edl"):
        words += ["-o", f"{option}={tmp_path / option}"]
    outcome = run(film, *words, "--images", "2")
    assert [path.name for path in made_in(tmp_path / "split")] == [
        "01 of 2 0.mp4",
        "02 of 2 20.mp4",
    ]
    assert [path.name for path in made_in(tmp_path / "thumbnails")] == [
        f"0{shot} of 2 {frame}-{image}.png" for shot, frame in ((1, 0), (2, 20)) for image in (1, 2)
    ]
    assert "2 shots of at least 1.8 s, 1 hard cut (shotdetect)" in outcome.out
    with (tmp_path / "csv").open(newline="") as file:
        assert [(row["shot"], row["start_frame"]) for row in csv.DictReader(file)] == [
            ("1", "0"),
            ("2", "20"),
        ]
    assert [line[:3] for line in (tmp_path / "edl").read_text().splitlines() if " V " in line] == [
        "001",
        "002",
    ]
    assert "2 shots, 1 hard cut in 0:06.0" in run(film, "--min-length", "1.8", "--merge-short").out
    merged = run(film, "--min-length", "1.8", "--merge-short", "-f", "json").json["videos"][0]["shots"]
    assert [(shot["start"], shot["end"]) for shot in merged] == [(0.0, 2.0), (2.0, 6.0)]


def test_a_part_is_split_exactly(film: Path, tmp_path: Path) -> None:
    """From 1.5 to 5.0 s: frames 15 to 49, with key frames every 5 frames."""
    outcome = run(film, "--start", "1.5", "--end", "0:05", "-o", f"split={tmp_path}", "--quality", "30", "-f", "json")
    pieces = outcome.json["videos"][0]["split"]["pieces"]
    assert [(piece["start"], piece["end"]) for piece in pieces] == [(1.5, 2.0), (2.0, 4.5), (4.5, 5.0)]
    for piece, count in zip(pieces, (5, 25, 5), strict=True):
        with av.open(piece["path"]) as container:
            assert sum(1 for _ in container.decode(video=0)) == count


def test_no_shot_is_long_enough(film: Path) -> None:
    outcome = run(film, "--min-length", "99", "--format", "plain")
    assert outcome.out == ""
    assert outcome.err == f"{film}: no shot is as long as --min-length\n"


def test_a_probability_that_is_none_is_named_as_on_the_command_line(film: Path) -> None:
    outcome = run(film, "--threshold", "1.5", status=2, detector="default")
    assert outcome.err == "Error: threshold must be above 0 and below 1, got 1.5\n"


def test_options_that_mean_nothing(film: Path) -> None:
    assert "--merge-short needs --min-length SECONDS" in run(film, "--merge-short", status=2).err
    assert "template has no field 'foo'; choose from name" in run(film, "--template", "{foo}", status=2).err
    wrong = run(film, "--image-format", "tiff", status=2)
    assert "image_format must be one of 'jpg', 'png', 'webp', got 'tiff'" in wrong.err
    assert "got --start 0:03 and --end 0:02" in run(film, "--start", "0:03", "--end", "0:02", status=2).err
    assert "got 0:03 and 10f" in run(film, "--start", "0:03", "--end", "10f", status=2).err
    assert "invalid time 'x'" in run(film, "--start", "x", status=2).err
    assert "has no threshold" in run(film, "--threshold", "3", detector="svd", status=2).err
    assert run(film, "--threshold", "400", "-f", "json").json["videos"][0]["cuts"] == []


@pytest.mark.large
def test_videos_of_one_name_pattern_get_folders(film: Path, tmp_path: Path) -> None:
    """Without the name of the video in the template pieces would overwrite each other."""
    second = cut_video(tmp_path / "second.mp4", seed=1)
    run(film, second, "-o", f"split={tmp_path / 'out'}", "--template", "{shot}")
    assert sorted(path.name for path in made_in(tmp_path / "out")) == [film.stem, "second"]
    assert len(made_in(tmp_path / "out" / "second")) == 3


def test_a_file_named_as_a_formula_is_text_in_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "=cmd|' C calc'!A0.mp4"
    cut_video(tmp_path / name)
    assert run(name, "-o", "csv=all.csv", "--format", "tsv").out.splitlines()[1].startswith(f"'{name}\t1\t")
    with (tmp_path / "all.csv").open(newline="") as file:
        assert {row["file"] for row in csv.DictReader(file)} == {f"'{name}"}
    assert run(name, "-f", "json").json["videos"][0]["path"] == name

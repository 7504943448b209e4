"""``vidkin recurring``: tables, files for players, straight from files and from an index."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import run
from tests.support.folders import made_in
from tests.support.seasons import OPENING, RATE, shots, write_season
from tests.support.videos import encode
from vidkin.media import read_frames


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("season")
    write_season(folder)
    return folder


@pytest.fixture(scope="module")
def index(season: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "c.vidkin"
    run("index", season, "--index", path, "--workers", "1")
    return path


def test_the_table_names_group_files_and_times(index: Path) -> None:
    out = run("recurring", "--index", index).out
    assert "A: opening, 0:06.5 long, in 2 of 2 files" in out
    assert "0:04.50" in out
    assert "0:11.00" in out
    assert "e2.mp4" in out


def test_formats_say_the_same(index: Path, season: Path, tmp_path: Path) -> None:
    (group,) = run("recurring", "--index", index, "-f", "json").json["groups"]
    assert group["kind"] == "opening"
    assert [one["path"] for one in group["occurrences"]] == [str(season / "e1.mp4"), str(season / "e2.mp4")]
    run("recurring", "--index", index, "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["start"]) for row in rows] == pytest.approx([4.5, 2.8])
    lines = run("recurring", "--index", index, "--format", "plain").out.splitlines()
    assert lines[0] == f"A  opening   0:04.50 - 0:11.00    {season / 'e1.mp4'}"
    assert run("recurring", "--index", index, "--format", "tsv").out.splitlines()[0].startswith("group\tkind\tpath")


def test_files_for_players_are_written_and_those_of_others_are_kept(index: Path, season: Path, tmp_path: Path) -> None:
    (season / "e2.edl").write_text("mine")
    try:
        words = ("recurring", "--index", index, "--write-edl", "-o", f"chapters={tmp_path / 'chapters'}")
        result = run(*words, "-o", tmp_path / "page.html", status=1)
        assert (season / "e1.edl").read_text() == "4.500\t11.000\t3\n"
        assert (season / "e2.edl").read_text() == "mine"
        # A viewer sees how it begins and ends.
        run(*words[:4], "--pad-start", "1.5", "--pad-end", "0.5", status=1)
        assert (season / "e1.edl").read_text() == "6.000\t10.500\t3\n"
        run(*words[:4], "--keep-first", status=1)
        assert (season / "e1.edl").read_text() == ""
        assert "e2.edl: was not written by vidkin" in result.err
        assert "<ChapterString>Opening" in (tmp_path / "chapters" / "e1.mp4.chapters.xml").read_text()
        assert (tmp_path / "page.html").read_text().count("<img ") == 10
    finally:
        (season / "e2.edl").unlink()
    assert run(*words).status == 0


def test_files_are_looked_at_without_an_index_and_split(season: Path, tmp_path: Path) -> None:
    words = ("recurring", season, "-o", f"parts={tmp_path / 'parts'}", "-f", "json")
    result = run(*words).json
    assert (result["index"], result["joined"]) == (None, [])
    names = sorted(path.name for path in made_in(tmp_path / "parts"))
    assert names == [
        *("e1-01-Part-1.mp4", "e1-02-Opening.mp4", "e1-03-Part-2.mp4"),
        *("e2-01-Part-1.mp4", "e2-02-Opening.mp4", "e2-03-Part-2.mp4"),
    ]
    assert [piece["start"] for piece in result["pieces"]] == pytest.approx([0.0, 4.5, 11.0, 0.0, 2.8, 9.3])


@pytest.mark.thorough
def test_each_file_is_written_without_what_recurs_exact_to_the_frame(season: Path, tmp_path: Path) -> None:
    words = ("recurring", season, "-o", f"rest={tmp_path / 'rest'}")
    assert f"Wrote {tmp_path / 'rest'}: 2 videos\n" in run(*words).err
    assert sorted(path.name for path in made_in(tmp_path / "rest")) == [
        *("e1-without-recurring.mp4", "e2-without-recurring.mp4"),
    ]
    for name, start, end in (("e1", 45, 110), ("e2", 28, 93)):
        whole = read_frames(season / f"{name}.mp4", rate=None).images.astype(int)
        left = read_frames(tmp_path / "rest" / f"{name}-without-recurring.mp4", rate=None).images
        expected = np.delete(whole, np.s_[start:end], axis=0)
        assert left.shape == expected.shape
        assert np.abs(left - expected).mean(axis=(1, 2, 3)).max() < 8
    first, second = run(*words, "-f", "json").json["joined"]
    assert (first["source"], first["frames"]) == (str(season / "e1.mp4"), 120)
    assert second["parts"] == [pytest.approx([0.0, 2.8]), pytest.approx([9.3, 18.5])]


def _placed(folder: Path, season: Path, *names: str) -> Path:
    for name, source in zip(names, ("e1.mp4", "e2.mp4"), strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(season / source, folder / name)
    return folder


@pytest.mark.thorough
def test_episodes_named_alike_get_files_of_their_own(season: Path, tmp_path: Path) -> None:
    videos = _placed(tmp_path / "videos", season, "s1/e1.mp4", "s2/e1.mp4")
    run(
        "recurring",
        videos,
        "-o",
        f"recurring={tmp_path / 'parts'}",
        "-o",
        f"chapters={tmp_path / 'chapters'}",
    )
    names = sorted(path.name for path in made_in(tmp_path / "parts"))
    assert names == ["e1 (2)-01-Opening.mp4", "e1-01-Opening.mp4"]
    names = sorted(path.name for path in (tmp_path / "chapters").glob("*.xml"))
    assert names == ["e1 (2).mp4.chapters.xml", "e1.mp4.chapters.xml"]


@pytest.mark.thorough
def test_two_videos_that_would_share_a_skip_list_get_none(season: Path, tmp_path: Path) -> None:
    """It has the name of the video but for the ending, and their openings begin elsewhere."""
    outcome = run("recurring", _placed(tmp_path, season, "e1.mp4", "e1.mkv"), "--write-edl", status=1)
    assert "needs a different skip list than another video with this name" in " ".join(outcome.err.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e1.mkv", "e1.mp4"]


@pytest.mark.thorough
def test_one_video_and_nothing_in_common_are_sentences(tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", shots(("coffee", 0, 30)))
    assert "There is only one video; --inside" in run("recurring", tmp_path).out
    encode(tmp_path / "b.mp4", shots(("rocket", 0, 30)))
    assert run("recurring", tmp_path).out == "Nothing recurs in 2 videos.\n"


def test_one_video_in_which_nothing_recurs_is_told_to_be_one(tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", shots(("coffee", 0, 30)))
    assert run("recurring", tmp_path, "--inside").out == "Nothing recurs in 1 video.\n"


@pytest.mark.thorough
def test_within_looks_at_the_videos_of_one_folder(season: Path, tmp_path: Path) -> None:
    """Another season of the index has the opening, too."""
    videos = _placed(tmp_path / "videos", season, "s1/e1.mp4", "s1/e2.mp4")
    (videos / "s2").mkdir()
    encode(videos / "s2" / "e3.mp4", shots(("grass", 3, 30), *OPENING, ("brick", 7, 40)), rate=RATE)
    words = ("recurring", "--index", tmp_path / "c.vidkin")
    run("index", videos, "--index", tmp_path / "c.vidkin", "--workers", "1")
    assert "in 3 of 3 files" in run(*words).out
    out = run(*words, "--only", videos / "s1").out
    assert "A: opening, 0:06.5 long, in 2 of 2 files" in out
    assert "e3.mp4" not in out
    assert run(*words, "--only", videos / "s2").out.startswith("There is only one video;")


@pytest.mark.thorough
def test_a_recap_is_told_as_footage_of_an_earlier_file(tmp_path: Path) -> None:
    pieces = ("coffee", 1, 22), ("rocket", 2, 45)
    earlier = shots(("astronaut", 0, 73), pieces[0], ("astronaut", 3, 60), pieces[1], ("chelsea", 0, 30))
    encode(tmp_path / "e1.mp4", earlier, rate=RATE)
    encode(tmp_path / "e2.mp4", shots(("brick", 1, 15), *pieces, ("grass", 0, 80)), rate=RATE)
    result = run("recurring", tmp_path).out
    assert "A: recap, 0:06.7 long, of footage in 1 earlier file" in result
    assert result.count("repeated in the recap") == 2
    (group,) = run("recurring", tmp_path, "-f", "json").json["groups"]
    assert [(Path(one["path"]).name, one["source"]) for one in group["occurrences"]] == [
        *(("e2.mp4", False), ("e1.mp4", True), ("e1.mp4", True)),
    ]


def test_options_that_do_not_fit_are_usage_errors(index: Path, season: Path) -> None:
    assert "must be one of .csv, .json, .html" in run("recurring", "--index", index, "-o", "x", status=2).err
    assert "not both" in run("recurring", season, "--only", season, status=2).err
    assert "a cluster needs an index that it sees" in run("recurring", season, "--stand-in", "here", status=2).err
    assert (
        "longest must be at least shortest"
        in run(*("recurring", "--index", index, "--shortest", "9", "--longest", "5"), status=2).err
    )


def test_a_folder_without_videos_is_an_error(tmp_path: Path) -> None:
    assert f"{tmp_path / 'gone'}: " in run("recurring", tmp_path / "gone", status=3).err
    (tmp_path / "empty").mkdir()
    assert "no videos found; name folders or files with videos" in run("recurring", tmp_path / "empty", status=3).err

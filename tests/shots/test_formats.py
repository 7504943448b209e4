"""The registry of formats: selection by file name, formats of other packages, and the table in the guide."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.detections import cut_video
from tests.support.folders import made_in
from vidkin.errors import InvalidArgumentError
from vidkin.shots import SHOT_FORMATS, find_shot_format, match_shot_format, shot_format_names

PLUGIN = """
from vidkin.shots import ShotFormat

def write_starts(detection, path):
    path.write_text("\\n".join(f"{shot.start:g}" for shot in detection.shots))

STARTS = ShotFormat(".starts", write_starts, "seconds of cuts", "text/plain")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that provides the format ``starts``, on the import path of this process."""
    folder = tmp_path / "packages"
    (folder / "starts-1.0.dist-info").mkdir(parents=True)
    (folder / "starts_of_shots.py").write_text(PLUGIN)
    about = folder / "starts-1.0.dist-info"
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: starts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[vidkin.shot_formats]\nstarts = starts_of_shots:STARTS\n")
    monkeypatch.syspath_prepend(folder)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("cuts.edl", "edl"),
        ("a/CUTS.EDL", "edl"),
        ("film.otio", "otio"),
        ("film.chapters.txt", "chapters"),
        ("film.csv", "csv"),
        ("film.stats.csv", "stats"),
        ("sheet.html", "html"),
        ("curve.png", "plot"),
        ("curve.svg", "plot"),
    ],
)
def test_extension_of_a_file_selects_its_format(file: str, name: str) -> None:
    assert match_shot_format(file) == name


def test_error_for_an_unknown_extension_lists_all_extensions() -> None:
    message = (
        r"^film\.mp3: the ending chooses the format and must be one of \.edl, \.scenes\.edl, \.fcpxml, .*\.svg, \.pdf$"
    )
    with pytest.raises(InvalidArgumentError, match=message):
        match_shot_format("film.mp3")
    with pytest.raises(InvalidArgumentError, match="'tiff' is not a format of shots; choose from chapters, csv"):
        find_shot_format("tiff")


def test_every_format_has_a_description_and_a_media_type() -> None:
    assert shot_format_names() == (*SHOT_FORMATS, "plot")
    for name in shot_format_names():
        row = find_shot_format(name)
        assert row.label != "file"
        assert re.fullmatch(r"(text|application|image)/[a-z]+", row.media_type)


def test_guide_lists_all_formats() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "shots.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (`\..*?) \| (.+?) \|$", guide, flags=re.MULTILINE)
    expected = []
    for name in shot_format_names():
        row = find_shot_format(name)
        endings = row.suffixes if name == "stats" else (row.suffix, *row.suffixes)
        expected.append((name, ", ".join(f"`{ending}`" for ending in endings), row.label))
    assert rows == expected


@pytest.mark.usefixtures("package")
def test_format_of_another_package_is_selected_by_its_extension(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    target = tmp_path / "film.starts"
    outcome = run("shots", "--detector", "shotdetect", film, "-o", target)
    assert target.read_text() == "0\n2\n4.5"
    assert "film.starts: seconds of cuts" in outcome.err


@pytest.mark.usefixtures("package")
def test_format_of_another_package_can_write_a_folder(tmp_path: Path) -> None:
    films = [cut_video(tmp_path / f"{name}.mp4") for name in ("one", "two")]
    outcome = run("shots", "-d", "shotdetect", *films, "--workers", "1", "-f", "json", "-o", f"starts={tmp_path}/s")
    assert sorted(path.name for path in made_in(tmp_path / "s")) == ["one.starts", "two.starts"]
    assert outcome.json["videos"][0]["outputs"] == {"starts": str(tmp_path / "s" / "one.starts")}


def test_format_selected_by_name_or_by_extension_writes_the_same_bytes(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    files = {
        "edl": "a.edl",
        "otio": "a.otio",
        "chapters": "a.chapters.txt",
        "csv": "a.csv",
        "stats": "a.stats.csv",
        "html": "a.html",
        "plot": "a.png",
    }
    for folder in ("named", "by_ending"):
        (tmp_path / folder).mkdir()
    named = [word for name, file in files.items() for word in ("-o", f"{name}={tmp_path / 'named' / file}")]
    by_ending = [word for file in files.values() for word in ("-o", tmp_path / "by_ending" / file)]
    for words in (named, by_ending):
        run("shots", "--detector", "shotdetect", film, *words)
    for file in files.values():
        assert (tmp_path / "named" / file).read_bytes() == (tmp_path / "by_ending" / file).read_bytes()
    assert json.loads((tmp_path / "by_ending" / "a.otio").read_text())["OTIO_SCHEMA"] == "Timeline.1"


def test_output_has_one_file_per_format(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    words = ("shots", "--detector", "shotdetect", film)
    twice = run(*words, "-o", f"edl={tmp_path / 'a.edl'}", "-o", tmp_path / "b.edl", status=2)
    assert "--output must name one file of a format" in twice.err
    assert "the ending chooses the format" in run(*words, "-o", "film.mov", status=2).err
    assert "--drop-frame needs --output FILE.edl" in run(*words, "--drop-frame", status=2).err


def test_help_shows_output_and_hides_rare_options() -> None:
    usage = run("shots", "--help").out
    shown = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", usage, flags=re.MULTILINE))
    assert {"--output", "--detector"} <= shown
    assert not shown & {"--template", "--image-size", "--drop-frame"}
    assert len(shown) <= 17

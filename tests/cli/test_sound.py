"""Sound on the command line: rules of a score, and what a sound that is too short is answered."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import run
from tests.support.sounds import RATE, tune, write_sounds


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tune under two photographs, a video without sound, and a second of another tune."""
    folder = tmp_path_factory.mktemp("sounds")
    write_sounds(folder / "rocket.mp4", [tune(6, seed=1)], pictures="rocket")
    write_sounds(folder / "coffee.mp4", [tune(6, seed=1)], pictures="coffee")
    write_sounds(folder / "quiet.mp4", [], pictures="chelsea")
    write_sounds(folder / "silent.mp4", [np.zeros(6 * RATE, np.float32)], pictures="chelsea")
    write_sounds(folder / "short.wav", [tune(1, seed=5)], codec="pcm_s16le")
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize(("by", "least", "most"), [("picture", 0, 0.2), ("sound", 0.9, 1), ("both", 0, 0.2)])
def test_the_score_of_a_pair_follows_the_rule(sounds: Path, by: str, least: float, most: float) -> None:
    words = ("match", sounds / "rocket.mp4", sounds / "coffee.mp4", "--index", sounds / "none", "--by", by)
    found = run(*words, "-f", "json").json
    assert least <= found["score"] <= most
    assert (found["by"], found["picture_score"] < 0.2, found["sound"] > 0.9) == (by, True, True)


def test_a_pair_without_sound_has_no_score_by_it(sounds: Path) -> None:
    words = ("match", sounds / "rocket.mp4", sounds / "quiet.mp4", "--index", sounds / "none", "--by", "either")
    said = " ".join(run(*words, status=2).err.split())
    assert "--by either needs the sound of both files, and one has none" in said
    assert "add sound with `vidkin index PATH --sound`" in said


def test_a_silent_track_has_no_score_and_is_said_to_be_silent(sounds: Path) -> None:
    words = ("match", sounds / "rocket.mp4", sounds / "silent.mp4", "--index", sounds / "none")
    assert f"Sound: {sounds / 'silent.mp4'} is silent" in run(*words).out.replace("\n", "")
    assert run(*words, "-f", "json").json["sound"] is None
    assert "one has none or is silent" in " ".join(run(*words, "--by", "both", status=2).err.split())


def test_a_second_of_sound_that_is_not_found_is_said_to_be_short(sounds: Path) -> None:
    run("index", sounds / "rocket.mp4", "--index", sounds / "i.vidkin", "--workers", "1")
    outcome = run("search", sounds / "short.wav", "--index", sounds / "i.vidkin")
    assert "nothing similar found" in outcome.out
    assert "Its sound lasts 1.0 s; at least 3 s are needed to match reliably." in " ".join(outcome.err.split())


@pytest.mark.thorough
def test_the_list_of_videos_says_what_sound_a_file_has(tmp_path: Path) -> None:
    """Two tracks of which a player plays the first, silence, too little of it, none at all, and nothing to say."""
    write_sounds(
        tmp_path / "a two.mkv", [tune(4, seed=1), tune(4, seed=2)], pictures="rocket", languages=["eng", "fra"]
    )
    write_sounds(tmp_path / "b silent.mkv", [np.zeros(4 * RATE, np.float32)], pictures="coffee")
    write_sounds(tmp_path / "c short.mkv", [tune(2, seed=3)], pictures="chelsea")
    write_sounds(tmp_path / "d none.mkv", [], pictures="camera")
    write_sounds(tmp_path / "e usual.mkv", [tune(4, seed=4)], pictures="astronaut")
    run("index", tmp_path, "--index", tmp_path / "i.vidkin", "--workers", "1")
    lines = run("info", "--videos", "--index", tmp_path / "i.vidkin", "--format", "tsv").out.splitlines()
    assert [line.split("\t")[-1] for line in lines] == [
        "sound",
        "2 tracks: eng (default), fra",
        "silence",
        "only 2.0 s of sound; 3 s are needed to match reliably",
        "no sound",
        "",
    ]
    files = run("info", "--videos", "--index", tmp_path / "i.vidkin", "-f", "json").json["files"]
    assert [len(file["sound"]) for file in files] == [2, 1, 1, 0, 1]
    assert [(track["language"], track["is_default"]) for track in files[0]["sound"]] == [("eng", True), ("fra", False)]
    assert "2 tracks: eng (default), fra" in " ".join(
        run("info", "--videos", "--index", tmp_path / "i.vidkin").out.split()
    )
    # The second track is searched for as the first one is.
    for seed in (1, 2):
        song = write_sounds(tmp_path / f"song {seed}.m4a", [tune(4, seed=seed)])
        found = run("search", song, "--index", tmp_path / "i.vidkin", "-f", "json").json["matches"]
        assert (Path(found[0]["path"]).name, found[0]["sound"] > 0.7) == ("a two.mkv", True)
        (line, *_) = run("search", song, "--index", tmp_path / "i.vidkin", "-f", "plain").out.splitlines()
        assert re.fullmatch(r"\d\.\d\d  0:0\d\.\d - 0:0\d\.\d +\S.*a two\.mkv", line), line


@pytest.mark.thorough
def test_a_file_with_damaged_sound_says_so_and_its_pictures_are_searched_as_usual(tmp_path: Path) -> None:
    whole = write_sounds(tmp_path / "whole.mkv", [tune(6, seed=1)], pictures="rocket", codec="libmp3lame")
    content = whole.read_bytes()
    half = len(content) // 2
    # Every sync word of MP3 in the second half becomes zeros.
    damaged_half = content[half:].replace(b"\xff\xfb", b"\x00\x00").replace(b"\xff\xf3", b"\x00\x00")
    (tmp_path / "damaged.mkv").write_bytes(content[:half] + damaged_half)
    run("index", tmp_path, "--index", tmp_path / "i.vidkin", "--workers", "1")
    files = run("info", "--videos", "--index", tmp_path / "i.vidkin", "-f", "json").json["files"]
    (damaged,) = (file for file in files if file["path"].endswith("damaged.mkv"))
    assert "its sound is damaged" in damaged["damage"]
    found = run("search", whole, "--index", tmp_path / "i.vidkin", "-f", "json").json["matches"]
    scores = {Path(match["path"]).name: (match["picture"], match["sound"]) for match in found}
    assert scores["damaged.mkv"][0] > 0.9
    assert scores["damaged.mkv"][1] > 0.7

"""Sound on the command line: rules of a score, and what a sound that is too short is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.sounds import tune, write_sounds


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tune under two photographs, a video without sound, and a second of another tune."""
    folder = tmp_path_factory.mktemp("sounds")
    write_sounds(folder / "rocket.mp4", [tune(6, seed=1)], pictures="rocket")
    write_sounds(folder / "coffee.mp4", [tune(6, seed=1)], pictures="coffee")
    write_sounds(folder / "quiet.mp4", [], pictures="chelsea")
    write_sounds(folder / "short.wav", [tune(1, seed=5)], codec="pcm_s16le")
    return folder


@pytest.mark.parametrize(("by", "least", "most"), [("picture", 0, 0.2), ("sound", 0.9, 1), ("both", 0, 0.2)])
def test_the_score_of_a_pair_follows_the_rule(sounds: Path, by: str, least: float, most: float) -> None:
    words = ("match", sounds / "rocket.mp4", sounds / "coffee.mp4", "--index", sounds / "none", "--by", by)
    found = run(*words, "--json").json
    assert least <= found["score"] <= most
    assert (found["by"], found["picture_score"] < 0.2, found["sound"] > 0.9) == (by, True, True)


def test_a_pair_without_sound_has_no_score_by_it(sounds: Path) -> None:
    words = ("match", sounds / "rocket.mp4", sounds / "quiet.mp4", "--index", sounds / "none", "--by", "either")
    said = " ".join(run(*words, status=2).err.split())
    assert "--by either needs the sound of both files, and one has none" in said
    assert "`vidkin index PATH --sound` adds it" in said


def test_a_second_of_sound_that_is_not_found_is_said_to_be_short(sounds: Path) -> None:
    run("index", sounds / "rocket.mp4", "--index", sounds / "i.vidkin", "--workers", "1")
    outcome = run("search", sounds / "short.wav", "--index", sounds / "i.vidkin")
    assert "nothing similar found" in outcome.out
    assert "Its sound lasts 1.0 s; from 3 s on, a recording is found surely." in " ".join(outcome.err.split())

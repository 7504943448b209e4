"""``vidkin coverage``: by an index, by a folder that is in none, and as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.videos import encode, pan

SIZE = {"width": 160, "height": 120}


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source of 6 s, and a film that shows its seconds 1 to 5 and then 2 s of something else."""
    made = tmp_path_factory.mktemp("coverage")
    coffee = list(pan("coffee", 60, **SIZE))
    (made / "sources").mkdir()
    encode(made / "sources" / "coffee.mp4", coffee, rate=10)
    encode(made / "film.mp4", [*coffee[10:50], *pan("brick", 20, **SIZE)], rate=10)
    return made


def test_a_folder_that_is_in_no_index_is_read_for_the_answer(videos: Path, tmp_path: Path) -> None:
    edl = tmp_path / "sources.edl"
    words = ("coverage", videos / "film.mp4", videos / "sources", "--index", tmp_path / "none", "--output", edl)
    found = run(*words, "-f", "json").json
    (piece,) = found["sources"]
    assert Path(piece["path"]).name == "coffee.mp4"
    assert (piece["start"], piece["end"], piece["other_start"]) == pytest.approx((0.0, 4.0, 1.0), abs=0.21)
    assert found["share"] == pytest.approx(4 / 6, abs=0.05)
    assert edl.read_text().splitlines()[4] == "* FROM CLIP NAME: coffee.mp4"
    assert not (tmp_path / "none").exists()


def test_an_output_of_an_unknown_kind_is_refused_before_any_work(videos: Path, tmp_path: Path) -> None:
    outcome = run("coverage", videos / "film.mp4", "--output", tmp_path / "c.mov", status=2)
    assert "must be one of .csv, .json, .edl" in outcome.err


def test_a_folder_that_is_in_no_index_is_not_read_for_a_cluster(videos: Path, tmp_path: Path) -> None:
    words = ("coverage", videos / "film.mp4", videos / "sources", "--index", tmp_path / "none", "--stand-in", "here")
    assert "a cluster needs an index; add the videos of" in run(*words, status=2).err


def test_an_index_answers_in_words(videos: Path, tmp_path: Path) -> None:
    index = tmp_path / "c.vidkin"
    run("index", videos / "sources", "--index", index, "--workers", "1")
    shown = run("coverage", videos / "film.mp4", "--index", index).out
    assert "coffee.mp4" in shown
    assert "This file alone has" in shown

"""Commands write nothing over what somebody else made: an option that takes a file may get any name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Library, run
from tests.support.detections import cut_video
from vidkin._base.outputs import LIST_FILE

EXPANDED = "the shell has probably expanded a pattern such as *.mp4"


def films(folder: Path) -> list[Path]:
    """Names as a shell puts them for ``*.mp4``; no command comes to reading them."""
    paths = [folder / f"e{number}.mp4" for number in (1, 2, 3)]
    for path in paths:
        path.write_bytes(b"recorded once")
    return paths


@pytest.mark.parametrize(
    "words",
    [
        ("embed", "-o"),
        ("whiten", "-o"),
    ],
)
def test_an_option_that_swallows_the_first_name_of_a_pattern(tmp_path: Path, words: tuple[str, ...]) -> None:
    paths = films(tmp_path)
    outcome = run(*words, *paths, status=2)
    assert "e1.mp4: would be overwritten" in outcome.err.replace("\n", " ")
    assert EXPANDED in outcome.err.replace("\n", " ")
    assert [path.read_bytes() for path in paths] == [b"recorded once"] * 3


@pytest.mark.parametrize("option", ["csv=", "html=", "--plan"])
def test_no_option_of_duplicates_writes_over_a_video_or_into_an_index(
    library: Library, tmp_path: Path, option: str
) -> None:
    (film, *_) = films(tmp_path)
    words = ("duplicates", "--index", library.index)

    def run_with(path: Path) -> str:
        named = (option, path) if option == "--plan" else ("-o", f"{option}{path}")
        return run(*words, *named, status=2).err

    assert EXPANDED in run_with(film)
    assert film.read_bytes() == b"recorded once"
    manifest = library.index / "collection.json"
    before = manifest.read_bytes()
    for path in (manifest, library.index / "new.json"):
        assert "is in the folder of the index" in run_with(path)
    assert manifest.read_bytes() == before
    assert not (library.index / "new.json").exists()


def test_a_video_that_the_command_reads_is_no_output(tmp_path: Path) -> None:
    first, second, _ = films(tmp_path)
    assert "is also an input" in run("recurring", first, second, "-o", f"csv={second}", status=2).err
    assert "is also an input" in run("embed", first, second, "-o", second, status=2).err
    assert second.read_bytes() == b"recorded once"


def test_a_second_run_replaces_the_first_and_another_index_does_not(library: Library, tmp_path: Path) -> None:
    table, page = tmp_path / "copies.csv", tmp_path / "copies.html"
    words = ("duplicates", "-o", table, "-o", page)
    for _ in range(2):
        run(*words, "--index", library.index)
    assert "coffee.mp4" in table.read_text()
    other = tmp_path / "other.vidkin"
    shutil.copytree(library.index, other)
    outcome = run(*words, "--index", other, status=2)
    assert f"made it from another source (duplicates as csv of {library.index})" in outcome.err.replace("\n", " ")
    outcome = run("recurring", "--index", library.index, "-o", table, status=2)
    assert "made it from another source" in outcome.err
    with table.open("a") as file:
        file.write("a remark of mine\n")
    outcome = run(*words, "--index", library.index, status=2)
    assert "it changed since vidkin made it; choose another name, or move the file away first" in outcome.err.replace(
        "\n", " "
    )
    assert table.read_text().endswith("a remark of mine\n")


@pytest.mark.thorough
def test_a_plan_that_removed_files_stays_until_they_are_back(library: Library, tmp_path: Path) -> None:
    folder, index, plan = tmp_path / "videos", tmp_path / "c.vidkin", tmp_path / "plan.json"
    shutil.copytree(library.folder, folder)
    shutil.copy(folder / "rocket.mp4", folder / "rocket again.mp4")
    run("index", folder, "--index", index, "--workers", "1")
    words = ("duplicates", "--index", index, "--plan", plan)
    run(*words)
    run(*words)  # nothing was done with it
    planned = json.loads(plan.read_text())
    assert planned["groups"]
    run("apply", plan, "--move-to", tmp_path / "away")
    outcome = run(*words, status=2)
    assert "is a plan that moved 1 file, and `vidkin apply --undo` needs it" in " ".join(outcome.err.split())
    before = plan.read_bytes()
    plan.rename(tmp_path / "elsewhere.json")  # the log would be of another plan
    assert "is a plan that moved 1 file" in " ".join(run(*words, status=2).err.split())
    (tmp_path / "elsewhere.json").rename(plan)
    assert plan.read_bytes() == before
    run("apply", plan, "--undo")
    run(*words)


def test_a_list_of_shots_is_not_written_over_a_film(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    (other, *_) = films(tmp_path)
    assert EXPANDED in run("shots", film, "-o", f"csv={other}", status=2).err
    for name in ("edl", "chapters", "stats", "html"):
        assert "would be overwritten" in run("shots", film, "-o", f"{name}={other}", status=2).err
    assert other.read_bytes() == b"recorded once"


@pytest.mark.thorough
def test_two_films_of_one_name_do_not_share_files(tmp_path: Path) -> None:
    """As cameras name them: MOVI0001.mp4 is on every card."""
    for seed, camera in enumerate("ab"):
        (tmp_path / camera).mkdir()
        cut_video(tmp_path / camera / "MOVI0001.mp4", seed=seed)
    clips, lists = tmp_path / "clips", tmp_path / "lists"
    lists.mkdir()
    words = ("-o", f"split={clips}", "-o", f"thumbnails={clips}", "-o", f"edl={lists}")
    run("shots", tmp_path / "a" / "MOVI0001.mp4", *words)
    made = {path.name: path.read_bytes() for path in (*clips.iterdir(), *lists.iterdir())}
    assert {"MOVI0001-001.mp4", "MOVI0001-001.jpg", "MOVI0001.edl"} <= set(made)
    outcome = run("shots", tmp_path / "b" / "MOVI0001.mp4", *words, status=1)
    assert outcome.err.replace("\n", " ").count("made it from another source") == 3
    assert {path.name: path.read_bytes() for path in (*clips.iterdir(), *lists.iterdir())} == made
    # Again, the first, from another folder of its own: pieces of the same film take the place of its pieces.
    run("shots", tmp_path / "a" / "MOVI0001.mp4", *words)
    assert {path.name for path in clips.iterdir()} | {"MOVI0001.edl"} == set(made)


def test_a_film_of_somebody_is_not_replaced_by_a_piece(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "film.mp4")
    clips = tmp_path / "clips"
    clips.mkdir()
    for name in ("film-002.mp4", "film-002.jpg"):
        (clips / name).write_text("mine")
    for words in (("-o", f"split={clips}"), ("-o", f"split={clips}", "--copy"), ("-o", f"thumbnails={clips}")):
        outcome = run("shots", film, *words, status=1)
        assert "would be overwritten; choose another name" in outcome.err.replace("\n", " ")
    assert {path.name: path.read_text() for path in clips.iterdir()} == {"film-002.mp4": "mine", "film-002.jpg": "mine"}


def test_the_next_card_of_a_camera_is_another_source(tmp_path: Path) -> None:
    film = cut_video(tmp_path / "MOVI0001.mp4")
    run("shots", film, "-o", f"split={tmp_path / 'clips'}")
    film.unlink()
    cut_video(film, seed=1)
    assert "made it from another source" in run("shots", film, "-o", f"split={tmp_path / 'clips'}", status=1).err


@pytest.mark.thorough
def test_a_table_of_the_same_folder_may_grow(tmp_path: Path) -> None:
    folder, table = tmp_path / "films", tmp_path / "shots.csv"
    folder.mkdir()
    for name in ("a.mp4", "b.mp4"):
        cut_video(folder / name)
        run("shots", folder, "-o", table)
        assert name in table.read_text()
    run("shots", folder / "a.mp4", "-o", table, status=2)
    assert "b.mp4" in table.read_text()
    assert (tmp_path / LIST_FILE).is_file()

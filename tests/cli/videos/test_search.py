"""``vidkin search``, ``match`` and ``duplicates``."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Library, run
from tests.support.videos import encode, pan


def test_search_gives_the_video_and_the_time(library: Library) -> None:
    found = run("search", library.clip, "--index", library.index, "--json").json
    assert found["query"] == str(library.clip)
    first, second = found["matches"][:2]
    assert {Path(first["path"]).name, Path(second["path"]).name} == {"coffee.mp4", "copy of coffee.mp4"}
    assert (first["rank"], first["mirrored"]) == (1, False)
    assert first["score"] >= 0.7
    segment = first["segments"][0]
    assert segment["target_start"] == pytest.approx(4.0, abs=1.0)
    assert segment["target_end"] == pytest.approx(9.0, abs=1.0)
    assert all(match["score"] < 0.3 for match in found["matches"][2:])


def test_search_shows_a_table(library: Library) -> None:
    outcome = run("search", library.clip, "--index", library.index, "--threshold", "0.5", "-n", "1")
    assert "coffee.mp4" in outcome.out
    assert "0:04." in outcome.out
    assert "Scores: 1 means identical" in outcome.err
    assert "rocket" not in outcome.out


def test_search_with_a_stretch(library: Library) -> None:
    query = library.folder / "coffee.mp4"
    found = run(
        "search",
        query,
        "--start",
        "0:06",
        "--end",
        "10",
        "--index",
        library.index,
        "--threshold",
        "0.5",
        "--json",
    ).json
    assert (found["start"], found["end"]) == (6.0, 10.0)
    top = {Path(match["path"]).name: match["segments"][0] for match in found["matches"]}
    assert set(top) == {"coffee.mp4", "copy of coffee.mp4"}
    segment = top["coffee.mp4"]
    assert segment["target_start"] == pytest.approx(6.0, abs=0.6)
    assert segment["target_start"] == pytest.approx(segment["query_start"], abs=0.5)  # the query's own time


def test_no_match_is_said_and_is_no_failure(library: Library, tmp_path: Path) -> None:
    stranger = encode(tmp_path / "stranger.mp4", pan("gravel", 50))
    outcome = run("search", stranger, "--index", library.index, "--threshold", "0.9")
    assert "nothing similar found" in outcome.out
    assert "No video has a score of at least 0.9" in outcome.err
    # The whole command for features that see more.
    assert f"`vidkin index {library.folder} --index views.vidkin --extractor vidkin`" in outcome.err
    assert f"`vidkin search {stranger} --index views.vidkin`" in outcome.err
    found = run("search", library.clip, "--index", library.index)
    assert ("nothing similar" in found.out, "views.vidkin" in found.err) == (False, False)
    assert (
        run("search", stranger, "--index", library.index, "--threshold", "0.9", "--json").json["matches"]
        == []
    )


def test_an_index_without_videos_is_not_taken_for_one_without_matches(
    library: Library, tmp_path: Path
) -> None:
    run("index", tmp_path, "--index", tmp_path / "i", status=3)
    outcome = run("search", library.clip, "--index", tmp_path / "i")
    assert "the index is empty; add videos with `vidkin index PATH`" in outcome.out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--start", "1:75"), 2, "invalid time '1:75'; use seconds"),
        (("--limit", "0"), 2, "limit"),
        (("--threshold", "2"), 2, "threshold"),
        (("--start", "1:00:00"), 3, "coffee.mp4"),
    ],
)
def test_wrong_values_are_refused(
    library: Library, words: tuple[str, ...], status: int, message: str
) -> None:
    outcome = run("search", library.folder / "coffee.mp4", *words, "--index", library.index, status=status)
    assert message in " ".join(outcome.err.split())
    assert outcome.out == ""


def test_a_broken_query_names_the_file_and_the_cause(library: Library, tmp_path: Path) -> None:
    (tmp_path / "broken [1].mp4").write_text("no video")
    outcome = run("search", tmp_path / "broken [1].mp4", "--index", library.index, status=3)
    assert outcome.err.startswith(f"Error: {tmp_path / 'broken [1].mp4'}: ")
    assert outcome.err.count("\n") == 1
    outcome = run("search", tmp_path / "gone.mp4", "--index", library.index, "--json", status=3)
    assert "gone.mp4" in outcome.err
    assert outcome.json["error"] == {
        "kind": "MediaError",
        "message": f"{tmp_path / 'gone.mp4'}: there is no such file",
        "status": 3,
    }


def test_match_scores_two_files_and_draws_them(library: Library, tmp_path: Path) -> None:
    picture, frames = tmp_path / "map.png", tmp_path / "pairs.svg"
    words = ("match", library.clip, library.folder / "coffee.mp4", "--index", library.index)
    found = run(*words, "--picture", picture, "--frames", frames, "--json").json
    assert found["score"] >= 0.7
    assert found["segments"][0]["target_start"] == pytest.approx(4.0, abs=1.0)
    assert (len(found["map"]), len(found["map"][0])) == (
        len(found["query_times"]),
        len(found["target_times"]),
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in frames.read_bytes()
    for pair in found["frame_pairs"]:
        assert pair["target_time"] - pair["query_time"] == pytest.approx(4.0, abs=1.0)
    shown = run(*words).out
    assert f"score {found['score']:.2f}" in shown
    assert "0:04." in shown


def test_match_needs_no_index(library: Library, tmp_path: Path) -> None:
    rocket, coffee = library.folder / "rocket.mp4", library.folder / "coffee.mp4"
    outcome = run("match", rocket, coffee, "--frames", tmp_path / "pairs.png")
    assert float(outcome.out.splitlines()[0].rpartition(" ")[2]) < 0.3
    assert (tmp_path / "pairs.png").exists() != ("no matching frames to draw" in outcome.err)


def test_match_takes_files_that_the_index_does_not_know(library: Library) -> None:
    found = run("match", library.folder / "coffee.mp4", library.clip, "--index", library.index, "--json").json
    assert found["score"] >= 0.7
    assert found["segments"][0]["query_start"] == pytest.approx(4.0, abs=1.0)


def test_match_refuses_a_picture_that_cannot_be_before_any_work(library: Library) -> None:
    outcome = run("match", "gone.mp4", "gone.mp4", "--picture", "map.doc", status=2)
    assert "map.doc: not a picture format" in outcome.err


def test_duplicates_are_grouped_with_the_best_copy_first(library: Library, tmp_path: Path) -> None:
    table = tmp_path / "groups.csv"
    found = run("duplicates", "--index", library.index, "--csv", table, "--json").json
    assert len(found["groups"]) == 1
    members = found["groups"][0]["members"]
    assert [(Path(item["path"]).name, item["best"]) for item in members] == [
        ("coffee.mp4", True),
        ("copy of coffee.mp4", False),
    ]
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(Path(row["path"]).name, row["group"], row["best"]) for row in rows] == [
        ("coffee.mp4", "1", "yes"),
        ("copy of coffee.mp4", "1", "no"),
    ]
    shown = run("duplicates", "--index", library.index).out
    assert "keep (most detail)" in shown
    assert "1 group, 1 copy besides the best ones; 1 of them can be removed" in shown


def test_groups_as_csv_on_standard_output_are_those_of_the_file(library: Library, tmp_path: Path) -> None:
    run("duplicates", "--index", library.index, "--csv", tmp_path / "groups.csv")
    written = (tmp_path / "groups.csv").read_bytes().decode()
    assert run("duplicates", "--index", library.index, "--csv", "-").out.splitlines() == written.splitlines()
    assert not Path("-").exists()
    outcome = run("duplicates", "--index", library.index, "--csv", "-", "--json", status=2)
    assert "use one of them" in outcome.err


def test_decisions_are_remembered(library: Library, tmp_path: Path) -> None:
    index = Path(shutil.copytree(library.index, tmp_path / "index"))
    pair = (library.folder / "coffee.mp4", library.folder / "copy of coffee.mp4")
    assert "marked as not duplicates" in run("duplicates", "--index", index, "--not-a-match", *pair).out
    assert run("duplicates", "--index", index).out == "No duplicates found.\n"
    assert "marked as duplicates" in run("duplicates", "--index", index, "--is-a-match", *pair).out
    assert len(run("duplicates", "--index", index, "--json").json["groups"]) == 1
    outcome = run("duplicates", "--index", index, "--not-a-match", pair[0], tmp_path / "new.mp4", status=3)
    assert "new.mp4" in outcome.err

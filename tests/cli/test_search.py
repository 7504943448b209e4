"""``vidkin search``, ``match`` and ``duplicates``."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Library, run
from tests.support.videos import encode, pan


def test_search_gives_the_video_and_the_time(library: Library) -> None:
    found = run("search", library.clip, "--index", library.index, "-f", "json").json
    assert found["query"] == str(library.clip)
    first, second = found["matches"][:2]
    assert {Path(first["path"]).name, Path(second["path"]).name} == {"coffee.mp4", "copy of coffee.mp4"}
    assert (first["rank"], first["mirrored"]) == (1, False)
    assert first["score"] >= 0.7
    segment = first["segments"][0]
    assert segment["target_start"] == pytest.approx(4.0, abs=1.0)
    assert segment["target_end"] == pytest.approx(9.0, abs=1.0)
    assert found["matches"][2:] == []


def test_search_shows_a_table(library: Library) -> None:
    outcome = run("search", library.clip, "--index", library.index, "--threshold", "0.5", "-n", "1")
    assert "coffee.mp4" in outcome.out
    assert "0:04." in outcome.out
    assert "Scores: 1 means identical" in outcome.err
    assert "rocket" not in outcome.out


def test_search_with_a_stretch(library: Library) -> None:
    query = library.folder / "coffee.mp4"
    found = run("search", query, "--start", "0:06", "--end", "10", "--index", library.index, "-f", "json").json
    assert (found["start"], found["end"]) == (6.0, 10.0)
    ((name, segment),) = [(Path(match["path"]).name, match["segments"][0]) for match in found["matches"]]
    assert name == "copy of coffee.mp4"
    assert segment["target_start"] == pytest.approx(6.0, abs=0.6)
    assert segment["target_start"] == pytest.approx(segment["query_start"], abs=0.5)  # the query's own time


def test_exact_times_stay_within_the_stretch(library: Library) -> None:
    query = library.folder / "coffee.mp4"
    words = ("search", query, "--start", "6", "--end", "10", "--exact", "--index", library.index, "-f", "json")
    (segment,) = run(*words).json["matches"][0]["segments"]
    assert 6 <= segment["query_start"] < segment["query_end"] <= 10
    assert segment["target_start"] == pytest.approx(segment["query_start"], abs=0.3)
    assert segment["target_end"] == pytest.approx(segment["query_end"], abs=0.3)


@pytest.mark.thorough
def test_a_stretch_can_be_named_by_frame_numbers(library: Library) -> None:
    words = ("search", library.folder / "coffee.mp4", "--index", library.index, "-f", "json", "--start")
    found, same = run(*words, "60f").json, run(*words, "6").json
    assert (found["start"], same["start"]) == ("60f", 6.0)
    first, second = (one["matches"][0]["segments"][0] for one in (found, same))
    assert first["query_start"] == pytest.approx(second["query_start"], abs=0.15)


@pytest.mark.thorough
def test_several_clips_in_one_call(library: Library, tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_text("no video")
    words = (
        "search",
        library.clip,
        tmp_path / "bad.mp4",
        library.folder / "rocket.mp4",
        "--index",
        library.index,
    )
    outcome = run(*words, "-f", "json", status=1)
    first, bad, last = outcome.json["searches"]
    assert {Path(match["path"]).name for match in first["matches"][:2]} == {
        "coffee.mp4",
        "copy of coffee.mp4",
    }
    assert bad["query"] == str(tmp_path / "bad.mp4")
    assert bad["error"] in outcome.err
    assert (last["matches"], last["query_is_indexed"]) == ([], True)
    shown = run(*words, "-t", "0", status=1).out
    assert shown.index("clip of coffee.mp4:") < shown.index("copy of coffee.mp4") < shown.index("rocket.mp4:")


def test_formats(library: Library) -> None:
    words = ("search", library.clip, "--index", library.index, "-t", "0.5")
    assert run(*words, "--format", "json").json == run(*words, "-f", "json").json
    header, *rows = (line.split("\t") for line in run(*words, "--format", "tsv").out.splitlines())
    first = dict(zip(header, rows[0], strict=True))
    found = run(*words, "-f", "json").json["matches"]
    assert (first["query"], first["rank"], first["path"]) == (str(library.clip), "1", found[0]["path"])
    assert float(first["target_start"]) == pytest.approx(found[0]["segments"][0]["target_start"], abs=1e-3)
    assert (first["missing"], first["mirrored"]) == ("no", "no")
    assert len(rows) == sum(len(match["segments"]) for match in found)
    lines = run(*words, "--format", "plain").out.splitlines()
    assert [line[:6] for line in lines] == [f"{match['score']:.2f}  " for match in found]
    assert all(line.endswith(match["path"]) for line, match in zip(lines, found, strict=True))
    outcome = run("search", "gone.mp4", "--index", library.index, "--format", "json", status=3)
    assert outcome.json["error"]["kind"] == "MediaError"


@pytest.mark.thorough
def test_the_best_matches_can_be_left_out(library: Library) -> None:
    words = ("search", library.clip, "--index", library.index, "-f", "json")
    every, rest = run(*words).json["matches"], run(*words, "--offset", "1").json["matches"]
    assert rest == every[1:]
    assert rest[0]["rank"] == 2
    outcome = run(*words[:-2], "--offset", "50")
    assert outcome.out.strip().endswith("no more matches")


@pytest.mark.thorough
def test_a_picture_is_shown_without_times_of_its_own(library: Library, tmp_path: Path) -> None:
    picture = tmp_path / "photo.jpg"
    Image.fromarray(list(pan("coffee", 60))[57]).save(picture)
    shown = run("search", picture, "--index", library.index, "-n", "1").out
    assert "coffee.mp4" in shown
    assert "0:05." in shown
    assert "query" not in shown
    segment = run("search", picture, "--index", library.index, "-f", "json").json["matches"][0]["segments"][0]
    assert (segment["query_start"], segment["query_end"]) == (0.0, 0.0)
    assert segment["target_start"] == pytest.approx(5.7, abs=0.3)


@pytest.mark.thorough
def test_a_search_without_matches_says_so_and_succeeds(library: Library, tmp_path: Path) -> None:
    stranger = encode(tmp_path / "stranger.mp4", pan("gravel", 50))
    outcome = run("search", stranger, "--index", library.index, "--threshold", "0.9")
    assert "stranger.mp4: nothing similar found with a score of at least 0.9\n" in outcome.out
    assert "views.vidkin" not in outcome.err
    further = run("search", stranger, "--index", library.index, "--offset", "50").out
    assert "stranger.mp4: no more matches\n" in further
    assert run("search", stranger, "--index", library.index, "--threshold", "0.9", "-f", "json").json["matches"] == []


@pytest.mark.thorough
def test_an_index_of_classical_features_suggests_the_whole_command_for_better_ones(
    library: Library, tmp_path: Path
) -> None:
    folder, index = tmp_path / "videos", tmp_path / "i"
    folder.mkdir()
    shutil.copy(library.folder / "rocket.mp4", folder)
    run("index", folder, "--index", index, "--extractor", "classical", "--workers", "1")
    stranger = encode(tmp_path / "stranger.mp4", pan("gravel", 50))
    outcome = run("search", stranger, "--index", index)
    assert "nothing similar found" in outcome.out
    assert f"`vidkin index {folder} --index views.vidkin --extractor vidkin`" in outcome.err
    assert f"`vidkin search {stranger} --index views.vidkin`" in outcome.err
    found = run("search", folder / "rocket.mp4", "--index", index)
    assert "rocket.mp4: nothing similar found besides the file itself" in found.out
    assert "views.vidkin" not in found.err


def test_an_index_without_videos_is_not_taken_for_one_without_matches(library: Library, tmp_path: Path) -> None:
    run("index", tmp_path, "--index", tmp_path / "i", status=3)
    outcome = run("search", library.clip, "--index", tmp_path / "i")
    assert "the index is empty; add videos with `vidkin index PATH`" in outcome.out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--start", "1:75"), 2, "invalid time '1:75'; use seconds"),
        (("--start", "0:04", "--end", "0:02"), 2, "--end must be after --start, got --start 0:04 and --end 0:02"),
        (("--start", "0:04", "--end", "10f"), 2, "got --start 0:04 and --end 10f"),
        (("--limit", "0"), 2, "limit"),
        (("--threshold", "2"), 2, "threshold"),
        (("--start", "1:00:00"), 3, "coffee.mp4"),
    ],
)
def test_wrong_values_are_refused(library: Library, words: tuple[str, ...], status: int, message: str) -> None:
    outcome = run("search", library.folder / "coffee.mp4", *words, "--index", library.index, status=status)
    assert message in " ".join(outcome.err.split())
    assert outcome.out == ""


def test_a_broken_query_names_the_file_and_the_cause(library: Library, tmp_path: Path) -> None:
    (tmp_path / "broken [1].mp4").write_text("no video")
    outcome = run("search", tmp_path / "broken [1].mp4", "--index", library.index, status=3)
    assert outcome.err.startswith(f"Error: {tmp_path / 'broken [1].mp4'}: ")
    assert outcome.err.count("\n") == 1
    outcome = run("search", tmp_path / "gone.mp4", "--index", library.index, "-f", "json", status=3)
    assert "gone.mp4" in outcome.err
    assert outcome.json["error"] == {
        "kind": "MediaError",
        "message": f"{tmp_path / 'gone.mp4'}: there is no such file",
        "status": 3,
    }


@pytest.mark.large
def test_match_scores_two_files_and_draws_them(library: Library, tmp_path: Path) -> None:
    picture, frames, numbers = tmp_path / "map.svg", tmp_path / "pairs.png", tmp_path / "map.npz"
    words = ("match", library.clip, library.folder / "coffee.mp4", "--index", library.index)
    outcome = run(*words, "-o", picture, "-o", frames, "-o", numbers, "-o", numbers, "-f", "json", status=2)
    assert "--output must name one file of a format" in outcome.err
    outcome = run(*words, "-o", picture, "-o", frames, "-o", numbers, "-f", "json")
    found = outcome.json
    assert outcome.err.splitlines() == [f"Wrote {path}" for path in (picture, frames, numbers)]
    assert found["outputs"] == {"map": str(picture), "frames": str(frames), "npz": str(numbers)}
    assert found["score"] >= 0.7
    assert found["segments"][0]["target_start"] == pytest.approx(4.0, abs=1.0)
    assert "map" not in found
    with np.load(numbers) as arrays:
        assert arrays["map"].shape == (len(arrays["query_times"]), len(arrays["target_times"]))
        assert arrays["map"].max() > 0.9
    assert frames.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in picture.read_bytes()
    for pair in found["frame_pairs"]:
        assert pair["target_time"] - pair["query_time"] == pytest.approx(4.0, abs=1.0)
    shown = run(*words).out
    assert f"score {found['score']:.2f}" in shown
    assert "0:04." in shown


def test_match_needs_no_index(library: Library, tmp_path: Path) -> None:
    rocket, coffee = library.folder / "rocket.mp4", library.folder / "coffee.mp4"
    outcome = run("match", rocket, coffee, "-o", tmp_path / "pairs.png")
    assert float(outcome.out.splitlines()[0].rpartition(" ")[2]) < 0.3
    assert (tmp_path / "pairs.png").exists() != ("no matching frames to draw" in outcome.err)


@pytest.mark.thorough
def test_match_takes_files_that_the_index_does_not_know(library: Library) -> None:
    found = run("match", library.folder / "coffee.mp4", library.clip, "--index", library.index, "-f", "json").json
    assert found["score"] >= 0.7
    assert found["segments"][0]["query_start"] == pytest.approx(4.0, abs=1.0)


def test_match_refuses_a_picture_that_cannot_be_before_any_work(library: Library) -> None:
    outcome = run("match", "gone.mp4", "gone.mp4", "-o", "map=map.doc", status=2)
    assert "map.doc: not an image format" in outcome.err
    outcome = run("match", "gone.mp4", "gone.mp4", "-o", "map.doc", status=2)
    assert "map.doc: the ending chooses the format and must be one of .png, .jpg" in outcome.err


def test_duplicates_are_grouped_with_the_best_copy_first(library: Library, tmp_path: Path) -> None:
    table = tmp_path / "groups.csv"
    found = run("duplicates", "--index", library.index, "-o", table, "-f", "json").json
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
    assert "keep (" in shown
    assert "1 group, 1 copy besides the best ones; " in shown


def test_decisions_are_remembered(library: Library, tmp_path: Path) -> None:
    index = Path(shutil.copytree(library.index, tmp_path / "index"))
    words = ("decisions", "--index", index)
    pair = (library.folder / "coffee.mp4", library.folder / "copy of coffee.mp4")
    assert "marked as not duplicates" in run(*words, "--not-a-match", *pair).out
    assert run("duplicates", "--index", index).out == "No duplicates found.\n"
    assert "marked as duplicates" in run(*words, "--is-a-match", *pair).out
    assert len(run("duplicates", "--index", index, "-f", "json").json["groups"]) == 1
    outcome = run(*words, "--not-a-match", pair[0], tmp_path / "new.mp4", status=3)
    assert "new.mp4" in outcome.err


def test_one_call_marks_each_pair_of_several_videos(library: Library, tmp_path: Path) -> None:
    index = Path(shutil.copytree(library.index, tmp_path / "index"))
    words = ("decisions", "--index", index)
    three = [library.folder / name for name in library.names[:3]]
    assert len(run(*words, "--not-a-match", *three, "-f", "json").json["pairs"]) == 3
    assert len(run(*words, "-f", "json").json["decisions"]) == 3
    run(*words, "--undo", *three[:2])
    assert len(run(*words, "-f", "json").json["decisions"]) == 2
    for wrong in (three, ["--undo", three[0]], ["--undo", "--is-a-match", *three], ["--undo"]):
        assert "name two videos or more" in " ".join(run(*words, *wrong, status=2).err.split())


def test_a_file_that_is_not_there_is_refused_before_the_index_is_opened(tmp_path: Path) -> None:
    """There is no index either, and nothing says so: it was not asked for."""
    for command in (("search", "gone.mp4"), ("match", "gone.mp4", "gone.mp4"), ("coverage", "gone.mp4")):
        assert "gone.mp4: there is no such file" in run(*command, "--index", tmp_path / "none.vidkin", status=3).err


def test_info_says_what_scores_tell_and_leaves_out_what_only_programs_compare(library: Library) -> None:
    words = " ".join(run("info", "--index", library.index).out.split())
    assert "identify copies and locate the matching parts" in words
    assert "fingerprint" not in words
    assert "windows" not in words
    assert {"fingerprint", "windows", "measure"} <= set(run("info", "--index", library.index, "-f", "json").json)

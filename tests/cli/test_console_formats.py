"""One choice of formats for every command that lists something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Library, Outcome, run
from vidkin.index import Index


def rows_of(outcome: Outcome) -> list[dict[str, str]]:
    """Lines of tab-separated values by their headings."""
    header, *rows = (line.split("\t") for line in outcome.out.splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.fixture
def clip_and_film(library: Library) -> tuple[str, Path, Path, str, Path]:
    return ("match", library.clip, library.folder / "coffee.mp4", "--index", library.index)


@pytest.mark.large
def test_two_videos_compared(clip_and_film: Sequence[str | Path]) -> None:
    compared = run(*clip_and_film, "--format", "json").json
    assert compared == run(*clip_and_film, "-f", "json").json
    (row,) = rows_of(run(*clip_and_film, "--format", "tsv"))
    assert (row["query"], row["path"]) == (str(clip_and_film[1]), str(clip_and_film[2]))
    assert float(row["score"]) == pytest.approx(compared["score"], abs=1e-4)
    assert float(row["target_start"]) == pytest.approx(compared["segments"][0]["target_start"], abs=1e-3)
    (line,) = run(*clip_and_film, "--format", "plain").out.splitlines()
    assert line.startswith(f"{compared['score']:.2f}  0:0")
    assert line.endswith("coffee.mp4")


@pytest.mark.thorough
def test_groups_of_duplicates(library: Library, tmp_path: Path) -> None:
    words = ("duplicates", "--index", library.index)
    found = run(*words, "--format", "json").json["groups"]
    rows = rows_of(run(*words, "--format", "tsv"))
    assert [row["path"] for row in rows] == [member["path"] for group in found for member in group["members"]]
    assert [row["best"] for row in rows] == ["yes", "no"]
    first, second = run(*words, "--format", "plain").out.splitlines()
    assert first.startswith("1  ")
    assert "keep" in first
    assert second.endswith("copy of coffee.mp4")
    with Index.open(library.index, read_only=True) as index:
        assert [group.to_dict() for group in index.duplicates()] == found


def test_shots(library: Library) -> None:
    film = library.folder / "coffee.mp4"
    (shot,) = run("shots", film, "--format", "json").json["videos"][0]["shots"]
    (row,) = rows_of(run("shots", film, "--format", "tsv"))
    assert (row["file"], row["shot"], row["kind"]) == (str(film), "1", "start")
    assert float(row["end"]) == pytest.approx(shot["end"], abs=1e-6)
    assert run("shots", film, "--format", "plain").out == f"  1  0:00.00 - 0:12.00    start     {film}\n"


def test_facts_and_videos(library: Library) -> None:
    words = ("info", "--index", library.index)
    facts = run(*words, "--format", "json").json
    shown = {row["name"]: row["value"] for row in rows_of(run(*words, "--format", "tsv"))}
    assert shown == {name: "" if value is None else str(value) for name, value in facts.items() if name != "index"}
    assert "videos: 4" in run(*words, "--format", "plain").out.splitlines()
    with Index.open(library.index, read_only=True) as index:
        assert {"index": str(library.index), **index.info().to_dict()} == facts
    rows = rows_of(run(*words, "--videos", "--format", "tsv"))
    assert [Path(row["path"]).name for row in rows] == [Path(name).name for name in library.names]
    assert {(row["status"], row["missing"], row["codec"]) for row in rows} == {("ok", "no", "h264")}
    lines = run(*words, "--videos", "--format", "plain").out.splitlines()
    assert lines[0].startswith("ok          0:12.0  ")

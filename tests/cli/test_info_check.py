"""``vidkin info FILE --check``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Library, run
from tests.support.videos import broken_off


def test_check_reports_damage_with_times_and_status_1(library: Library, tmp_path: Path) -> None:
    whole = library.folder / "coffee.mp4"
    cut = broken_off(whole, tmp_path / "cut.mp4")
    assert "coffee.mp4: whole, " in run("info", whole, "--check").out
    shown = run("info", whole, cut, "--check", status=1).out
    assert "coffee.mp4: whole, " in shown
    assert "cut.mp4: damaged, " in shown
    assert "the file is cut off: " in shown
    files = run("info", whole, cut, "--check", "-f", "json", status=1).json["files"]
    assert [item["is_whole"] for item in files] == [True, False]
    assert files[1]["errors"][-1]["seconds"] > 0
    lines = run("info", whole, cut, "--check", "--format", "tsv", status=1).out.splitlines()
    assert [line.split("\t")[1] for line in lines] == ["is_whole", "yes", "no"]


def test_check_needs_a_file_and_a_file_needs_check(library: Library, tmp_path: Path) -> None:
    for words in (["--check"], [library.folder / "coffee.mp4"]):
        assert "FILE and --check need each other" in run("info", *words, status=2).err
    assert "there is no such file" in run("info", tmp_path / "none.mp4", "--check", status=3).err

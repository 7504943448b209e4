"""Files beside videos: ours are replaced, those of others never."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.errors import CollectionDamagedError
from vidkin.index import Index, write_companions


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.open(tmp_path / "c.vidkin", create=True)


def test_a_file_of_ours_is_replaced_and_one_that_was_changed_is_left(tmp_path: Path, index: Index) -> None:
    file = tmp_path / "film.edl"
    (first,) = write_companions({str(file): "1\t2\t3\n"}, index.place)
    assert (first.written, file.read_text()) == (True, "1\t2\t3\n")
    (second,) = write_companions({str(file): "1\t5\t3\n"}, index.place)
    assert (second.written, file.read_text()) == (True, "1\t5\t3\n")
    file.write_text("mine")
    (third,) = write_companions({str(file): "1\t6\t3\n"}, index.place)
    assert not third.written
    assert "changed since; move it away first" in third.cause
    assert file.read_text() == "mine"


def test_files_of_others_links_and_folders_are_left(tmp_path: Path, index: Index) -> None:
    (tmp_path / "theirs.edl").write_text("0 1 0")
    (tmp_path / "folder.edl").mkdir()
    (tmp_path / "link.edl").symlink_to(tmp_path / "theirs.edl")
    (tmp_path / "large.edl").write_bytes(b" " * (2 << 20))
    names = ("theirs", "folder", "link", "large")
    outcomes = write_companions({str(tmp_path / f"{name}.edl"): "1\t2\t3\n" for name in names}, index.place)
    assert [one.written for one in outcomes] == [False] * 4
    assert (tmp_path / "theirs.edl").read_text() == "0 1 0"
    assert write_companions({str(tmp_path / "no folder" / "a.edl"): ""}, index.place)[0].cause.startswith("cannot be")


def test_without_an_index_nothing_is_replaced_but_the_same(tmp_path: Path) -> None:
    file = tmp_path / "film.edl"
    assert write_companions({str(file): "1"})[0].written
    assert write_companions({str(file): "1"})[0].written
    assert not write_companions({str(file): "2"})[0].written


def test_a_damaged_record_is_an_error_before_anything_is_written(tmp_path: Path, index: Index) -> None:
    (index.path / "companions.json").write_text("[1")
    with pytest.raises(CollectionDamagedError, match=r"companions\.json is damaged"):
        write_companions({str(tmp_path / "film.edl"): "1"}, index.place)
    assert not (tmp_path / "film.edl").exists()

"""Files next to videos: vidkin replaces only files that it wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from vidkin._base import disk
from vidkin.errors import CollectionDamagedError, VidkinError
from vidkin.index import Index, write_companions


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.open(tmp_path / "c.vidkin", create=True)


def test_file_written_by_vidkin_is_replaced_unless_it_was_edited(tmp_path: Path, index: Index) -> None:
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


def test_foreign_files_links_and_folders_are_not_replaced(tmp_path: Path, index: Index) -> None:
    (tmp_path / "theirs.edl").write_text("0 1 0")
    (tmp_path / "folder.edl").mkdir()
    (tmp_path / "link.edl").symlink_to(tmp_path / "theirs.edl")
    (tmp_path / "large.edl").write_bytes(b" " * (2 << 20))
    names = ("theirs", "folder", "link", "large")
    outcomes = write_companions({str(tmp_path / f"{name}.edl"): "1\t2\t3\n" for name in names}, index.place)
    assert [one.written for one in outcomes] == [False] * 4
    assert (tmp_path / "theirs.edl").read_text() == "0 1 0"
    assert write_companions({str(tmp_path / "no folder" / "a.edl"): ""}, index.place)[0].cause.startswith("cannot be")


def test_without_an_index_only_identical_files_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "film.edl"
    assert write_companions({str(file): "1"})[0].written
    assert write_companions({str(file): "1"})[0].written
    assert not write_companions({str(file): "2"})[0].written


def test_damaged_record_is_an_error_before_anything_is_written(tmp_path: Path, index: Index) -> None:
    (index.path / "companions.json").write_text("[1")
    with pytest.raises(CollectionDamagedError, match=r"companions\.json is damaged"):
        write_companions({str(tmp_path / "film.edl"): "1"}, index.place)
    assert not (tmp_path / "film.edl").exists()


def test_kill_between_any_two_operations_leaves_files_that_the_same_call_replaces(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is written first, so a file with the old content is still recognized."""
    files = [tmp_path / "a.edl", tmp_path / "b.edl"]
    old, new = ({str(file): text for file in files} for text in ("1\t2\t3\n", "1\t5\t3\n"))
    write_companions(old, index.place)
    record = (index.path / "companions.json").read_bytes()
    operations = count_operations(monkeypatch, lambda: write_companions(new, index.place))
    assert operations.count("rename") == 3
    for turn in range(len(operations)):
        for file in files:
            file.write_text("1\t2\t3\n")
        (index.path / "companions.json").write_bytes(record)
        power = PowerCut(turn, names=True)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", power)
            with pytest.raises(PowerCutError):
                write_companions(new, index.place)
        power.lose()
        assert all(file.read_text() in ("1\t2\t3\n", "1\t5\t3\n") for file in files), turn
        assert [one.written for one in write_companions(new, index.place)] == [True, True], turn
        assert [file.read_text() for file in files] == ["1\t5\t3\n"] * 2


def test_disk_error_leaves_the_file_and_no_temporary_file(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "videos" / "a.edl"
    file.parent.mkdir()
    write_companions({str(file): "old"}, index.place)
    for turn in range(20):
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            try:
                refused = not write_companions({str(file): "new"}, index.place)[0].written
            except VidkinError:
                refused = True
        assert file.read_text() in ("old", "new")
        assert refused or file.read_text() == "new"
        assert [path.name for path in file.parent.iterdir()] == ["a.edl"]
        assert write_companions({str(file): "old"}, index.place)[0].written


@pytest.mark.parametrize("there_was_one", [False, True])
def test_file_written_by_another_program_in_the_meantime_is_kept(
    tmp_path: Path, index: Index, there_was_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "film.edl"
    if there_was_one:
        write_companions({str(file): "old"}, index.place)

    def meanwhile(operation: str, path: str, target: str = "") -> None:
        if operation == "sync" and path.endswith(".part") and Path(path).parent == tmp_path:
            file.write_text("theirs")

    monkeypatch.setattr(disk, "before", meanwhile)
    (outcome,) = write_companions({str(file): "new"}, index.place)
    assert not outcome.written
    assert "move it away first" in outcome.cause
    assert file.read_text() == "theirs"


def test_undecodable_name_is_recorded(tmp_path: Path, index: Index) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n=1.edl")
    for text in ("1", "2", "3"):
        assert write_companions({path: text}, index.place)[0].written

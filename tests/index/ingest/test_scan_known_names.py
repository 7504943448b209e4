"""Files that are named through a symbolic link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.index import Index, scan
from vidkin.index.ingest.scan import use_indexed_paths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("real/a.mp4", "real/sub/b.mp4", "c.mp4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "c again.mp4").symlink_to("c.mp4")
    return tmp_path


def test_link_to_a_file_indexed_by_its_real_path_is_recognized(folder: Path) -> None:
    known = [str(folder / "real/a.mp4"), str(folder / "c.mp4")]
    named = use_indexed_paths(scan([folder / "link", folder / "c again.mp4"]), known)
    assert [file.path for file in named.files] == [
        str(folder / "c.mp4"),
        str(folder / "link/sub/b.mp4"),
        str(folder / "real/a.mp4"),
    ]
    assert all(file.size == 1 for file in named.files)


def test_real_path_of_a_file_indexed_by_a_link_is_recognized(folder: Path) -> None:
    known = [str(folder / "link/a.mp4")]
    named = use_indexed_paths(scan([folder / "real"]), known)
    assert [file.path for file in named.files] == [str(folder / "link/a.mp4"), str(folder / "real/sub/b.mp4")]


def test_paths_that_are_both_indexed_are_kept(folder: Path) -> None:
    paths = [str(folder / "link/a.mp4"), str(folder / "real/a.mp4")]
    for path in paths:
        assert [file.path for file in use_indexed_paths(scan([path]), paths).files] == [path]


def test_link_given_by_name_does_not_hide_a_folder_given_by_name(folder: Path) -> None:
    files = scan([folder / "link", folder / "real"]).files
    assert [file.path for file in files] == [str(folder / "real/a.mp4"), str(folder / "real/sub/b.mp4")]


def test_link_to_a_folder_does_not_add_it_twice(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    encode(tmp_path / "real/a.mp4", pan("coffee", 20, width=96, height=64))
    (tmp_path / "link").symlink_to("real")
    index = Index.open(tmp_path / "i.vidkin", extractor="classical", create=True)
    assert len(index.add([tmp_path / "real"], workers=1).added) == 1
    report = index.add([tmp_path / "link"], workers=1)
    assert (len(report.added), len(report.unchanged)) == (0, 1)
    assert [record.path for record in index] == [str(tmp_path / "real/a.mp4")]


def test_name_in_different_case_adds_no_second_record_if_case_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, again, other = tmp_path / "Film.mp4", tmp_path / "film.MP4", tmp_path / "FILM.mp4"
    for path in (known, again, other):
        path.write_bytes(b"x")
    # This file system is case-sensitive, so these are different files.
    assert [file.path for file in use_indexed_paths(scan([again]), [str(known)]).files] == [str(again)]
    monkeypatch.setattr(os.path, "samefile", lambda path, name: {path, name} == {str(known), str(again)})
    assert [file.path for file in use_indexed_paths(scan([again]), [str(known)]).files] == [str(known)]
    assert [file.path for file in use_indexed_paths(scan([other]), [str(known)]).files] == [str(other)]

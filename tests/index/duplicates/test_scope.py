"""Duplicates between folders, between new files and a library, or within one folder: only these pairs are compared."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.index import (
    Comparisons,
    DuplicateGroup,
    FileRecord,
    Index,
    SerialExecutor,
    VideoRecord,
    open_place,
    plan_removal,
)
from vidkin.index.duplicates.comparisons import content_of
from vidkin.index.duplicates.scope import Lookups, PairScope, Scope

SIZE = {"width": 160, "height": 120}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with two copies of a film; new files are a worse copy of it, a better copy of another film, and two
    copies of a third.
    """
    root = tmp_path_factory.mktemp("fólders")
    for name in ("library/masters", "new"):
        (root / name).mkdir(parents=True)
    coffee, chelsea, rocket = (list(pan(name, 40, **SIZE)) for name in ("coffee", "chelsea", "rocket"))
    encode(root / "library/masters/coffee.mp4", coffee, rate=5)
    encode(root / "library/coffee again.mp4", coffee, rate=5, options={"crf": "30"})
    encode(root / "library/chelsea.mp4", [frame[::2, ::2] for frame in chelsea], rate=5)
    encode(root / "new/coffee.mp4", coffee, rate=5, options={"crf": "33"})
    encode(root / "new/chelsea.mp4", chelsea, rate=5)
    encode(root / "new/rocket.mp4", rocket, rate=5)
    encode(root / "new/rocket again.mp4", rocket, rate=5, options={"crf": "30"})
    return root


@pytest.fixture(scope="module")
def index(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.open(tmp_path_factory.mktemp("index") / "c.vidkin", create=True) as opened:
        opened.add(root, executor=SerialExecutor(opened.worker_spec))
        yield opened


@pytest.fixture
def forgotten(index: Index) -> Index:
    """The index without stored comparisons."""
    Comparisons(open_place(index.path)).save()
    return index


def names(group: DuplicateGroup, root: Path) -> set[str]:
    return {os.path.relpath(member.path, root) for member in group.members}


def compared_pairs(index: Index, root: Path) -> set[frozenset[str]]:
    """The pairs with a stored result."""
    table = json.loads((index.path / Comparisons.FILE).read_text())
    paths = {video.content_hash: os.path.relpath(video.path, root) for video in index.videos()}
    return {frozenset(paths[table["contents"][place]] for place in row[:2]) for row in table["pairs"]}


def test_without_folders_all_copies_are_grouped(forgotten: Index, root: Path) -> None:
    assert [len(group.members) for group in forgotten.duplicates()] == [3, 2, 2]


@pytest.mark.thorough
def test_new_files_are_compared_only_with_the_library_which_stays(forgotten: Index, root: Path) -> None:
    groups = forgotten.duplicates(incoming=root / "new", prove=True)
    assert sorted(map(len, (group.members for group in groups))) == [2, 3]
    coffee = next(group for group in groups if len(group.members) == 3)
    assert coffee.best.path.startswith(str(root / "library"))
    stays = {os.path.relpath(member.path, root): (member.stays, member.is_spare) for member in coffee.members}
    assert stays.pop("new/coffee.mp4") == ("", True)
    assert set(stays.values()) == {("it is in the library", False)}
    chelsea = next(group for group in groups if group is not coffee)
    assert chelsea.best.path == str(root / "library/chelsea.mp4")
    (better,) = (member for member in chelsea.members if not member.best)
    assert (better.is_spare, {finding.kind for finding in better.findings}) == (False, {"resolution"})
    (planned,) = plan_removal(groups).groups
    assert [file.path for file in planned.remove] == [str(root / "new/coffee.mp4")]
    assert {file.why for file in planned.stay} == {"it is in the library"}
    # Within the library, only files of the same group were compared, to choose the best one.
    inside = {frozenset(pair) for pair in compared_pairs(forgotten, root) if len({name[:3] for name in pair}) == 1}
    assert inside <= {frozenset(("library/masters/coffee.mp4", "library/coffee again.mp4"))}


def test_between_folders_a_copy_is_removed_only_for_one_in_another_folder(forgotten: Index, root: Path) -> None:
    across = [root / "library", root / "library/masters"]
    (group,) = forgotten.duplicates(across=across)
    assert names(group, root) == {"library/coffee again.mp4", "library/masters/coffee.mp4"}
    assert all(len({name.count("/") for name in pair}) == 2 for pair in compared_pairs(forgotten, root))
    masters = str(root / "library/masters")
    groups = forgotten.duplicates(across=[root / "library", root / "new"], prefer=masters)
    coffee = next(group for group in groups if len(group.members) == 3)
    assert coffee.best.path == str(root / "library/masters/coffee.mp4")
    spare = {os.path.relpath(member.path, root): member.is_spare for member in coffee.members if not member.best}
    assert spare == {"new/coffee.mp4": True, "library/coffee again.mp4": False}
    again = next(member for member in coffee.members if "again" in member.path)
    assert (again.stays, again.compared_with) == ("the kept file is on the same side", str(root / "new/coffee.mp4"))


def test_one_folder_gives_the_groups_of_an_index_of_that_folder(forgotten: Index, root: Path, tmp_path: Path) -> None:
    groups = forgotten.duplicates(only=root / "library")
    assert [names(group, root) for group in groups] == [{"library/coffee again.mp4", "library/masters/coffee.mp4"}]
    # Nothing outside the folder was compared.
    assert {name.split("/")[0] for pair in compared_pairs(forgotten, root) for name in pair} == {"library"}
    with Index.open(tmp_path / "library.vidkin", create=True) as alone:
        alone.add(root / "library", executor=SerialExecutor(alone.worker_spec))
        assert [names(group, root) for group in alone.duplicates()] == [names(group, root) for group in groups]
    assert forgotten.duplicates(only=[root / "library/masters"]) == []


@pytest.mark.thorough
def test_results_are_reused_by_other_scopes_and_hide_no_pairs(
    forgotten: Index, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched() -> list[int]:
        calls = []
        nearest = forgotten.store.nearest
        with monkeypatch.context() as patch:
            patch.setattr(forgotten.store, "nearest", lambda *given: (calls.append(1), nearest(*given))[1])
            forgotten.duplicates(incoming=root / "new")
        return calls

    assert searched()
    assert searched() == []  # no lookups are left the second time
    everything = forgotten.duplicates()
    assert [len(group.members) for group in everything] == [3, 2, 2]
    Comparisons(open_place(forgotten.path)).save()
    assert forgotten.duplicates() == everything
    between = forgotten.duplicates(incoming=root / "new")
    assert sorted(len(group.members) for group in between) == [2, 3]
    assert searched() == []  # all pairs are known


def test_invalid_scope_folders_are_refused(
    index: Index, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, words in (
        ({"only": root / "none"}, "only must be a folder or a list of folders; .*none does not exist"),
        ({"incoming": [__file__]}, "incoming must be a folder or a list of folders; .* is a file"),
        ({"across": [root / "new"]}, "across must be two or more different folders"),
        ({"across": [root / "new", root / "new/../new"]}, "across must be two or more different folders"),
        ({"across": [root, root / "new"], "incoming": root / "new"}, "across and incoming are mutually exclusive"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            index.duplicates(**options)  # type: ignore[arg-type]
    monkeypatch.setattr(logging.getLogger("vidkin"), "propagate", True)
    assert index.duplicates(incoming=tmp_path) == []
    assert f"the index has no videos in {tmp_path}" in caplog.text


# Remaining lookups


def file(path: str, *links: str, content: str = "") -> FileRecord:
    return FileRecord(VideoRecord(path=path, size=1, mtime_ns=1, content_hash=content or path), links)


def lookups(scope: Scope, files: list[FileRecord], everywhere: set[str], within: dict[str, set[str]]) -> Lookups:
    return Lookups(PairScope.of(scope, files), everywhere, within, "searched")


def test_library_is_never_looked_up_for_a_few_new_files(tmp_path: Path) -> None:
    """New files are looked up once, and later only files that were added on either side."""
    scope = Scope.of(incoming=tmp_path)
    new = [file(f"{tmp_path}/{place}.mp4") for place in range(3)]
    library = [file(f"/library/{place}.mp4") for place in range(9)]
    within: dict[str, set[str]] = {}

    def look_up(files: list[FileRecord]) -> list[str]:
        found = lookups(scope, files, set(), within)
        contents = [content_of(item.record) for item in files]
        pending = found.pending(contents)
        found.add(pending)
        found.settle(contents, pending)
        assert found.pending(contents) == []
        return pending

    assert look_up(new + library) == [item.record.path for item in new]
    joined = file(f"{tmp_path}/later.mp4")
    assert look_up([*new, joined, *library]) == [joined.record.path]
    assert look_up([*new, joined, *library, file("/library/later.mp4")]) == ["/library/later.mp4"]
    # If many files are added to the library, the new files are looked up again instead.
    many = [file(f"/library/many {place}.mp4") for place in range(9)]
    assert look_up([*new, joined, *library, *many]) == [item.record.path for item in (*new, joined)]
    # A file that moves to the other side has different pairs.
    assert look_up([*new[1:], joined, *library, *many, file("/library/0 moved.mp4", content=new[0].record.path)])


def test_file_is_on_the_sides_of_all_its_names(tmp_path: Path) -> None:
    (tmp_path / "a/deep").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    scope = Scope.of(across=[tmp_path / "a", tmp_path / "b", tmp_path / "a/deep"])
    places = {path: scope.sides(file(f"{tmp_path}/{path}")) for path in ("a/1", "b/1", "a/deep/er/1", "c/1", "1")}
    assert places == {"a/1": {0}, "b/1": {1}, "a/deep/er/1": {2}, "c/1": set(), "1": set()}
    both = file(f"{tmp_path}/a/1", f"{tmp_path}/b/2")
    assert scope.sides(both) == {0, 1}
    assert scope.has_pair(both, file(f"{tmp_path}/a/3"))
    assert not scope.has_pair(file(f"{tmp_path}/a/1"), file(f"{tmp_path}/a/3"))
    library = Scope.of(incoming=tmp_path / "a")
    assert library.is_library(both)
    assert not library.has_pair(both, file("/elsewhere/1"))

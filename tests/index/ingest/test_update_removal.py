"""Videos removed by name stay excluded until they are named again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.index.storage.test_stores import entry
from vidkin.errors import CollectionDamagedError, NotIndexedError
from vidkin.index import MemoryStore, open_place, scan
from vidkin.index.ingest.update import RemovedPaths, drop_removed, remove_records


def test_removed_folder_covers_every_file_below_it() -> None:
    removed = RemovedPaths(frozenset({"/films/old", "/films/a.mp4"}))
    assert removed.holds("/films/a.mp4")
    assert removed.holds("/films/old")
    assert removed.holds("/films/old/deep/b.mp4")
    # A name with the same prefix is a different path.
    assert not removed.holds("/films/older/b.mp4")
    assert not removed.holds("/films/b.mp4")
    assert not removed.holds("/films")
    assert RemovedPaths(frozenset({"/"})).holds("/anything")


def test_naming_a_folder_again_keeps_removed_paths_below_it_excluded() -> None:
    removed = RemovedPaths().with_paths(["/films", "/films/a.mp4"]).without(["/films", "/unknown"])
    assert removed.paths == {"/films/a.mp4"}
    assert removed.holds("/films/a.mp4")
    assert not removed.holds("/films/b.mp4")


def test_names_that_are_not_utf8_are_stored(tmp_path: Path) -> None:
    assert RemovedPaths.open(open_place(tmp_path)) == RemovedPaths()
    removed = RemovedPaths(frozenset({os.fsdecode(b"/films/\xff.mp4"), "/films/früh.mp4"}))
    removed.save(open_place(tmp_path))
    assert RemovedPaths.open(open_place(tmp_path)) == removed
    assert (tmp_path / RemovedPaths.FILE).read_bytes().isascii()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"removed": "/a"}', '{"removed": [1]}', "[" * 100_000])
def test_error_for_a_damaged_removal_list_states_the_remedy(content: str, tmp_path: Path) -> None:
    (tmp_path / RemovedPaths.FILE).write_text(content)
    with pytest.raises(
        CollectionDamagedError, match=r"removed.json is damaged \(.*\); delete it, but note that `vidkin index`"
    ):
        RemovedPaths.open(open_place(tmp_path))


def make_store(*paths: str) -> MemoryStore:
    store = MemoryStore()
    store.append_many([entry(path, seed=seed) for seed, path in enumerate(paths)])
    return store


def test_removing_a_folder_removes_its_files(tmp_path: Path) -> None:
    store = make_store("/films/a.mp4", "/films/old/b.mp4", "/films/old/c.mp4", "/films/older.mp4")
    assert remove_records(open_place(tmp_path), store, ["/films/old", "/films/a.mp4"]) == 3
    assert [record.path for record in store.videos()] == ["/films/older.mp4"]
    assert RemovedPaths.open(open_place(tmp_path)).paths == {"/films/old", "/films/a.mp4"}


def test_folder_in_different_case_is_removed_if_case_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store("/Films/a.mp4", "/Films/old/b.mp4", "/other/c.mp4")
    with pytest.raises(NotIndexedError, match="/films is not in the index"):
        remove_records(open_place(tmp_path), store, ["/films"])
    monkeypatch.setattr(os.path, "samefile", lambda path, other: path.casefold() == other.casefold())
    assert remove_records(open_place(tmp_path), store, ["/films"]) == 2
    assert [record.path for record in store.videos()] == ["/other/c.mp4"]
    removed = RemovedPaths.open(open_place(tmp_path))
    assert removed.paths == {"/Films"}
    assert removed.holds("/FILMS/old/b.mp4")
    assert removed.holds("/films/new.mp4")
    assert not removed.holds("/other/new.mp4")


def test_file_named_twice_is_removed_once(tmp_path: Path) -> None:
    store = make_store("/films/a.mp4", "/films/b.mp4")
    assert remove_records(open_place(tmp_path), store, ["/films/a.mp4", "/films/../films/a.mp4", "/films"]) == 2
    assert store.videos() == []
    assert RemovedPaths.open(open_place(tmp_path)).paths == {"/films/a.mp4", "/films"}


def test_unknown_name_removes_nothing(tmp_path: Path) -> None:
    store = make_store("/films/a.mp4")
    with pytest.raises(NotIndexedError, match=r"/films/z.mp4"):
        remove_records(open_place(tmp_path), store, ["/films/a.mp4", "/films/z.mp4"])
    assert len(store.videos()) == 1
    assert not (tmp_path / RemovedPaths.FILE).exists()


@pytest.fixture
def films(tmp_path: Path) -> Path:
    folder = tmp_path / "films"
    for name in ("a.mp4", "old/b.mp4", "old/c.mp4"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder


def names(found: object, folder: Path) -> list[str]:
    return [os.path.relpath(file.path, folder) for file in found.files]  # type: ignore[attr-defined]


def test_scan_reports_removed_files_as_skipped(films: Path) -> None:
    removed = RemovedPaths(frozenset({str(films / "old")}))
    kept = drop_removed(scan([films]), removed, lambda path: False)
    assert names(kept, films) == ["a.mp4"]
    reason = "removed from the index; pass its path to add it again"
    assert kept.skipped == tuple((str(films / "old" / name), reason) for name in ("b.mp4", "c.mp4"))


def test_files_named_or_indexed_again_are_kept(films: Path) -> None:
    removed = RemovedPaths(frozenset({str(films / "old")}))
    # Naming a file in the removed folder, or the folder itself, adds its files again.
    both = drop_removed(scan([films, films / "old" / "b.mp4"]), removed, lambda path: False)
    assert names(both, films) == ["a.mp4", "old/b.mp4"]
    inside = drop_removed(scan([films / "old"]), removed, lambda path: False)
    assert names(inside, films) == ["old/b.mp4", "old/c.mp4"]
    # A file that was indexed again in another way, such as a copy that took its path, is also kept.
    known = drop_removed(scan([films]), removed, lambda path: path.endswith("c.mp4"))
    assert names(known, films) == ["a.mp4", "old/c.mp4"]
    everything = scan([films])
    assert drop_removed(everything, RemovedPaths(), lambda path: False) is everything

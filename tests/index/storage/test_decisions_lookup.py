"""Records are found by paths as people type them."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from vidkin.errors import NotIndexedError
from vidkin.index import Entry, MemoryStore, VideoRecord
from vidkin.index.storage.decisions import find_records, has_record

COMPOSED = unicodedata.normalize("NFC", "/films/caf\u00e9.mp4")
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


def store_of(*paths: str) -> MemoryStore:
    store = MemoryStore()
    records = [
        VideoRecord(path=path, size=1, mtime_ns=1, content_hash="a", status="broken", cause="x") for path in paths
    ]
    store.append_many([Entry(record) for record in records])
    return store


def paths(store: MemoryStore, name: str | Path) -> list[str]:
    return sorted(record.path for record in find_records(store, name))


def test_lookup_finds_a_file_or_all_files_below_a_folder() -> None:
    store = store_of("/films/a.mp4", "/films/old/b.mp4", "/films-2/c.mp4")
    assert paths(store, "/films/a.mp4") == ["/films/a.mp4"]
    assert paths(store, "/films") == paths(store, "/films/") == ["/films/a.mp4", "/films/old/b.mp4"]
    assert paths(store, "/films/old/../a.mp4") == ["/films/a.mp4"]
    # A folder whose name has the same prefix is not a parent folder.
    assert paths(store, "/films-2") == ["/films-2/c.mp4"]


def test_relative_and_home_paths_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = store_of(str(tmp_path / "a.mp4"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths(store, "a.mp4") == paths(store, "~/a.mp4") == [str(tmp_path / "a.mp4")]
    assert has_record(store, "a.mp4")
    assert has_record(store, "~/a.mp4")


@pytest.mark.parametrize(("stored", "typed"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_composed_and_decomposed_accents_match(stored: str, typed: str) -> None:
    assert stored != typed
    store = store_of(stored, "/films/other.mp4")
    assert paths(store, typed) == [stored]
    assert has_record(store, typed)


def test_unknown_path_is_named_in_the_error(tmp_path: Path) -> None:
    store = store_of("/films/a.mp4")
    missing = os.path.join(str(tmp_path), "b.mp4")
    assert not has_record(store, missing)
    # A folder is not a record, although there are records below it.
    assert not has_record(store, "/films")
    with pytest.raises(
        NotIndexedError, match=r"b\.mp4 is not in the index; list indexed videos with `vidkin info --videos`"
    ):
        find_records(store, missing)

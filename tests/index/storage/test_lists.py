"""User lists of videos in an index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index import MemoryStore, SavedList, SavedLists, VideoRecord, open_place
from vidkin.index.storage.lists import change_saved_list, read_saved_lists, rename_saved_list


def test_list_keeps_its_order_and_includes_identical_files(tmp_path: Path) -> None:
    place, store = open_place(tmp_path), MemoryStore()
    for path, content in (("/a.mp4", "11"), ("/b.mp4", "22"), ("/c.mp4", "11")):
        record = VideoRecord(path=path, size=1, mtime_ns=1, content_hash=content, status="broken", cause="cut off")
        store.append(record)
    change_saved_list(place, "to cut", add=["22", "11", "33"])
    change_saved_list(place, "to cut", add=["22"], remove=["99"])
    assert json.loads((tmp_path / "lists.json").read_text()) == {
        "lists": [{"name": "to cut", "videos": ["22", "11", "33"]}]
    }
    # No file has content "33" now; it stays in the list until the user removes it.
    assert read_saved_lists(place, store) == [SavedList("to cut", ("/a.mp4", "/b.mp4", "/c.mp4"), 1)]
    change_saved_list(place, "to cut", remove=["11", "33"])
    assert read_saved_lists(place, store) == [SavedList("to cut", ("/b.mp4",), 0)]


def test_list_is_renamed_and_deleted_and_never_overwritten(tmp_path: Path) -> None:
    place = open_place(tmp_path)
    change_saved_list(place, "one", add=["11"])
    change_saved_list(place, "two", add=["22"])
    with pytest.raises(InvalidArgumentError, match="list 'two' already exists; choose another name"):
        rename_saved_list(place, "one", "two")
    rename_saved_list(place, "one", "uno")
    rename_saved_list(place, "two", None)
    assert SavedLists.open(place).contents == {"uno": {"11": None}}
    with pytest.raises(InvalidArgumentError, match="there is no list 'two'"):
        rename_saved_list(place, "two", None)


@pytest.mark.parametrize("name", ["", " edge", "a" * 101, "two\nlines", "\x1b[2J"])
def test_list_name_must_be_printable(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="the name of a list must have 1 to 100 printable characters"):
        change_saved_list(open_place(tmp_path), name, add=["11"])
    assert not (tmp_path / "lists.json").exists()


def test_number_of_lists_and_videos_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.index.storage.lists._MAX_LISTS", 2)
    monkeypatch.setattr("vidkin.index.storage.lists._MAX_VIDEOS", 3)
    place = open_place(tmp_path)
    change_saved_list(place, "one", add=["11", "22"])
    change_saved_list(place, "two", add=["11"])
    with pytest.raises(InvalidArgumentError, match="at most 2 lists; delete one first"):
        change_saved_list(place, "three")
    with pytest.raises(InvalidArgumentError, match="at most 3 videos in total"):
        change_saved_list(place, "two", add=["22"])
    assert SavedLists.open(place).contents == {"one": {"11": None, "22": None}, "two": {"11": None}}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"lists": 7}', '{"lists": [{"name": "a"}]}', '{"lists": [{"name": 1, "videos": []}]}'),
        '{"lists": [{"name": "a", "videos": [1]}]}',
        '{"lists": [{"name": "a", "videos": []}, {"name": "a", "videos": []}]}',
    ],
)
def test_damaged_list_file_is_named_in_the_error_and_kept(tmp_path: Path, text: str) -> None:
    (tmp_path / "lists.json").write_text(text)
    with pytest.raises(CollectionDamagedError, match=r"lists.json is damaged .*; correct it, restore it"):
        change_saved_list(open_place(tmp_path), "a", add=["11"])
    assert (tmp_path / "lists.json").read_text() == text

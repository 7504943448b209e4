"""Each pair of contents has one verdict, whatever the order of its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vidkin.errors import CollectionDamagedError, CollectionError, InvalidArgumentError, NotIndexedError
from vidkin.index import Decision, Decisions, Entry, MemoryStore, VideoRecord, open_place
from vidkin.index.storage.decisions import decide_pair, forget_pair, list_decisions, prefer_copy


def test_last_verdict_on_an_unordered_pair_counts(tmp_path: Path) -> None:
    decisions = Decisions()
    decisions.decide("bb", "aa", "match")
    decisions.decide("aa", "bb", "not a match")
    assert decisions.verdict("bb", "aa") == "not a match"
    assert decisions.verdict("aa", "cc") is None
    decisions.save(open_place(tmp_path))
    assert json.loads((tmp_path / "decisions.json").read_text(encoding="utf-8")) == {
        "decisions": [{"first": "aa", "second": "bb", "verdict": "not a match"}]
    }
    assert Decisions.open(open_place(tmp_path)) == decisions
    decisions.forget("bb", "aa")
    assert decisions.verdicts == {}


def test_invalid_decisions_raise_errors() -> None:
    decisions = Decisions()
    with pytest.raises(InvalidArgumentError, match="the two videos must differ, got byte-identical files"):
        decisions.decide("aa", "aa", "match")
    with pytest.raises(
        InvalidArgumentError, match="there is no decision about these two videos; list all decisions with `vidkin dec"
    ):
        decisions.forget("aa", "bb")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"decisions": [{"first": "aa"}]}',
        '{"decisions": 7}',
        # A misspelled verdict would otherwise be ignored silently.
        '{"decisions": [{"first": "aa", "second": "bb", "verdict": "no match"}]}',
        '{"decisions": [{"first": "aa", "second": "aa", "verdict": "match"}]}',
        '{"decisions": [{"first": 1, "second": "bb", "verdict": "match"}]}',
    ],
)
def test_damaged_decisions_file_is_named_and_left_unchanged(tmp_path: Path, text: str) -> None:
    (tmp_path / "decisions.json").write_text(text, encoding="utf-8")
    with pytest.raises(CollectionDamagedError, match=r"decisions\.json is damaged .*; correct it, restore it"):
        Decisions.open(open_place(tmp_path))
    assert (tmp_path / "decisions.json").read_text(encoding="utf-8") == text


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for name, content in (("a", "11"), ("a twin", "11"), ("b", "22"), ("unknown", "")):
        record = VideoRecord(path=f"/films/{name}.mp4", size=1, mtime_ns=1, content_hash=content)
        store.append_many([Entry(record.as_stale("read it again"))])
    return store


def test_decisions_are_listed_with_all_files_of_their_contents(store: MemoryStore, tmp_path: Path) -> None:
    decide_pair(open_place(tmp_path), store, "/films/b.mp4", "/films/a.mp4", "match", wait=0)
    both = ("/films/a twin.mp4", "/films/a.mp4")
    assert list_decisions(open_place(tmp_path), store) == [Decision(both, ("/films/b.mp4",), "match")]
    # The verdict applies to the content, so any file with that content will do.
    forget_pair(open_place(tmp_path), store, "/films/a twin.mp4", "/films/b.mp4", wait=0)
    assert list_decisions(open_place(tmp_path), store) == []


def test_decision_needs_one_known_file_on_each_side(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="/films is a folder with 4 videos; specify a single file"):
        decide_pair(open_place(tmp_path), store, "/films", "/films/a.mp4", "match", wait=0)
    with pytest.raises(NotIndexedError, match=r"unknown\.mp4 changed while it was being read; index it again"):
        decide_pair(open_place(tmp_path), store, "/films/unknown.mp4", "/films/a.mp4", "match", wait=0)
    with pytest.raises(NotIndexedError, match=r"/films/c\.mp4"):
        decide_pair(open_place(tmp_path), store, "/films/c.mp4", "/films/a.mp4", "match", wait=0)


def test_preferred_copy_replaces_earlier_preferences(store: MemoryStore, tmp_path: Path) -> None:
    prefer_copy(open_place(tmp_path), store, "/films/b.mp4", ["/films/a.mp4"], wait=0)
    prefer_copy(open_place(tmp_path), store, "/films/a twin.mp4", ["/films/b.mp4"], wait=0)
    decisions = Decisions.open(open_place(tmp_path))
    assert decisions.preferred == {"11": "/films/a twin.mp4"}
    # Both copies have the preferred content, but only one is the preferred file.
    twin, other = (store.find(f"/films/{name}.mp4") for name in ("a twin", "a"))
    assert twin is not None
    assert other is not None
    assert (decisions.prefers(twin), decisions.names(twin)) == (True, True)
    assert (decisions.prefers(other), decisions.names(other)) == (True, False)
    with pytest.raises(NotIndexedError):
        prefer_copy(open_place(tmp_path), store, "/films/nothing.mp4", [], wait=0)
    assert Decisions.open(open_place(tmp_path)) == decisions

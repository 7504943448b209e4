"""What is remembered of pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.index.duplicates import comparisons
from vidkin.index.duplicates.comparisons import Comparisons, PairResult
from vidkin.index.storage.opening import open_place
from vidkin.similarity import Segment

SEGMENT = Segment(0, 4, 10, 18, 0.9, 2.0, True, (0, 0, 0.5, 1), (0, 0, 1, 1))


def test_results_come_back_from_the_folder_in_either_direction(tmp_path: Path) -> None:
    made = Comparisons(open_place(tmp_path), "state")
    made.put("b", "a", PairResult(0.8, True, (1.0, 0.25), (SEGMENT,)))
    made.searched.add("a")
    made.flipped.add("b")
    made.save()
    read = Comparisons.open(open_place(tmp_path), "state")
    assert read.get("b", "a") == PairResult(0.8, True, (1.0, 0.25), (SEGMENT,))
    turned = read.get("a", "b")
    assert turned is not None
    assert turned.covered == (0.25, 1.0)
    assert turned.segments == (Segment(10, 18, 0, 4, 0.9, 0.5, True, (0, 0, 1, 1), (0, 0, 0.5, 1)),)
    assert turned.mirrored
    assert (read.searched, read.flipped) == ({"a"}, {"b"})
    assert read.get("a", "c") is None


def test_choices_and_missing_parts_come_back(tmp_path: Path) -> None:
    made = Comparisons(open_place(tmp_path), "state")
    made.put("b", "a", PairResult(0.8, doubt="", missing=("without b", "without a")))
    made.keepers["group"] = (2, "most detail")
    made.save()
    read = Comparisons.open(open_place(tmp_path), "state")
    results = read.get("b", "a"), read.get("a", "b")
    assert [result and result.missing for result in results] == [
        ("without b", "without a"),
        ("without a", "without b"),
    ]
    assert read.keepers == {"group": (2, "most detail")}


def test_who_compared_nothing_writes_nothing(tmp_path: Path) -> None:
    Comparisons(open_place(tmp_path), "state").save()
    assert list(tmp_path.iterdir()) == []


def test_pairs_without_choices_missing_parts_and_turns_are_kept(tmp_path: Path) -> None:
    """As an older version stored them."""
    made = Comparisons(open_place(tmp_path), "state")
    made.put("a", "b", PairResult(0.8, True, (1.0, 0.25), (SEGMENT,), doubt="little detail"))
    made.save()
    file = tmp_path / Comparisons.FILE
    table = json.loads(file.read_text())
    del table["keepers"]
    table["pairs"] = [[*row[:5], [segment[:9] for segment in row[5]], row[6]] for row in table["pairs"]]
    file.write_text(json.dumps(table))
    read = Comparisons.open(open_place(tmp_path), "state")
    assert read.get("a", "b") == PairResult(0.8, True, (1.0, 0.25), (SEGMENT,), doubt="little detail")
    assert read.keepers == {}


def test_results_whose_doubts_were_judged_otherwise_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Comparisons(open_place(tmp_path), "state")
    made.put("a", "b", PairResult(0.8))
    made.save()
    monkeypatch.setattr(comparisons, "_DOUBT_REVISION", comparisons._DOUBT_REVISION + 1)
    assert list(Comparisons.open(open_place(tmp_path), "state").pairs()) == []


def test_results_of_another_extractor_or_of_a_damaged_file_are_dropped(tmp_path: Path) -> None:
    made = Comparisons(open_place(tmp_path), "one")
    made.put("a", "b", PairResult(0.8))
    made.save()
    assert list(Comparisons.open(open_place(tmp_path), "two").pairs()) == []
    assert len(list(Comparisons.open(open_place(tmp_path), "one").pairs())) == 1
    empty = '"state": "one", "contents": [], "searched": [], "flipped": [], "pairs": []'
    for text in (
        "{",
        "[]",
        "[" * 100_000,
        '{"state": "one"}',
        '{"state": "one", "contents": [], "searched": [7]}',
        f'{{{empty}, "keepers": []}}',
        f'{{{empty}, "keepers": {{"group": 7}}}}',
    ):
        (tmp_path / Comparisons.FILE).write_text(text, encoding="utf-8")
        assert list(Comparisons.open(open_place(tmp_path), "one").pairs()) == []


def test_nobody_asks_where_unrelated_videos_match(tmp_path: Path) -> None:
    made = Comparisons()
    made.put("a", "b", PairResult(0.1, False, (0.0, 0.0), (SEGMENT,)))
    made.save()  # without a folder nothing is written
    result = made.get("a", "b")
    assert result is not None
    assert result.segments == ()


def test_a_share_is_at_most_one() -> None:
    with pytest.raises(InvalidArgumentError, match=r"score and covered must be in \[0, 1\], got 0.5 and"):
        PairResult(0.5, True, (1.2, 0.0))

"""Verdicts as labels: one per pair and one per frame, with their source, in a human-readable file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index import open_place
from vidkin.review import Labels
from vidkin.review.labels import is_held_back


def test_later_verdict_replaces_an_earlier_one_in_either_order(tmp_path: Path) -> None:
    Labels.judge_pair(open_place(tmp_path), "bb", "aa", "same", source="review page")
    Labels.judge_pair(open_place(tmp_path), "aa", "cc", "different", source="review page")
    Labels.judge_pair(open_place(tmp_path), "aa", "bb", "same kind", source="another")
    labels = Labels.open(tmp_path)
    assert [(label.first, label.second, label.verdict, label.source) for label in labels.pairs] == [
        ("aa", "cc", "different", "review page"),
        ("aa", "bb", "same kind", "another"),
    ]
    table = json.loads((tmp_path / "review" / "labels.json").read_text(encoding="utf-8"))
    assert set(table["pairs"][0]) == {"first", "second", "verdict", "source", "given"}


def test_verdicts_on_cuts_and_pairs_are_stored_together(tmp_path: Path) -> None:
    Labels.judge_pair(open_place(tmp_path), "aa", "bb", "same", source="test")
    Labels.judge_cuts(open_place(tmp_path), "aa", [(10, "cut"), (20, "no cut")], source="shots page")
    Labels.judge_cuts(open_place(tmp_path), "aa", [(10, "no cut")], source="shots page")
    labels = Labels.open(tmp_path)
    assert [(label.frame, label.verdict) for label in labels.cuts] == [(20, "no cut"), (10, "no cut")]
    assert len(labels.pairs) == 1


def test_invalid_verdicts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="different content"):
        Labels.judge_pair(open_place(tmp_path), "aa", "aa", "same", source="test")
    with pytest.raises(InvalidArgumentError, match="verdict must be one of 'same', 'same kind', 'different'"):
        Labels.judge_pair(open_place(tmp_path), "aa", "bb", "maybe", source="test")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="frame must be at least 1, got 0"):
        Labels.judge_cuts(open_place(tmp_path), "aa", [(5, "cut"), (0, "cut")], source="test")
    assert Labels.open(tmp_path) == Labels()


@pytest.mark.parametrize("text", ["", "[]", '{"pairs": [{"first": "aa"}]}', '{"cuts": 7}'])
def test_damaged_label_file_is_named_and_left_unchanged(tmp_path: Path, text: str) -> None:
    (tmp_path / "review").mkdir()
    (tmp_path / "review" / "labels.json").write_text(text, encoding="utf-8")
    with pytest.raises(CollectionDamagedError, match=r"labels\.json is damaged"):
        Labels.judge_pair(open_place(tmp_path), "aa", "bb", "same", source="test")
    assert (tmp_path / "review" / "labels.json").read_text(encoding="utf-8") == text


def test_the_same_third_of_verdicts_is_always_held_out() -> None:
    held = [is_held_back("aa", number) for number in range(600)]
    assert 160 < sum(held) < 240
    assert held == [is_held_back("aa", number) for number in range(600)]

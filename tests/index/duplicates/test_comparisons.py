"""Stored comparison results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.files import Finding, Proof
from vidkin.index import Comparisons, PairResult, Traits, open_place
from vidkin.index.duplicates import comparisons
from vidkin.similarity import Segment

SEGMENT = Segment(0, 4, 10, 18, 0.9, 2.0, True, (0, 0, 0.5, 1), (0, 0, 1, 1))


def test_results_can_be_read_back_in_either_direction(tmp_path: Path) -> None:
    made = Comparisons(open_place(tmp_path), "state")
    made.put("b", "a", PairResult(0.8, True, (1.0, 0.25), (SEGMENT,)))
    made.searched.add("a")
    made.searched_parts.add("b")
    made.save()
    read = Comparisons.open(open_place(tmp_path), "state")
    assert read.get("b", "a") == PairResult(0.8, True, (1.0, 0.25), (SEGMENT,))
    turned = read.get("a", "b")
    assert turned is not None
    assert turned.covered == (0.25, 1.0)
    assert turned.segments == (Segment(10, 18, 0, 4, 0.9, 0.5, True, (0, 0, 1, 1), (0, 0, 0.5, 1)),)
    assert turned.mirrored
    assert (read.searched, read.searched_parts) == ({"a"}, {"b"})
    assert read.get("a", "c") is None


PROOF = Proof("/v/a.mp4", "/v/b.mp4", "hash of a", "hash of b", (Finding("sound", "its sound", 0.0, 2.5),))


def test_traits_and_proofs_are_stored(tmp_path: Path) -> None:
    made = Comparisons(open_place(tmp_path), "state")
    traits = Traits(23.976, "HDR10", ("English 5.1",), 6, ("German",), 1, "2020-01-01", camera="X")
    made.put("b", "a", PairResult(0.8))
    made.traits["a"] = traits
    made.put_proof("a", "b", PROOF)
    made.save()
    read = Comparisons.open(open_place(tmp_path), "state")
    assert read.traits == {"a": traits}
    assert read.proof("a", "b") == PROOF
    assert read.proof("b", "a") is None


def test_outdated_proof_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Comparisons(open_place(tmp_path), "state")
    made.put("b", "a", PairResult(0.8))
    made.put_proof("a", "b", PROOF)
    made.save()
    monkeypatch.setattr(comparisons, "PROOF_REVISION", comparisons.PROOF_REVISION + 1)
    read = Comparisons.open(open_place(tmp_path), "state")
    assert read.proof("a", "b") is None
    assert read.get("a", "b") == PairResult(0.8)


def test_unreadable_file_is_proven_again() -> None:
    known = Comparisons()
    known.put_proof("a", "b", replace(PROOF, findings=(Finding("unreadable", "a disk failed"),)))
    assert known.proof("a", "b") is None


def test_empty_comparisons_are_not_written(tmp_path: Path) -> None:
    Comparisons(open_place(tmp_path), "state").save()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("revision", [None, 1])
def test_results_of_an_older_version_are_discarded(tmp_path: Path, revision: int | None) -> None:
    """The older format has no traits or proofs, and stores doubts that proofs have replaced."""
    made = Comparisons(open_place(tmp_path), "state")
    made.put("a", "b", PairResult(0.8, True, (1.0, 0.25), (SEGMENT,)))
    made.save()
    file = tmp_path / Comparisons.FILE
    table = json.loads(file.read_text())
    table["pairs"] = [[*row, "little detail"] for row in table["pairs"]]
    file.write_text(json.dumps({**table, "revision": revision}))
    assert list(Comparisons.open(open_place(tmp_path), "state").pairs()) == []


def test_results_of_another_extractor_or_in_a_damaged_file_are_discarded(tmp_path: Path) -> None:
    made = Comparisons(open_place(tmp_path), "one")
    made.put("a", "b", PairResult(0.8))
    made.save()
    assert list(Comparisons.open(open_place(tmp_path), "two").pairs()) == []
    assert len(list(Comparisons.open(open_place(tmp_path), "one").pairs())) == 1
    empty = '"state": "one", "contents": [], "searched": [], "searched_parts": [], "scoped": {}, "pairs": []'
    for text in (
        "{",
        "[]",
        "[" * 100_000,
        '{"state": "one"}',
        '{"state": "one", "contents": [], "searched": [7]}',
        f'{{{empty}, "revision": {comparisons._REVISION}, "traits": [], "proofs": []}}',
        f'{{{empty}, "revision": {comparisons._REVISION}, "traits": {{}}, "proofs": [7]}}',
    ):
        (tmp_path / Comparisons.FILE).write_text(text, encoding="utf-8")
        assert list(Comparisons.open(open_place(tmp_path), "one").pairs()) == []


def test_segments_of_unrelated_videos_are_not_stored(tmp_path: Path) -> None:
    made = Comparisons()
    made.put("a", "b", PairResult(0.1, False, (0.0, 0.0), (SEGMENT,)))
    made.save()  # without a folder nothing is written
    result = made.get("a", "b")
    assert result is not None
    assert result.segments == ()


def test_covered_fractions_are_at_most_one() -> None:
    with pytest.raises(InvalidArgumentError, match=r"score and covered must be in \[0, 1\], got 0.5 and"):
        PairResult(0.5, True, (1.2, 0.0))

"""A scorer trained on verdicts ranks held-out pairs better, and says so only if that is statistically significant."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.review.synthetic import fill, judge, judge_pairs
from vidkin.errors import InvalidArgumentError
from vidkin.index import Index, open_place
from vidkin.match import ReviewedScorer, ReviewMeasure
from vidkin.review import Labels, read_reviews, suggest_pairs, train_measure, use_measure
from vidkin.review.measure import judge_difference, ordering


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "i.vidkin")
    return tmp_path / "i.vidkin"


def all_pairs(path: Path) -> list[tuple[str, str]]:
    with Index.open(path, read_only=True) as index:
        hashes = sorted(record.content_hash for record in index.videos())
    return list(combinations(hashes, 2))


def test_ordering_counts_pairs_of_different_grades() -> None:
    grades = np.array([0, 1, 2, 2])
    assert ordering(np.array([0.1, 0.2, 0.3, 0.4]), grades) == 1.0
    assert ordering(np.array([0.4, 0.3, 0.2, 0.1]), grades) == 0.0
    # Of the five pairs (0,1), (0,2), (0,2), (1,2), (1,2), one is wrong and one is a tie.
    assert ordering(np.array([0.1, 0.3, 0.3, 0.2]), grades) == pytest.approx(3.5 / 5)


@pytest.mark.large
def test_trained_scorer_ranks_held_out_pairs_better(path: Path) -> None:
    pairs = all_pairs(path)
    drawn = [pair for pair in pairs if judge(*pair) != "different"]
    drawn += random.Random(1).sample([pair for pair in pairs if judge(*pair) == "different"], 60)
    judge_pairs(path, drawn)
    with Index.open(path, read_only=True) as index:
        review = train_measure(index)
    assert review.trained_on + review.held_back == len(drawn)
    assert review.after > review.before + 0.05
    assert review.judgment == "better"
    assert 0 < review.low <= review.after - review.before <= review.high
    assert read_reviews(path) == [{"kind": "measure", **review.to_dict()}]
    # The trained scorer has no effect until it is enabled; disabling it restores the previous scores.
    with Index.open(path, read_only=True) as index:
        assert not isinstance(index.scorer, ReviewedScorer)
        before = index.scorer
    use_measure(open_place(path), use=True)
    with Index.open(path, read_only=True) as index:
        assert isinstance(index.scorer, ReviewedScorer)
        records = {record.content_hash: record for record in index.videos()}
        names = ("hash-0-0-0", "hash-0-0-1", "hash-0-1-0", "hash-1-0-0")
        features = [index.store.read(records[name].id) for name in names]
        same, kind, other = (pair.score for pair in index.scorer.score(features[0], features[1:]))
        assert 1 >= same > kind > other >= 0
    use_measure(open_place(path), use=False)
    with Index.open(path, read_only=True) as index:
        assert index.scorer == before


def test_too_few_verdicts_raise_an_error_with_advice(path: Path) -> None:
    judge_pairs(path, all_pairs(path)[:2])
    with (
        Index.open(path, read_only=True) as index,
        pytest.raises(InvalidArgumentError, match=r"verdicts must include at least two kinds, .* judge more pairs"),
    ):
        train_measure(index)
    with pytest.raises(InvalidArgumentError, match=r"must contain a measure from `vidkin train review`"):
        use_measure(open_place(path), use=True)


def test_scorer_trained_on_other_features_is_refused(path: Path) -> None:
    measure = ReviewMeasure("other", (0.0,) * 16, (1.0,) * 16, (1.0, 1.0, 1.0), 0.0, 1.0)
    (path / "review").mkdir()
    measure.write(path / "review" / "measure.json")
    with pytest.raises(InvalidArgumentError, match="different features"):
        use_measure(open_place(path), use=True)


def test_grades_follow_the_formula() -> None:
    measure = ReviewMeasure("", (0.0,), (1.0,), (2.0, 1.0, 0.0), 1.0, 3.0)
    of_kind, of_same = measure.grade((1.0, 1.0, 0.5))  # logit 3
    assert of_kind == pytest.approx(1 / (1 + 2.718281828**-2))
    assert of_same == pytest.approx(0.5)
    for wrong in (
        {"kind": 4.0},
        {"coefficients": (-1.0, 0.0, 0.0)},
        {"weights": (1.0, 1.0)},
        {"same": float("nan")},
    ):
        values = {
            "center": (0.0,),
            "weights": (1.0,),
            "coefficients": (1.0, 1.0, 1.0),
            "kind": 1.0,
            "same": 3.0,
        }
        with pytest.raises(InvalidArgumentError):
            ReviewMeasure("", **{**values, **wrong})  # type: ignore[arg-type]


def test_judgment_depends_on_the_confidence_interval() -> None:
    assert judge_difference(0.01, 0.2) == "better"
    assert judge_difference(0.0, 0.2) == judge_difference(-0.1, 0.2) == "no clear difference"
    assert judge_difference(-0.2, -0.01) == "worse"


@pytest.mark.large
def test_pairs_are_suggested_until_all_are_judged(path: Path) -> None:
    with Index.open(path, read_only=True) as index:
        first = suggest_pairs(index, Labels(), limit=12)
        assert first == suggest_pairs(index, Labels(), limit=12)
        assert [pair.similarity for pair in first] == sorted((pair.similarity for pair in first), reverse=True)
        names = [(pair.first.content_hash, pair.second.content_hash) for pair in first]
        assert len(set(names)) == 12
        assert {judge(*pair) for pair in names} == {"same", "same kind", "different"}
        judge_pairs(path, names)
        again = suggest_pairs(index, Labels.open(path), limit=12)
        assert not set(names) & {(pair.first.content_hash, pair.second.content_hash) for pair in again}
        judge_pairs(path, all_pairs(path))
        assert suggest_pairs(index, Labels.open(path)) == []


def test_lines_that_do_not_describe_a_training_run_are_skipped(tmp_path: Path) -> None:
    """The file comes with the index, which may be untrusted."""
    (tmp_path / "review").mkdir()
    runs = tmp_path / "review" / "runs.jsonl"
    good = {"kind": "cuts", "trained_on": 3, "held_back": 2, "before": 0.5, "after": 0.75, "judgment": "better"}
    odd = (
        {},
        {**good, "before": "x"},
        {**good, "low": None},
        {**good, "judgment": "=cmd"},
        {**good, "trained_on": True},
    )
    runs.write_text("".join(json.dumps(row) + "\n" for row in (*odd, good)) + "[]\n" + '{"kind": "cuts", "be')
    assert read_reviews(tmp_path) == [good]
    runs.write_bytes(b"\xff\xfe\x00")
    assert read_reviews(tmp_path) == []

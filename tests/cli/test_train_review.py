"""``vidkin train review``: verdicts on an index become a measure that it can use."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.review.synthetic import fill, judge, judge_pairs
from vidkin.index import Index


@pytest.fixture
def index(tmp_path: Path) -> Path:
    fill(tmp_path / "i.vidkin")
    return tmp_path / "i.vidkin"


def is_in_use(index: Path) -> bool:
    with Index.open(index, read_only=True) as opened:
        return opened.manifest.reviewed


@pytest.mark.large
def test_verdicts_are_trained_on_and_used_on_request(index: Path) -> None:
    with Index.open(index, read_only=True) as opened:
        pairs = list(combinations(sorted(record.content_hash for record in opened.videos()), 2))
    judge_pairs(index, [pair for pair in pairs if judge(*pair) != "different"] + pairs[::6])
    shown = run("train", "review", "--index", index)
    assert ("scorer" in shown.out, "measure" in shown.out + shown.err) == (True, False)
    assert "--use" in shown.err
    assert not is_in_use(index)
    document = run("train", "review", "--index", index, "--use", "-f", "json").json
    assert document["runs"]["measure"]["after"] > document["runs"]["measure"]["before"]
    assert document["problems"] == {}
    assert is_in_use(index)
    run("train", "review", "--index", index, "--no-use")
    assert not is_in_use(index)


def test_without_verdicts_it_says_where_to_give_them(index: Path) -> None:
    refused = run("train", "review", "--index", index, status=2)
    assert "judge pairs on the page Review of `vidkin serve" in refused.err

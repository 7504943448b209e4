"""Review over HTTP: giving verdicts, training on them, and switching to the result."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.review.synthetic import fill, judge, judge_pairs
from tests.web.conftest import Connect, finish_job
from vidkin.index import Index, open_place
from vidkin.review import Labels
from vidkin.web.review import describe_run


@pytest.fixture
def index(tmp_path: Path) -> Path:
    fill(tmp_path / "i.vidkin")
    return tmp_path / "i.vidkin"


def train(client: TestClient, what: str) -> dict[str, Any]:
    return finish_job(client, client.post("/api/review/train", json={"what": what}).json())


def test_verdict_becomes_a_label_and_the_next_pair_differs(index: Path, connect: Connect) -> None:
    client = connect(index)
    pair = client.get("/api/review/pairs?limit=3").json()[0]
    verdict = {"first": pair["first"]["id"], "second": pair["second"]["id"], "verdict": "same kind"}
    state = client.post("/api/review/pairs", json=verdict).json()
    assert (state["same"], state["same_kind"], state["different"]) == (0, 1, 0)
    (label,) = Labels.open(index).pairs
    assert (label.verdict, label.source) == ("same kind", "review page")
    assert pair not in client.get("/api/review/pairs?limit=30").json()
    page = client.get("/review").text
    assert "1 verdict: 0 same, 1 same kind, 0 different." in page


@pytest.mark.process
def test_trained_result_is_used_only_after_the_switch(index: Path, connect: Connect) -> None:
    client = connect(index)
    with Index.open(index, read_only=True) as opened:
        hashes = sorted(record.content_hash for record in opened.videos())
    pairs = list(combinations(hashes, 2))
    judge_pairs(index, [p for p in pairs if judge(*p) != "different"] + pairs[::6])
    state = train(client, "measure")
    assert state["result"]["kind"] == "measure"
    assert state["state"] == "done", state["error"]
    review = client.get("/api/review").json()
    assert review["measure_in_use"] is False
    assert review["runs"][0]["kind"] == "measure"
    assert review["runs"][0]["judgment"] == state["result"]["judgment"]
    assert "Use the trained scorer" in client.get("/review").text
    used = client.post("/api/review/use", json={"what": "measure", "use": True}).json()
    assert used["measure_in_use"] is True
    assert "Searches use the trained scorer." in client.get("/review").text
    assert client.post("/api/review/use", json={"what": "measure", "use": False}).json() == review


def test_missing_verdicts_and_unknown_videos_fail_with_a_reason(index: Path, connect: Connect) -> None:
    client = connect(index)
    state = train(client, "measure")
    assert state["state"] == "failed"
    assert "judge more pairs" in str(state["error"])
    for what, words in (("measure", "vidkin train review"), ("cuts", "no threshold has been trained")):
        answer = client.post("/api/review/use", json={"what": what, "use": True})
        assert (answer.status_code, words in answer.json()["detail"]) == (422, True)
    assert client.post("/api/review/pairs", json={"first": 1, "second": 9999, "verdict": "same"}).status_code == 404
    closed = connect(index, read_only=True)
    assert 'id="verdicts"' not in closed.get("/review").text
    for address, body in (
        ("pairs", {"first": 1, "second": 2, "verdict": "same"}),
        ("train", {"what": "measure"}),
        ("use", {"what": "measure", "use": True}),
    ):
        assert "--read-only" in closed.post(f"/api/review/{address}", json=body).json()["detail"]


def test_verdict_is_undone_and_history_is_newest_first(index: Path, connect: Connect) -> None:
    client = connect(index)
    one, other = client.get("/api/review/pairs?limit=2").json()
    for pair, verdict in ((one, "same"), (other, "different"), (one, "same kind")):
        body = {"first": pair["first"]["id"], "second": pair["second"]["id"], "verdict": verdict}
        state = client.post("/api/review/pairs", json=body).json()
    assert state["pairs"] == {"given": 2, "wanted": 30, "missing": state["pairs"]["missing"]}
    past = client.get("/api/review/history").json()
    assert [each["verdict"] for each in past] == ["same kind", "different"]
    assert past[0]["first"]["id"] == one["first"]["id"]
    gone = {"first": one["second"]["id"], "second": one["first"]["id"], "verdict": "forget"}
    assert client.post("/api/review/pairs", json=gone).json()["same_kind"] == 0
    assert "no verdict on these two videos to undo" in client.post("/api/review/pairs", json=gone).json()["detail"]


def test_training_is_offered_with_enough_verdicts(index: Path, connect: Connect) -> None:
    client = connect(index)
    with Index.open(index, read_only=True) as opened:
        hashes = sorted(record.content_hash for record in opened.videos())
    pairs = list(combinations(hashes, 2))
    for one, other in pairs[:29]:
        Labels.judge_pair(open_place(index), one, other, "same", source="test")
    page = client.get("/review").text
    assert "29 of 30 verdicts; needed: verdicts of at least two kinds." in page
    assert 'data-train="measure" disabled' in page
    for one, other in pairs[:20]:
        Labels.judge_pair(open_place(index), one, other, "different", source="test")
    assert 'data-train="measure" disabled' in client.get("/review").text  # one verdict of 30 is missing
    Labels.judge_pair(open_place(index), *pairs[29], "same kind", source="test")
    page = client.get("/review").text
    assert "Enough for training." in page
    assert 'data-train="measure">' in page


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            {"kind": "measure", "before": 0.84, "after": 0.91, "held_back": 12, "judgment": "better"},
            "The trained scorer puts 91 % of pairs of verdicts in the right order, 84 % before, on 12 verdicts "
            "held back from training: it is better.",
        ),
        (
            {"kind": "cuts", "before": 0.9, "after": 0.9, "held_back": 1, "judgment": "no clear difference"},
            "The trained threshold reaches an F1 of 90 % on cuts, 90 % before, on 1 verdict held back from "
            "training: the difference may be chance.",
        ),
    ],
)
def test_training_result_is_described_in_a_sentence(run: dict[str, Any], words: str) -> None:
    assert describe_run(run) == words


def test_page_shows_training_requirements(index: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connect(index)
    assert "training on pairs needs PyTorch" not in client.get("/review").text
    monkeypatch.setattr("vidkin.web.review.find_spec", lambda name: None)
    page = client.get("/review").text
    assert "training on pairs needs PyTorch, which is not installed" in page
    assert "pip install" in page
    assert 'data-train="measure" disabled' in page

"""Review over HTTP: verdicts, a training on them, and the switch."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.review.synthetic import fill, judge, judge_pairs
from tests.web.conftest import Connect, finish_job
from vidkin.index import Index
from vidkin.review import Labels


@pytest.fixture
def index(tmp_path: Path) -> Path:
    fill(tmp_path / "i.vidkin")
    return tmp_path / "i.vidkin"


def train(client: TestClient, what: str) -> dict[str, Any]:
    return finish_job(client, client.post("/api/review/train", json={"what": what}).json())


def test_a_verdict_becomes_a_label_and_the_next_pair_is_another(index: Path, connect: Connect) -> None:
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
def test_what_was_trained_is_used_after_the_switch_and_not_before(index: Path, connect: Connect) -> None:
    client = connect(index)
    with Index.open(index, read_only=True) as opened:
        hashes = sorted(record.content_hash for record in opened.videos())
    pairs = list(combinations(hashes, 2))
    judge_pairs(index, [p for p in pairs if judge(*p) != "different"] + pairs[::6])
    state = train(client, "measure")
    assert state["state"] == "done", state["error"]
    review = client.get("/api/review").json()
    assert review["measure_in_use"] is False
    assert review["runs"][0]["kind"] == "measure"
    assert review["runs"][0]["judgment"] == state["result"]["judgment"]
    assert "Use the trained measure" in client.get("/review").text
    used = client.post("/api/review/use", json={"what": "measure", "use": True}).json()
    assert used["measure_in_use"] is True
    assert "Searches use the trained measure." in client.get("/review").text
    assert client.post("/api/review/use", json={"what": "measure", "use": False}).json() == review


def test_training_without_verdicts_and_verdicts_on_unknown_videos_fail_with_a_reason(
    index: Path, connect: Connect
) -> None:
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

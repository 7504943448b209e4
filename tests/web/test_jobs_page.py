"""Jobs over HTTP."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import Connect, Library, finish_job, number_of
from vidkin.web import Guard, Settings, create_app
from vidkin.web.jobs import Job, Jobs, JobState


def test_events_report_every_change_until_the_end(library: Library, tmp_path: Path) -> None:
    app = create_app(library.index, Settings())
    assert isinstance(app, Guard)
    with TestClient(app, base_url="http://localhost") as client:
        site = app.inner.state.site
        gate = threading.Event()

        def work(job: Job) -> str:
            job.report(1, 2, "half")
            assert gate.wait(10)
            return "finished"

        job = site.jobs.start("test", "A test", work)
        assert client.get(f"/api/jobs/{job.id}").json()["title"] == "A test"
        assert client.get("/api/jobs").json()[0]["id"] == job.id
        gate.set()
        events = client.get(f"/api/jobs/{job.id}/events")
        assert events.headers["content-type"].startswith("text/event-stream")
        states = [json.loads(line[6:]) for line in events.text.splitlines() if line.startswith("data: ")]
        assert (states[-1]["state"], states[-1]["result"]) == ("done", "finished")
        assert client.post(f"/api/jobs/{job.id}/stop").json()["state"] == "done"
        assert client.get("/api/jobs/77").status_code == 404
        assert client.get("/api/jobs/77/events").status_code == 404


@pytest.mark.thorough
def test_finished_job_is_readable_after_a_restart(own_library: Library, connect: Connect) -> None:
    client = connect(own_library.index)
    video = number_of(client, "coffee.mp4")
    answer = client.post(f"/api/videos/{video}/shots")
    job = finish_job(client, answer.json())
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/api/jobs/{job['id']}"
    assert (job["kind"], job["result"]) == ("shots", {"videos": 1, "failed": []})

    again = connect(own_library.index)
    assert again.get(f"/api/jobs/{job['id']}").json() == job
    assert job in again.get("/api/jobs", params={"kind": "shots", "state": "done"}).json()
    assert again.get("/api/jobs", params={"state": "running"}).json() == []
    assert again.post(f"/api/jobs/{job['id']}/stop").json() == job
    assert json.dumps(job) in again.get(f"/api/jobs/{job['id']}/events").text
    later = finish_job(again, again.post("/api/videos/copies", json={"videos": [video]}).json())
    assert later["id"] > job["id"]


def test_job_of_a_killed_server_is_readable_as_failed(own_library: Library, connect: Connect) -> None:
    """The remains of such a server: the job as it began, and a lock that is not held."""
    stored = own_library.index / "web-jobs"
    stored.mkdir(exist_ok=True)
    begun = {"id": 7, "kind": "index", "title": "Add films", "video": None, "state": "running"}
    (stored / "7.json").write_text(json.dumps(begun), encoding="ascii")
    (stored / "7.lock").touch()
    client = connect(own_library.index)
    job = client.get("/api/jobs/7").json()
    assert (job["state"], job["title"]) == ("failed", "Add films")
    assert job["error"] == "the server ended before this job did; start it again: finished work is kept"
    assert 7 in [each["id"] for each in client.get("/api/jobs", params={"state": "failed"}).json()]


@pytest.mark.thorough
def test_search_runs_as_a_job_on_request(client: TestClient) -> None:
    video, other = number_of(client, "coffee.mp4"), number_of(client, "copy.mp4")
    preferring = {"Prefer": "wait=1, respond-async"}
    asked = [
        ("POST", "/api/search", {"video": video, "limit": 1}),
        ("POST", "/api/match", {"video": video, "target": other}),
        ("GET", f"/api/videos/{video}/coverage", None),
        ("POST", f"/api/videos/{video}/neighbors", None),
    ]
    for method, path, body in asked:
        answer = client.request(method, path, json=body, headers=preferring)
        assert answer.status_code == 202, path
        assert answer.headers["location"] == f"/api/jobs/{answer.json()['id']}"
        job = finish_job(client, answer.json())
        assert (job["state"], job["kind"]) == ("done", path.rpartition("/")[2])
        at_once = client.request(method, path, json=body).json()
        for values in (job["result"], at_once):
            if isinstance(values, dict):
                values.pop("seconds", None)
        assert job["result"] == at_once, path


def test_search_with_a_missing_file_is_a_failed_job(client: TestClient) -> None:
    answer = client.post("/api/search", json={"upload": "gone"}, headers={"Prefer": "respond-async"})
    job = finish_job(client, answer.json())
    assert (job["state"], job["error"]) == ("failed", "this file is no longer on the server; upload it again")


def test_search_jobs_wait_for_each_other_and_can_be_stopped_while_waiting() -> None:
    jobs, turns, gate = Jobs(), threading.Semaphore(1), threading.Event()
    first = jobs.start("search", "Search", lambda job: gate.wait(10), turns=turns)
    second = jobs.start("search", "Search", lambda job: True, turns=turns)
    third = jobs.start("search", "Search", lambda job: True, turns=turns)
    second.stop()
    assert wait_for(second).state == "stopped"
    assert third.is_running
    assert third.state().detail in ("", "waiting for its turn")
    gate.set()
    assert (wait_for(first).state, wait_for(third).result) == ("done", True)


def wait_for(job: Job) -> JobState:
    """The last state; fails after ten seconds."""
    for _ in range(1000):
        if not job.is_running:
            return job.state()
        time.sleep(0.01)
    raise AssertionError("the job does not end")

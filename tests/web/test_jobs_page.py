"""Jobs over HTTP."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from starlette.testclient import TestClient

from tests.web.conftest import Library
from vidkin.web import Settings
from vidkin.web.app import create_app
from vidkin.web.guard import Guard
from vidkin.web.jobs import Job


def test_events_tell_every_change_until_the_end(library: Library, tmp_path: Path) -> None:
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
        assert [state["id"] for state in client.get("/api/jobs").json()] == [job.id]
        gate.set()
        events = client.get(f"/api/jobs/{job.id}/events")
        assert events.headers["content-type"].startswith("text/event-stream")
        states = [json.loads(line[6:]) for line in events.text.splitlines() if line.startswith("data: ")]
        assert (states[-1]["state"], states[-1]["result"]) == ("done", "finished")
        assert client.post(f"/api/jobs/{job.id}/stop").json()["state"] == "done"
        assert client.get("/api/jobs/77").status_code == 404
        assert client.get("/api/jobs/77/events").status_code == 404
